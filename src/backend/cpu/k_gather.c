/* Operators with indices. All indices are checked before anything is written, so that an error
 * leaves no half of a result; then rows are copied, or added in the indices' order. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/fold.h"
#include "backend/cpu/move.h"
#include "ops/ops.h"
#include "ops/region.h"

#include <string.h>

enum { UNIT_BYTES = 65536, OUTPUT_UNITS = 32 };

/* x: (outer, n, inner), m indices; embedding is the case of one outer row without wrapping. */
typedef struct Picks {
    int64_t outer, n, inner, m;
    const void *index;
    bool wide, wraps; /* i64; negative indices count from the end */
} Picks;

static int64_t raw_at(const Picks *p, int64_t j)
{
    return p->wide ? ((const int64_t *)p->index)[j] : ((const int32_t *)p->index)[j];
}

static int64_t pick_at(const Picks *p, int64_t j)
{
    int64_t i = raw_at(p, j);
    return i < 0 ? i + p->n : i;
}

static Picks picks_of(const QnNode *n, const void *index)
{
    const QnShape *s = &n->in[0]->type.shape;
    Picks p = { .m = qn_shape_count(&n->in[1]->type.shape), .index = index };
    int axis = 0;
    p.wraps = n->op != &qn_op_embedding;
    p.wide = n->in[1]->type.dtype == QN_DTYPE_I64;
    if (p.wraps)
        qn_shape_axis(s, *(const int64_t *)qn_cpu_attr(n, "axis"), &axis);
    if (qn_shape_count(s) == 0) { /* no elements: only the range of indices counts */
        p.n = s->dim[axis];
        return p;
    }
    QnRows r = qn_util_rows(s, axis);
    p.outer = r.outer;
    p.n = r.n;
    p.inner = r.inner;
    return p;
}

static QnStatus check_picks(const QnNode *n, const Picks *p)
{
    for (int64_t j = 0; j < p->m; j++) {
        int64_t i = raw_at(p, j);
        if (i < (p->wraps ? -p->n : 0) || i >= p->n)
            return qn_fail(QN_EARG,
                           "%s: index %lld at element %lld is out of range for length %lld",
                           n->op->name, (long long)i, (long long)j, (long long)p->n);
    }
    return QN_OK;
}

static const char *gather_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_cpu_need_plain(n);
}

typedef struct GatherRun {
    Picks p;
    size_t bytes; /* of inner elements */
    int64_t unit_rows;
    const char *x;
    char *y;
} GatherRun;

static void gather_unit(void *ctx, int64_t unit)
{
    const GatherRun *r = ctx;
    int64_t end = QN_MIN((unit + 1) * r->unit_rows, r->p.outer * r->p.m);
    for (int64_t row = unit * r->unit_rows; row < end; row++) {
        int64_t from = row / r->p.m * r->p.n + pick_at(&r->p, row % r->p.m);
        const char *x = r->x + (size_t)from * r->bytes;
        char *y = r->y + (size_t)row * r->bytes;
        if (r->bytes == 4) /* a call for so few would cost more than the copy */
            memcpy(y, x, 4);
        else
            memcpy(y, x, r->bytes);
    }
}

static QnStatus gather_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const QnNode *n = p->node;
    GatherRun r = { .p = picks_of(n, in[1]), .x = in[0], .y = out[0] };
    (void)workspace;
    QN_TRY(check_picks(n, &r.p));
    r.bytes = (size_t)r.p.inner * qn_dtype_bytes(n->in[0]->type.dtype);
    if (r.bytes == 0 || r.p.m == 0)
        return QN_OK;
    r.unit_rows = QN_MAX(1, (int64_t)(UNIT_BYTES / r.bytes));
    qn_cpu_parallel(qn_cpu_threads(p), (r.p.outer * r.p.m + r.unit_rows - 1) / r.unit_rows,
                    gather_unit, &r);
    return QN_OK;
}

/* ---- scatter_add: each unit owns some rows of y and looks through all indices ---- */

