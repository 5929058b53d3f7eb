/* Batch normalisation by given statistics: y = (x - mean) / sqrt(var + eps) * scale + bias, which
 * is one multiply-add a channel: y = x * s + (bias - mean * s), s = scale / sqrt(var + eps). */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/norm.h"

typedef struct Attr {
    double eps;
} Attr;

static const QnAttrField batch_norm_inference_fields[] = {
    QN_NORM_EPS(Attr, 1e-5, "added to the variance"),
};

static QnStatus batch_norm_inference_infer(QnInfer *c)
{
    QN_TRY(qn_norm_channels(c, "batch_norm_inference", 2, 6));
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void batch_norm_inference_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    QnValue *x = n->in[0], *var = n->in[4];
    QnNormView v = qn_norm_view_channel(&x->type.shape);
    QnDtype t = var->type.dtype;
    QnValue *s = qn_mul(g, qn_cast(g, n->in[1], t),
                        qn_rsqrt(g, qn_add_scalar(g, var, ((const Attr *)n->attr)->eps)));
    QnValue *b = qn_sub(g, qn_cast(g, n->in[2], t), qn_mul(g, qn_cast(g, n->in[3], t), s));
    s = qn_reshape(g, qn_cast(g, s, x->type.dtype), &v.stat);
    b = qn_reshape(g, qn_cast(g, b, x->type.dtype), &v.stat);
    out[0] = qn_add(g, qn_mul(g, x, s), b);
}

static const QnSample batch_norm_inference_samples[] = {
    { .in = { { 4, { 2, 3, 2, 3 } },
              { 1, { 3 } },
              { 1, { 3 } },
              { 1, { 3 } },
              { 1, { 3 }, .lo = 0.5, .hi = 2 } },
      .n_in = 5 },
    { .in = { { 2, { 130, 2 } },
              { 1, { 2 } },
              { 1, { 2 } },
              { 1, { 2 } },
              { 1, { 2 }, .lo = 0.5, .hi = 2 } },
      .n_in = 5,
      .attr = &(Attr){ 1e-3 } },
};

QN_API QnValue *qn_batch_norm_inference(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias,
                                        QnValue *mean, QnValue *var, double eps)
{
    return qn_emitn(g, &qn_op_batch_norm_inference, &(Attr){ eps },
                    (QnValue *[]){ x, scale, bias, mean, var }, 5);
}

static QnStatus batch_norm_inference_put(QnOnnxPut *p, const QnNode *n)
{
    qn_put_attr_float(p, qn_put_same(p, n, "BatchNormalization"), "epsilon",
                      ((const Attr *)n->attr)->eps);
    return qn_put_status(p);
}

const QnOp qn_op_batch_norm_inference = {
    .name = "batch_norm_inference",
    .version = 1,
    .doc = "normalises each channel by given statistics",
    .n_in = 5,
    QN_ATTRS(Attr, batch_norm_inference_fields),
    .infer = batch_norm_inference_infer,
    .lower = batch_norm_inference_lower,
    .onnx_put = batch_norm_inference_put,
    .onnx_writes = "BatchNormalization",
    QN_SAMPLES(batch_norm_inference_samples),
};
#endif
