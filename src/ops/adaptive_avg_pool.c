/* Means over windows chosen so that the output has a given size: along each axis, window i of `out`
 * covers [floor(i * in / out), ceil((i + 1) * in / out)), as PyTorch's AdaptiveAvgPool. x
 * (N,C,in...), y (N,C,out...). A product with a small matrix for each axis; one mean if all sizes
 * are 1. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/util.h"

typedef struct Attr {
    QnInts size;
} Attr;

static const QnAttrField adaptive_avg_pool_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, size),
      .doc = "of the output along each spatial axis" },
};

static bool adaptive_avg_pool_is_global(const QnInts *size)
{
    bool all = true;
    for (int i = 0; i < size->n; i++)
        all &= size->v[i] == 1;
    return all;
}

static QnStatus adaptive_avg_pool_infer(QnInfer *c)
{
    const QnInts *size = &((const Attr *)c->attr)->size;
    const QnShape *x = &c->in[0]->shape;
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "adaptive_avg_pool: needs floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    if (x->rank < 3 || x->rank != size->n + 2)
        return qn_fail(QN_ESHAPE,
                       "adaptive_avg_pool: %d sizes for x of rank %d; give one for each "
                       "axis after (N,C)",
                       size->n, x->rank);
    c->out[0] = *c->in[0];
    for (int i = 0; i < size->n; i++) {
        if (size->v[i] < 1 || size->v[i] > 1 << 20)
            return qn_fail(QN_EARG, "adaptive_avg_pool: size %lld", (long long)size->v[i]);
        if (x->dim[2 + i] == 0)
            return qn_fail(QN_ESHAPE, "adaptive_avg_pool: spatial axis %d is empty", i);
        if (x->dim[2 + i] < 0 && !adaptive_avg_pool_is_global(size))
            return qn_fail(QN_EUNSUPPORTED,
                           "adaptive_avg_pool: spatial axis %d is symbolic; only "
                           "size 1 can do with that",
                           i);
        if (x->dim[2 + i] > (1 << 28) / size->v[i] && !adaptive_avg_pool_is_global(size))
            return qn_fail(QN_EUNSUPPORTED, "adaptive_avg_pool: %lld windows over %lld elements",
                           (long long)size->v[i], (long long)x->dim[2 + i]);
        c->out[0].shape.dim[2 + i] = size->v[i];
    }
    return QN_OK;
}

/* The matrix (out, in) whose rows average their windows. */
static QnValue *adaptive_avg_pool_matrix(QnGraph *g, QnDtype dtype, int64_t out, int64_t in)
{
    float *m = qn_arena_array(g->arena, (size_t)(out * in), sizeof *m);
    for (int64_t i = 0; m && i < out; i++) {
        int64_t from = i * in / out, to = ((i + 1) * in + out - 1) / out;
        for (int64_t k = from; k < to; k++)
            m[i * in + k] = 1 / (float)(to - from);
    }
    if (!m)
        return qn_graph_poison(g);
    return qn_cast(g, qn_constant(g, QN_DTYPE_F32, &QN_SHAPE(out, in), m), dtype);
}

static void adaptive_avg_pool_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnInts *size = &((const Attr *)n->attr)->size;
    QnShape s = n->in[0]->type.shape;
    QnValue *y = n->in[0];
    QnInts axes = { .n = s.rank - 2, .v = { 2, 3, 4, 5, 6, 7 } };
    if (adaptive_avg_pool_is_global(size)) {
        out[0] = qn_mean(g, y, axes, true);
        return;
    }
    for (int i = 2; i < s.rank; i++) {
        if (s.dim[i] == size->v[i - 2])
            continue;
        QnShape flat = QN_SHAPE(qn_shape_product(g, &s, 0, i), s.dim[i],
                                qn_shape_product(g, &s, i + 1, s.rank));
        QnValue *m = adaptive_avg_pool_matrix(g, y->type.dtype, size->v[i - 2], s.dim[i]);
        y = qn_matmul(g, m, qn_reshape(g, y, &flat), NULL, false, false);
        s.dim[i] = size->v[i - 2];
        y = qn_reshape(g, y, &s);
    }
    out[0] = y;
}

static const QnSample adaptive_avg_pool_samples[] = {
    { .in = { { 4, { 2, 3, 5, 4 } } }, .n_in = 1, .attr = &(Attr){ { 2, { 3, 2 } } } },
    { .in = { { 3, { 1, 2, 130 } } }, .n_in = 1, .attr = &(Attr){ { 1, { 7 } } } },
    { .in = { { 4, { 2, 3, 5, 4 } } }, .n_in = 1, .attr = &(Attr){ { 2, { 1, 1 } } } },
};

QN_API QnValue *qn_adaptive_avg_pool(QnGraph *g, QnValue *x, QnInts size)
{
    return qn_emit1(g, &qn_op_adaptive_avg_pool, &(Attr){ size }, x);
}

/* (N,C,spatial...) to (N,C,1...): the mean of each channel. */
QN_API QnValue *qn_global_avg_pool(QnGraph *g, QnValue *x)
{
    QnInts axes = { .v = { 2, 3, 4, 5, 6, 7 } };
    if (qn_value_is_poison(x))
        return x;
    axes.n = QN_MAX(x->type.shape.rank - 2, 0);
    return axes.n ? qn_mean(g, x, axes, true) : x;
}

/* (N,C,spatial...) to (N,C,1...): the greatest element of each channel. */
QN_API QnValue *qn_global_max_pool(QnGraph *g, QnValue *x)
{
    QnInts axes = { .v = { 2, 3, 4, 5, 6, 7 } };
    if (qn_value_is_poison(x))
        return x;
    axes.n = QN_MAX(x->type.shape.rank - 2, 0);
    return axes.n ? qn_reduce_max(g, x, axes, true) : x;
}

static QnStatus adaptive_avg_pool_import(QnOnnxNode *n)
{
    if (qn_onnx_rank(n, 0) < 2)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,C,...)");
    return qn_onnx_out0(n, qn_global_avg_pool(n->g, qn_onnx_in(n, 0)));
}

static const QnOnnxMap adaptive_avg_pool_onnx[] = {
    { .name = "GlobalAveragePool", .since = 1, .import = adaptive_avg_pool_import },
};

static QnStatus adaptive_avg_pool_put(QnOnnxPut *p, const QnNode *n)
{
    const QnInts *size = &((const Attr *)n->attr)->size;
    for (int i = 0; i < size->n; i++)
        if (size->v[i] != 1)
            return qn_fail(QN_EUNSUPPORTED, "an adaptive pool to other sizes than 1");
    qn_put_same(p, n, "GlobalAveragePool");
    return qn_put_status(p);
}

const QnOp qn_op_adaptive_avg_pool = {
    .name = "adaptive_avg_pool",
    .version = 1,
    .doc = "means over windows that give a wanted output size",
    .n_in = 1,
    QN_ATTRS(Attr, adaptive_avg_pool_fields),
    .infer = adaptive_avg_pool_infer,
    .lower = adaptive_avg_pool_lower,
    QN_ONNX(adaptive_avg_pool_onnx),
    .onnx_put = adaptive_avg_pool_put,
    .onnx_writes = "GlobalAveragePool",
    QN_SAMPLES(adaptive_avg_pool_samples),
};
#endif
