/* y = (x - mean) / (standard deviation + eps) over some axes, without parameters. Sums in f32 or
 * wider. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/onnx.h"
#include "ops/util.h"

typedef struct Attr {
    QnInts axes;
    double eps;
} Attr;

static const QnAttrField mean_variance_norm_fields[] = {
    { .name = "axes",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, axes),
      .doc = "that mean and deviation are taken over, negative from the end; none: all" },
    QN_NORM_EPS(Attr, 1e-9, "added to the standard deviation"),
};

static QnStatus mean_variance_norm_infer(QnInfer *c)
{
    unsigned mask;
    const QnShape *x = &c->in[0]->shape;
    QN_TRY(qn_norm_dtypes(c, "mean_variance_norm", ~0u));
    QN_TRY(qn_util_axes_mask("mean_variance_norm", x, &((const Attr *)c->attr)->axes, &mask));
    for (int i = 0; i < x->rank; i++) {
        if (mask >> i & 1 && x->dim[i] == 0)
            return qn_fail(QN_ESHAPE, "mean_variance_norm: axis %d has length 0; it has no mean",
                           i);
    }
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void mean_variance_norm_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDtype t = n->in[0]->type.dtype;
    QnValue *x = qn_cast(g, n->in[0], qn_norm_stat(t));
    QnValue *d = qn_sub(g, x, qn_mean(g, x, a->axes, true));
    QnValue *s = qn_sqrt(g, qn_mean(g, qn_square(g, d), a->axes, true));
    out[0] = qn_cast(g, qn_div(g, d, qn_add_scalar(g, s, a->eps)), t);
}

static const QnSample mean_variance_norm_samples[] = {
    { .in = { { 4, { 2, 3, 5, 4 } } }, .n_in = 1, .attr = &(Attr){ { 3, { 0, 2, 3 } }, 1e-9 } },
    { .in = { { 2, { 4, 130 } } }, .n_in = 1, .attr = &(Attr){ { 1, { -1 } }, 1e-3 } },
    { .in = { { 2, { 3, 7 } } }, .n_in = 1 },
};

QN_API QnValue *qn_mean_variance_norm(QnGraph *g, QnValue *x, QnInts axes, double eps)
{
    return qn_emit1(g, &qn_op_mean_variance_norm, &(Attr){ axes, eps }, x);
}

/* ONNX's function adds 1e-9 to the deviation. */
static QnStatus mean_variance_norm_import(QnOnnxNode *n)
{
    QnInts axes;
    if (!qn_onnx_ints(n, "axes", &axes))
        axes = (QnInts){ .n = 3, .v = { 0, 2, 3 } };
    return qn_onnx_out0(n, qn_mean_variance_norm(n->g, qn_onnx_in(n, 0), axes, 1e-9));
}

static const QnOnnxMap mean_variance_norm_onnx[] = {
    { .name = "MeanVarianceNormalization", .since = 9, .import = mean_variance_norm_import },
};

const QnOp qn_op_mean_variance_norm = {
    .name = "mean_variance_norm",
    .version = 1,
    .doc = "normalises by mean and deviation over some axes, without parameters",
    .n_in = 1,
    QN_ATTRS(Attr, mean_variance_norm_fields),
    .infer = mean_variance_norm_infer,
    .lower = mean_variance_norm_lower,
    QN_ONNX(mean_variance_norm_onnx),
    QN_SAMPLES(mean_variance_norm_samples),
};
#endif
