/* Greatest elements of windows chosen so that the output has a given size: along each axis, window
 * i of `out` covers [floor(i * in / out), ceil((i + 1) * in / out)). x (N,C,in...), y (N,C,out...).
 * The first of equal elements wins and gets the gradient. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/util.h"
#include "ops/window.h"

typedef struct Attr {
    QnInts size;
} Attr;

static const QnAttrField adaptive_max_pool_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, size),
      .doc = "of the output along each spatial axis" },
};

static QnStatus adaptive_max_pool_infer(QnInfer *c)
{
    const QnInts *size = &((const Attr *)c->attr)->size;
    const QnShape *x = &c->in[0]->shape;
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "adaptive_max_pool: needs floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    if (x->rank < 3 || x->rank > 5 || x->rank != size->n + 2)
        return qn_fail(QN_ESHAPE,
                       "adaptive_max_pool: %d sizes for x of rank %d; give one for each of the one "
                       "to three axes after (N,C)",
                       size->n, x->rank);
    c->out[0] = *c->in[0];
    for (int i = 0; i < size->n; i++) {
        if (size->v[i] < 1 || size->v[i] > 1 << 20)
            return qn_fail(QN_EARG, "adaptive_max_pool: size %lld; it must be in 1..%d",
                           (long long)size->v[i], 1 << 20);
        if (x->dim[2 + i] == 0)
            return qn_fail(QN_ESHAPE, "adaptive_max_pool: spatial axis %d is empty", i);
        if (x->dim[2 + i] < 0)
            return qn_fail(QN_EUNSUPPORTED,
                           "adaptive_max_pool: spatial axis %d is symbolic; over all of it, "
                           "reduce_max can do with that",
                           i);
        if (x->dim[2 + i] > 1 << 28)
            return qn_fail(QN_EUNSUPPORTED, "adaptive_max_pool: %lld windows over %lld elements",
                           (long long)size->v[i], (long long)x->dim[2 + i]);
        c->out[0].shape.dim[2 + i] = size->v[i];
    }
    return QN_OK;
}

static int64_t adaptive_max_pool_begin(int64_t i, int64_t in, int64_t out)
{
    return i * in / out;
}

static int64_t adaptive_max_pool_end(int64_t i, int64_t in, int64_t out)
{
    return ((i + 1) * in + out - 1) / out;
}

/* x with the windows along the axis laid side by side, each *width long: a shorter one repeats its
 * last element, which never wins over itself. */
static QnValue *adaptive_max_pool_spread(QnGraph *g, QnValue *x, int axis, int64_t out,
                                         int64_t *width)
{
    int64_t in = x->type.shape.dim[axis];
    *width = 1;
    for (int64_t i = 0; i < out; i++)
        *width =
            QN_MAX(*width, adaptive_max_pool_end(i, in, out) - adaptive_max_pool_begin(i, in, out));
    if (in % out == 0)
        return x; /* they lie so */
    int64_t *index = qn_arena_array(g->arena, (size_t)(out * *width), sizeof *index);
    for (int64_t i = 0; index && i < out; i++) {
        int64_t last = adaptive_max_pool_end(i, in, out) - 1;
        for (int64_t k = 0; k < *width; k++)
            index[i * *width + k] = QN_MIN(adaptive_max_pool_begin(i, in, out) + k, last);
    }
    if (!index)
        return qn_graph_poison(g);
    return qn_gather(g, x, qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(out * *width), index), axis);
}

static void adaptive_max_pool_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnInts *size = &((const Attr *)n->attr)->size;
    QnPoolAttr pool = { .kernel = { .n = size->n } };
    QnValue *x = n->in[0];
    for (int i = 0; i < size->n && !qn_value_is_poison(x); i++)
        x = adaptive_max_pool_spread(g, x, 2 + i, size->v[i], &pool.kernel.v[i]);
    out[0] = qn_max_pool(g, x, &pool); /* strides: the kernel's sizes */
}

static const QnSample adaptive_max_pool_samples[] = {
    { .in = { { 4, { 2, 3, 5, 4 }, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ { 2, { 3, 2 } } } },
    { .in = { { 3, { 1, 2, 130 }, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ { 1, { 7 } } } },
    { .in = { { 3, { 1, 2, 4 }, .distinct = true } }, .n_in = 1, .attr = &(Attr){ { 1, { 6 } } } },
    { .in = { { 5, { 1, 2, 3, 4, 5 }, .distinct = true } },
      .n_in = 1,
      .attr = &(Attr){ { 3, { 1, 2, 5 } } } },
};

QN_API QnValue *qn_adaptive_max_pool(QnGraph *g, QnValue *x, QnInts size)
{
    return qn_emit1(g, &qn_op_adaptive_max_pool, &(Attr){ size }, x);
}

static QnStatus adaptive_max_pool_import(QnOnnxNode *n)
{
    if (qn_onnx_rank(n, 0) < 2)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,C,...)");
    return qn_onnx_out0(n, qn_global_max_pool(n->g, qn_onnx_in(n, 0)));
}

static const QnOnnxMap adaptive_max_pool_onnx[] = {
    { .name = "GlobalMaxPool", .since = 1, .import = adaptive_max_pool_import },
};

const QnOp qn_op_adaptive_max_pool = {
    .name = "adaptive_max_pool",
    .version = 1,
    .doc = "greatest elements of windows that give a wanted output size",
    .n_in = 1,
    QN_ATTRS(Attr, adaptive_max_pool_fields),
    .infer = adaptive_max_pool_infer,
    .lower = adaptive_max_pool_lower,
    QN_ONNX(adaptive_max_pool_onnx),
    QN_SAMPLES(adaptive_max_pool_samples),
};
#endif
