/* resize and its adjoint in f32: the taps of each axis are worked out once, then rows of the small
 * side are weighted into rows of the large one, or back. */
#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "ops/resize.h"

#include <string.h>

typedef struct Tap {
    int32_t at[4];
    float weight[4];
} Tap;

typedef struct ResizeState {
    int n_taps[3];
    int64_t planes, n[3], m[3]; /* small: where taps point; large: whose elements have taps */
    Tap *tap[3];                /* of each of m elements */
    bool adjoint;
} ResizeState;

static const char *resize_accepts(const QnNode *n, const QnKernelEnv *env)
{
    const char *why = qn_cpu_need_plain(n);
    (void)env;
    for (int i = 2; i < n->in[0]->type.shape.rank; i++) {
        if (n->in[0]->type.shape.dim[i] > INT32_MAX || n->out[0].type.shape.dim[i] > INT32_MAX)
            return "takes axes below 2^31";
    }
    return why ? why : n->in[0]->type.dtype != QN_DTYPE_F32 ? "takes only f32" : NULL;
}

static QnStatus resize_prepare(QnPrepared *p)
{
    const QnResizeAttr *a = p->node->attr;
    const QnShape *x = &p->node->in[0]->type.shape, *y = &p->node->out[0].type.shape;
    ResizeState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->adjoint = a->adjoint;
    s->planes = qn_shape_count(x) == 0 || qn_shape_count(y) == 0 ? 0 : x->dim[0] * x->dim[1];
    for (int i = 0; s->planes && i < 3; i++) {
        int axis = i + x->rank - 3;
        bool real = axis >= 2;
        s->n[i] = !real ? 1 : a->adjoint ? y->dim[axis] : x->dim[axis];
        s->m[i] = !real ? 1 : a->adjoint ? x->dim[axis] : y->dim[axis];
        s->tap[i] = qn_alloc_array((size_t)s->m[i], sizeof(Tap));
        if (!s->tap[i])
            return QN_ENOMEM; /* fini frees what there is */
        for (int64_t o = 0; o < s->m[i]; o++) {
            QnTaps t = { .n = 1, .at = { 0 }, .weight = { 1 } };
            if (real)
                t = qn_resize_taps(a, o, s->m[i], s->n[i]);
            s->n_taps[i] = t.n;
            for (int k = 0; k < t.n; k++) {
                s->tap[i][o].at[k] = (int32_t)t.at[k];
                s->tap[i][o].weight[k] = (float)t.weight[k];
            }
        }
    }
    return QN_OK;
}

typedef struct ResizeRun {
    const ResizeState *s;
    const float *x;
    float *y;
} ResizeRun;

/* One row of the large side, of plane `plane`, at (i, j), from the row of the small side at `from`
 * with this weight; or with the adjoint that row from the large one. */
static void one_row(const ResizeRun *r, int64_t large, int64_t small, float weight)
{
    const ResizeState *s = r->s;
    const Tap *tap = s->tap[2];
    int n = s->n_taps[2];
    if (s->adjoint) {
        const float *x = r->x + large * s->m[2];
        float *y = r->y + small * s->n[2];
        for (int64_t k = 0; k < s->m[2]; k++) {
            for (int q = 0; q < n; q++)
                y[tap[k].at[q]] += weight * tap[k].weight[q] * x[k];
        }
        return;
    }
    const float *x = r->x + small * s->n[2];
    float *y = r->y + large * s->m[2];
    for (int64_t k = 0; k < s->m[2]; k++) {
        float v = 0;
        for (int q = 0; q < n; q++)
            v += tap[k].weight[q] * x[tap[k].at[q]];
        y[k] += weight * v;
    }
}

static void large_row(const ResizeRun *r, int64_t plane, int64_t i, int64_t j)
{
    const ResizeState *s = r->s;
    const Tap *a = &s->tap[0][i], *b = &s->tap[1][j];
    int64_t large = (plane * s->m[0] + i) * s->m[1] + j;
    for (int p = 0; p < s->n_taps[0]; p++) {
        for (int q = 0; q < s->n_taps[1]; q++)
            one_row(r, large, (plane * s->n[0] + a->at[p]) * s->n[1] + b->at[q],
                    a->weight[p] * b->weight[q]);
    }
}

/* A unit is a plane, which no other writes. */
static void resize_unit(void *ctx, int64_t plane)
{
    const ResizeRun *r = ctx;
    const ResizeState *s = r->s;
    const int64_t *to = s->adjoint ? s->n : s->m;
    int64_t count = to[0] * to[1] * to[2];
    memset(r->y + plane * count, 0, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < s->m[0]; i++) {
        for (int64_t j = 0; j < s->m[1]; j++)
            large_row(r, plane, i, j);
    }
}

static QnStatus resize_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const ResizeState *s = p->state;
    ResizeRun r = { s, in[0], out[0] };
    (void)workspace;
    qn_cpu_parallel(qn_cpu_threads(p), s->planes, resize_unit, &r);
    return QN_OK;
}

static void resize_fini(QnPrepared *p)
{
    ResizeState *s = p->state;
    for (int i = 0; s && i < 3; i++)
        qn_free(s->tap[i]);
    qn_free(s);
}

const QnKernel qn_kernel_resize_taps = {
    .name = "cpu.resize.taps",
    .backend = "cpu",
    .op = &qn_op_resize,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = resize_accepts,
    .prepare = resize_prepare,
    .run = resize_run,
    .fini = resize_fini,
};
