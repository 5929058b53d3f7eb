/* Local response normalisation across channels (Krizhevsky et al. 2012), as PyTorch's:
 *   y = x / (k + alpha / size * sum of x^2 over channels c - size/2 .. c + (size-1)/2)^beta
 * x, y (N,C,...); channels outside count as 0. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"

typedef struct Attr {
    int64_t size;
    double alpha, beta, k;
} Attr;

static const QnAttrField lrn_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, size),
      .def = 5,
      .min = 1,
      .max = 1 << 20,
      .doc = "neighbouring channels" },
    { .name = "alpha",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, alpha),
      .def = 1e-4,
      .doc = "factor of the mean square" },
    { .name = "beta",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, beta),
      .def = 0.75,
      .doc = "exponent" },
    { .name = "k",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(Attr, k),
      .def = 1,
      .min = 1e-30,
      .max = 1e30,
      .doc = "added to the mean square" },
};

static QnStatus lrn_infer(QnInfer *c)
{
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "lrn: needs floats, not %s", qn_dtype_name(c->in[0]->dtype));
    if (c->in[0]->shape.rank < 2)
        return qn_fail(QN_ESHAPE, "lrn: x must be (N,C,...), not of rank %d", c->in[0]->shape.rank);
    c->out[0] = *c->in[0];
    return QN_OK;
}

/* The window over channels is a pool of a plane (C, spatial). */
static void lrn_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *x = &n->in[0]->type.shape;
    QnShape plane = QN_SHAPE(x->dim[0], 1, x->dim[1], qn_shape_product(g, x, 2, x->rank));
    QnPoolAttr pool = { .kernel = { 2, { a->size, 1 } },
                        .strides = { 2, { 1, 1 } },
                        .pads = { 4, { a->size / 2, 0, (a->size - 1) / 2, 0 } },
                        .count_include_pad = true };
    QnValue *s = qn_avg_pool(g, qn_reshape(g, qn_square(g, n->in[0]), &plane), &pool);
    s = qn_add_scalar(g, qn_mul_scalar(g, qn_reshape(g, s, x), a->alpha), a->k);
    out[0] = qn_mul(g, n->in[0], qn_exp(g, qn_mul_scalar(g, qn_log(g, s), -a->beta)));
}

static const QnSample lrn_samples[] = {
    { .in = { { 4, { 2, 6, 2, 3 } } }, .n_in = 1, .attr = &(Attr){ 3, 0.5, 0.75, 1 } },
    { .in = { { 3, { 1, 4, 130 } } }, .n_in = 1, .attr = &(Attr){ 4, 0.1, 0.5, 2 } },
};

QN_API QnValue *qn_lrn(QnGraph *g, QnValue *x, int64_t size, double alpha, double beta, double k)
{
    return qn_emit1(g, &qn_op_lrn, &(Attr){ size, alpha, beta, k }, x);
}

/* Of an even number of neighbours ONNX has one more after the channel, we have it before. */
static QnStatus lrn_import(QnOnnxNode *n)
{
    int64_t size = qn_onnx_int(n, "size", 0);
    QnInts channels = { .n = 1, .v = { 1 } };
    if (size < 1 || qn_onnx_rank(n, 0) < 2)
        return qn_fail(QN_EFORMAT, "attribute 'size' is %lld, input 0 of rank %d", (long long)size,
                       qn_onnx_rank(n, 0));
    QnValue *x = qn_onnx_in(n, 0);
    if (size % 2 == 0)
        x = qn_flip(n->g, x, channels);
    x = qn_lrn(n->g, x, size, qn_onnx_float(n, "alpha", 1e-4), qn_onnx_float(n, "beta", 0.75),
               qn_onnx_float(n, "bias", 1));
    return qn_onnx_out0(n, size % 2 == 0 ? qn_flip(n->g, x, channels) : x);
}

static const QnOnnxMap lrn_onnx[] = { { .name = "LRN", .since = 1, .import = lrn_import } };

const QnOp qn_op_lrn = {
    .name = "lrn",
    .version = 1,
    .doc = "divides by the mean square of neighbouring channels",
    .n_in = 1,
    QN_ATTRS(Attr, lrn_fields),
    .infer = lrn_infer,
    .lower = lrn_lower,
    QN_ONNX(lrn_onnx),
    QN_SAMPLES(lrn_samples),
};
#endif
