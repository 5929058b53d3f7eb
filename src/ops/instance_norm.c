/* Instance normalisation (Ulyanov et al. 2016): each channel of each sample over its spatial axes,
 * y = (x - mean) / sqrt(variance + eps) * scale + bias. x, y (N,C,spatial...), scale and bias (C).
 */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"

typedef struct Attr {
    double eps;
} Attr;

static const QnAttrField instance_norm_fields[] = {
    QN_NORM_EPS(Attr, 1e-5, "added to the variance"),
};

static QnStatus instance_norm_infer(QnInfer *c)
{
    QN_TRY(qn_norm_channels(c, "instance_norm", 3, 6));
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void instance_norm_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnNormView v = qn_norm_view_channel(&n->in[0]->type.shape);
    QnValue *y = qn_layer_norm(g, n->in[0], NULL, NULL, 2, ((const Attr *)n->attr)->eps);
    y = qn_mul(g, y, qn_reshape(g, n->in[1], &v.param));
    out[0] = qn_add(g, y, qn_reshape(g, n->in[2], &v.param));
}

static const QnSample instance_norm_samples[] = {
    { .in = { { 4, { 2, 4, 3, 2 } }, { 1, { 4 } }, { 1, { 4 } } }, .n_in = 3 },
    { .in = { { 3, { 3, 2, 130 } }, { 1, { 2 } }, { 1, { 2 } } },
      .n_in = 3,
      .attr = &(Attr){ 1e-3 } },
};

QN_API QnValue *qn_instance_norm(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias, double eps)
{
    return qn_emit3(g, &qn_op_instance_norm, &(Attr){ eps }, x, scale, bias);
}

static QnStatus instance_norm_import(QnOnnxNode *n)
{
    return qn_onnx_out0(n, qn_instance_norm(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1),
                                            qn_onnx_in(n, 2), qn_onnx_float(n, "epsilon", 1e-5)));
}

static const QnOnnxMap instance_norm_onnx[] = {
    { .name = "InstanceNormalization", .since = 1, .import = instance_norm_import },
};

const QnOp qn_op_instance_norm = {
    .name = "instance_norm",
    .version = 1,
    .doc = "normalises each channel of each sample",
    .n_in = 3,
    QN_ATTRS(Attr, instance_norm_fields),
    .infer = instance_norm_infer,
    .lower = instance_norm_lower,
    QN_ONNX(instance_norm_onnx),
    QN_SAMPLES(instance_norm_samples),
};
#endif
