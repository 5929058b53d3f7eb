/* Group normalisation (Wu and He 2018): the channels of each sample fall into groups, each
 * normalised with its spatial axes; then y = xh * scale + bias by channel. x, y (N,C,...), scale
 * and bias (C). One group is layer norm, as many groups as channels instance norm. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"

typedef struct Attr {
    int64_t groups;
    double eps;
} Attr;

static const QnAttrField group_norm_fields[] = {
    { .name = "groups",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, groups),
      .def = 1,
      .min = 1,
      .max = 1 << 30,
      .doc = "how many; divides the channels" },
    QN_NORM_EPS(Attr, 1e-5, "added to the variance"),
};

static QnStatus group_norm_infer(QnInfer *c)
{
    const QnShape *x = &c->in[0]->shape;
    int64_t groups = ((const Attr *)c->attr)->groups;
    QN_TRY(qn_norm_channels(c, "group_norm", 2, 6));
    if (x->dim[1] >= 0 && x->dim[1] % groups)
        return qn_fail(QN_EARG, "group_norm: %lld channels do not fall into %lld groups",
                       (long long)x->dim[1], (long long)groups);
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void group_norm_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnShape *x = &n->in[0]->type.shape;
    QnNormView v = qn_norm_view_channel(x);
    QnDim inner =
        qn_dim_mul(g, qn_dim_div(g, x->dim[1], a->groups), qn_shape_product(g, x, 2, x->rank));
    QnShape grouped = QN_SHAPE(x->dim[0], a->groups, inner);
    QnValue *y = qn_layer_norm(g, qn_reshape(g, n->in[0], &grouped), NULL, NULL, 2, a->eps);
    y = qn_mul(g, qn_reshape(g, y, x), qn_reshape(g, n->in[1], &v.param));
    out[0] = qn_add(g, y, qn_reshape(g, n->in[2], &v.param));
}

static const QnSample group_norm_samples[] = {
    { .in = { { 4, { 2, 4, 3, 2 } }, { 1, { 4 } }, { 1, { 4 } } },
      .n_in = 3,
      .attr = &(Attr){ 2, 1e-5 } },
    { .in = { { 3, { 3, 2, 130 } }, { 1, { 2 } }, { 1, { 2 } } }, .n_in = 3 },
};

QN_API QnValue *qn_group_norm(QnGraph *g, QnValue *x, QnValue *scale, QnValue *bias, int64_t groups,
                              double eps)
{
    return qn_emit3(g, &qn_op_group_norm, &(Attr){ groups, eps }, x, scale, bias);
}

const QnOp qn_op_group_norm = {
    .name = "group_norm",
    .version = 1,
    .doc = "normalises groups of channels of each sample",
    .n_in = 3,
    QN_ATTRS(Attr, group_norm_fields),
    .infer = group_norm_infer,
    .lower = group_norm_lower,
    QN_SAMPLES(group_norm_samples),
};
#endif