static const char *scatter_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype d = n->in[0]->type.dtype;
    (void)env;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    return qn_cpu_need_plain(n);
}

/* Halves are summed in f32, in the workspace: y, then a row of u for each unit. */
static QnStatus scatter_prepare(QnPrepared *p)
{
    const QnType *t = &p->node->in[0]->type;
    int axis = 0;
    qn_shape_axis(&t->shape, *(const int64_t *)qn_cpu_attr(p->node, "axis"), &axis);
    if (t->dtype != QN_DTYPE_F32 && qn_shape_count(&t->shape) > 0) {
        int64_t row = qn_util_rows(&t->shape, axis).inner;
        p->workspace_bytes =
            (size_t)(qn_shape_count(&t->shape) + OUTPUT_UNITS * row) * sizeof(float);
    }
    return QN_OK;
}

typedef struct ScatterRun {
    Picks p;
    const QnFoldFns *fns;
    QnDtype dtype;
    const char *u;
    float *y, *rows; /* rows: of halves, converted */
} ScatterRun;

static void scatter_unit(void *ctx, int64_t unit)
{
    const ScatterRun *r = ctx;
    const Picks *p = &r->p;
    size_t size = qn_dtype_bytes(r->dtype);
    int64_t begin = qn_cpu_part_begin(p->n, OUTPUT_UNITS, unit);
    int64_t end = qn_cpu_part_begin(p->n, OUTPUT_UNITS, unit + 1);
    if (begin == end)
        return;
    for (int64_t o = 0; o < p->outer; o++) {
        for (int64_t j = 0; j < p->m; j++) {
            int64_t row = pick_at(p, j);
            if (row < begin || row >= end)
                continue;
            const char *u = r->u + (size_t)((o * p->m + j) * p->inner) * size;
            const float *x = (const float *)(const void *)u;
            if (r->dtype != QN_DTYPE_F32) {
                float *own = r->rows + unit * p->inner;
                qn_dtype_to_f32(r->dtype, u, own, p->inner);
                x = own;
            }
            r->fns->columns(QN_FOLD_SUM, r->y + (o * p->n + row) * p->inner, x, 0, 1, p->inner);
        }
    }
}

static QnStatus scatter_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    const QnNode *n = p->node;
    const QnType *t = &n->out[0].type;
    int64_t count = qn_shape_count(&t->shape);
    ScatterRun r = { .p = picks_of(n, in[1]), .dtype = t->dtype, .u = in[2], .y = out[0] };
    QN_TRY(check_picks(n, &r.p));
    if (count == 0)
        return QN_OK;
    r.fns = qn_fold_find(p->env->isa);
    if (t->dtype != QN_DTYPE_F32) {
        r.y = workspace;
        r.rows = r.y + count;
        qn_dtype_to_f32(t->dtype, in[0], r.y, count);
    } else if (in[0] != out[0]) {
        qn_move_all(p->env->n_threads, (size_t)qn_type_bytes(t), in[0], out[0]);
    }
    if (r.p.m > 0)
        qn_cpu_parallel(qn_cpu_threads(p), OUTPUT_UNITS, scatter_unit, &r);
    if (t->dtype != QN_DTYPE_F32)
        qn_dtype_from_f32(t->dtype, r.y, out[0], count);
    return QN_OK;
}

const QnKernel qn_kernel_gather_rows = {
    .name = "cpu.gather.rows",
    .backend = "cpu",
    .op = &qn_op_gather,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = gather_accepts,
    .run = gather_run,
};

const QnKernel qn_kernel_embedding_rows = {
    .name = "cpu.embedding.rows",
    .backend = "cpu",
    .op = &qn_op_embedding,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = gather_accepts,
    .run = gather_run,
};

const QnKernel qn_kernel_scatter_add_rows = {
    .name = "cpu.scatter_add.rows",
    .backend = "cpu",
    .op = &qn_op_scatter_add,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = scatter_accepts,
    .prepare = scatter_prepare,
    .run = scatter_run,
};
