/* The inverse of max_pool up to what that drops: x (N,C,in...) goes to zeros (N,C,size...), each
 * element to where `indices` (of x's shape) says, counted over the whole output in row-major order.
 * Of equal indices the last one counts. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx_window.h"
#include "ops/ops.h"
#include "ops/region.h"

typedef struct Attr {
    QnDims size;
} Attr;

static const QnAttrField max_unpool_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(Attr, size),
      .doc = "spatial dims of the output" },
};

static QnStatus max_unpool_infer(QnInfer *c)
{
    const QnDims *size = &((const Attr *)c->attr)->size;
    const QnShape *x = &c->in[0]->shape, *at = &c->in[1]->shape;
    char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
    QN_TRY(qn_region_check_index("max_unpool", c->in[1]));
    if (x->rank < 3 || x->rank > 5 || x->rank != size->n + 2)
        return qn_fail(QN_ESHAPE,
                       "max_unpool: x %s with %d dims of the output; give one for each of the one "
                       "to three axes after (N,C)",
                       qn_shape_text(x, p), size->n);
    bool fits = at->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = qn_region_may_equal(x->dim[i], at->dim[i]);
    if (!fits)
        return qn_fail(QN_ESHAPE, "max_unpool: indices are %s, x %s; they must agree",
                       qn_shape_text(at, p), qn_shape_text(x, q));
    c->out[0] = *c->in[0];
    for (int i = 0; i < size->n; i++)
        c->out[0].shape.dim[2 + i] = size->d[i];
    return QN_OK;
}

static void max_unpool_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnType *x = &n->in[0]->type, *y = &n->out[0].type;
    QnShape flat_x = QN_SHAPE(qn_shape_product(g, &x->shape, 0, x->shape.rank));
    QnShape flat_y = QN_SHAPE(qn_shape_product(g, &y->shape, 0, y->shape.rank));
    QnValue *v = qn_reshape(g, n->in[0], &flat_x), *at = qn_reshape(g, n->in[1], &flat_x);
    QnValue *zeros = qn_full(g, 0, x->dtype, &flat_y);
    out[0] = qn_scatter_elements(g, zeros, at, v, 0, QN_SCATTER_NONE);
    out[0] = qn_reshape(g, out[0], &y->shape);
}

static const QnSample max_unpool_samples[] = {
    /* one or two elements, as random indices of more may be equal and their gradient is one's */
    { .in = { { 4, { 1, 1, 1, 1 } }, { 4, { 1, 1, 1, 1 }, QN_DTYPE_I64, 0, 19 } },
      .n_in = 2,
      .attr = &(Attr){ { 2, { 4, 5 } } } },
    { .in = { { 3, { 2, 3, 5 } }, { 3, { 2, 3, 5 }, QN_DTYPE_I64, 0, 779 } },
      .n_in = 2,
      .attr = &(Attr){ { 1, { 130 } } },
      .flags = QN_SAMPLE_NO_GRAD }, /* equal indices count as if each were the last */
};

QN_API QnValue *qn_max_unpool(QnGraph *g, QnValue *x, QnValue *indices, const QnDims *size)
{
    return qn_emit2(g, &qn_op_max_unpool, &(Attr){ *size }, x, indices);
}

/* Indices count over an output of the size that strides and pads give; another output_shape has
 * that as its first corner. */
static QnStatus max_unpool_import(QnOnnxNode *n)
{
    const QnShape *x;
    QnPoolAttr a;
    QnInts to;
    QN_TRY(qn_onnx_window_input(n, &x));
    QN_TRY(qn_onnx_window_pool(n, x, &a));
    QnDims size = { .n = x->rank - 2 };
    QnPadAttr pad = { .before = { .n = x->rank }, .after = { .n = x->rank } };
    for (int i = 0; i < size.n; i++) {
        size.d[i] = (x->dim[2 + i] - 1) * a.strides.v[i] + a.kernel.v[i] - a.pads.v[i] -
                    a.pads.v[size.n + i];
        if (size.d[i] < 1)
            return qn_fail(QN_ESHAPE, "nothing is left of spatial axis %d", i);
    }
    if (qn_onnx_has(n, 2)) {
        QN_TRY(qn_onnx_in_ints(n, 2, &to));
        if (to.n != x->rank)
            return qn_fail(QN_ESHAPE, "output_shape has %d dims, %d are needed", to.n, x->rank);
        for (int i = 0; i < size.n; i++) {
            pad.after.v[2 + i] = to.v[2 + i] - size.d[i];
            if (pad.after.v[2 + i] < 0 || to.v[2 + i] > INT32_MAX)
                return qn_onnx_refuse(n, "output_shape %lld of spatial axis %d, which has %lld",
                                      (long long)to.v[2 + i], i, (long long)size.d[i]);
        }
    }
    QnValue *y = qn_max_unpool(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1), &size);
    return qn_onnx_out0(n, qn_onnx_has(n, 2) ? qn_pad(n->g, y, &pad) : y);
}

static const QnOnnxMap max_unpool_onnx[] = {
    { .name = "MaxUnpool", .since = 9, .import = max_unpool_import },
};

const QnOp qn_op_max_unpool = {
    .name = "max_unpool",
    .version = 1,
    .doc = "elements put back to where max_pool took them, zeros elsewhere",
    .n_in = 2,
    QN_ATTRS(Attr, max_unpool_fields),
    .infer = max_unpool_infer,
    .lower = max_unpool_lower,
    QN_ONNX(max_unpool_onnx),
    QN_SAMPLES(max_unpool_samples),
};
#endif
