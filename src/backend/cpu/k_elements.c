/* gather_elements of every dtype and scatter_elements of f32, on one thread. All indices are
 * checked before anything is written. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "ops/ops.h"
#include "ops/region.h"

#include <math.h>
#include <string.h>

typedef struct ElementsRun {
    const QnNode *n;
    QnShape s; /* of the indices */
    int axis;
    int64_t length;              /* of x along it */
    int64_t stride[QN_MAX_RANK]; /* of x, 0 along the axis */
    int64_t axis_stride;
    const void *index;
    bool wide;
} ElementsRun;

static int64_t raw_at(const ElementsRun *r, int64_t i)
{
    return r->wide ? ((const int64_t *)r->index)[i] : ((const int32_t *)r->index)[i];
}

static QnStatus elements_init(ElementsRun *r, const QnNode *n, const void *index)
{
    const QnShape *x = &n->in[0]->type.shape;
    *r = (ElementsRun){ .n = n, .s = n->in[1]->type.shape, .index = index };
    r->wide = n->in[1]->type.dtype == QN_DTYPE_I64;
    qn_shape_axis(x, *(const int64_t *)qn_cpu_attr(n, "axis"), &r->axis);
    r->length = x->dim[r->axis];
    qn_shape_strides(x, r->stride);
    r->axis_stride = r->stride[r->axis];
    r->stride[r->axis] = 0;
    for (int64_t i = 0, count = qn_shape_count(&r->s); i < count; i++) {
        int64_t v = raw_at(r, i);
        if (v < -r->length || v >= r->length)
            return qn_fail(QN_EARG,
                           "%s: index %lld at element %lld is out of range for length %lld",
                           n->op->name, (long long)v, (long long)i, (long long)r->length);
    }
    return QN_OK;
}

/* Offset in x of the element that index i, which stands at `at`, names. */
static int64_t element_of(const ElementsRun *r, const int64_t *at, int64_t i)
{
    int64_t v = raw_at(r, i);
    return qn_util_offset(r->s.rank, at, r->stride) + (v < 0 ? v + r->length : v) * r->axis_stride;
}

static const char *gather_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_cpu_need_plain(n);
}

static const char *scatter_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    if (n->in[0]->type.dtype != QN_DTYPE_F32)
        return "takes only f32";
    return qn_cpu_need_plain(n);
}

static QnStatus gather_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    ElementsRun r;
    int64_t at[QN_MAX_RANK] = { 0 };
    size_t size = qn_dtype_bytes(p->node->in[0]->type.dtype);
    (void)workspace;
    QN_TRY(elements_init(&r, p->node, in[1]));
    for (int64_t i = 0, count = qn_shape_count(&r.s); i < count; i++) {
        memcpy((char *)out[0] + (size_t)i * size,
               (const char *)in[0] + (size_t)element_of(&r, at, i) * size, size);
        qn_util_next(&r.s, at);
    }
    return QN_OK;
}

static float combine(int reduction, float y, float u)
{
    switch (reduction) {
    case QN_SCATTER_ADD: return y + u;
    case QN_SCATTER_MUL: return y * u;
    case QN_SCATTER_MAX: return fmaxf(y, u);
    case QN_SCATTER_MIN: return fminf(y, u);
    default: return u;
    }
}

static QnStatus scatter_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    const QnNode *n = p->node;
    ElementsRun r;
    int64_t at[QN_MAX_RANK] = { 0 };
    const float *u = in[2];
    float *y = out[0];
    int reduction = *(const int *)qn_cpu_attr(n, "reduction");
    (void)workspace;
    QN_TRY(elements_init(&r, n, in[1]));
    if (in[0] != out[0])
        qn_move_all(p->env->n_threads, (size_t)qn_type_bytes(&n->out[0].type), in[0], out[0]);
    for (int64_t i = 0, count = qn_shape_count(&r.s); i < count; i++) {
        float *to = &y[element_of(&r, at, i)];
        *to = combine(reduction, *to, u[i]);
        qn_util_next(&r.s, at);
    }
    return QN_OK;
}

const QnKernel qn_kernel_gather_elements_loop = {
    .name = "cpu.gather_elements.loop",
    .backend = "cpu",
    .op = &qn_op_gather_elements,
    .rank = 20,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = gather_accepts,
    .run = gather_run,
};

const QnKernel qn_kernel_scatter_elements_loop = {
    .name = "cpu.scatter_elements.loop",
    .backend = "cpu",
    .op = &qn_op_scatter_elements,
    .rank = 20,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = scatter_accepts,
    .run = scatter_run,
};
