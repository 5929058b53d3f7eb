/* A sum and its layer normalisation in one pass over memory: s = a + b, y = layer_norm(s), as a
 * residual net needs it. Made by the passes, never by models. Inputs a and b of one shape, scale,
 * and bias if there is one; outputs s if it is kept, y, mean, rstd as layer_norm has them. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/norm.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t axis;
    double eps;
    bool keep;
} Attr;

static const QnAttrField add_layer_norm_fields[] = {
    { .name = "axis",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, axis),
      .def = -1,
      .min = -QN_MAX_RANK,
      .max = QN_MAX_RANK - 1,
      .doc = "first normalised axis" },
    QN_NORM_EPS(Attr, 1e-5, "added to the variance"),
    { .name = "keep",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, keep),
      .doc = "the sum is an output as well, the first" },
};

static QnStatus add_layer_norm_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnLayerNormAttr norm = { a->axis, a->eps };
    const QnType *in[] = { c->in[0], c->in[2], c->n_in > 3 ? c->in[3] : NULL };
    QnInfer of = { .graph = c->graph, .attr = &norm, .n_in = c->n_in - 1, .in = in, .n_out = 3 };
    QN_TRY(qn_norm_dtypes(c, "add_layer_norm", ~0u));
    QN_TRY(qn_norm_shape(c, "add_layer_norm", 1, &c->in[0]->shape));
    QN_TRY(qn_op_layer_norm.infer(&of));
    c->n_out = a->keep + of.n_out;
    c->out[0] = *c->in[0];
    memcpy(c->out + a->keep, of.out, (size_t)of.n_out * sizeof of.out[0]);
    return QN_OK;
}

static QnCost add_layer_norm_cost(const QnNode *n)
{
    QnCost c = { .flops = (5.0 + n->n_in - 1) * (double)qn_shape_count(&n->in[0]->type.shape) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

static void add_layer_norm_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnValue *s = qn_add(g, n->in[0], n->in[1]);
    QnNode *norm =
        qn_layer_norm_node(g, s, n->in[2], n->n_in > 3 ? n->in[3] : NULL, a->axis, a->eps);
    out[0] = s;
    for (int i = 0; i < 3; i++)
        out[a->keep + i] = qn_node_out(g, norm, i);
}

static QnStatus add_layer_norm_call(const QnNode *n, QnDeviceCall *c)
{
    static const char *const kernels[2][2] = { { "layer_norm_sum_scale", "layer_norm_sum_affine" },
                                               { "layer_norm_kept_sum_scale",
                                                 "layer_norm_kept_sum_affine" } };
    const Attr *a = n->attr;
    int64_t rows = qn_shape_count(&n->out[n->n_out - 1].type.shape);
    *c = (QnDeviceCall){ .kernel = kernels[a->keep][n->n_in > 3 && n->in[3]],
                         .n_groups = rows,
                         .group_size = QN_GROUP };
    qn_device_int(c, rows ? qn_shape_count(&n->in[0]->type.shape) / rows : 0);
    qn_device_float(c, a->eps);
    return QN_OK;
}

static const QnSample add_layer_norm_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 4, 7 } }, { 1, { 7 } }, { 1, { 7 } } },
      .n_in = 4,
      .attr = &(Attr){ -1, 1e-5, true } },
    { .in = { { 3, { 2, 3, 330 } }, { 3, { 2, 3, 330 } }, { 1, { 330 } } },
      .n_in = 3,
      .attr = &(Attr){ -1, 1e-3, true },
      .lo = -3,
      .hi = 5 },
    { .in = { { 4, { 2, 2, 3, 2 } }, { 4, { 2, 2, 3, 2 } }, { 2, { 3, 2 } }, { 2, { 3, 2 } } },
      .n_in = 4,
      .attr = &(Attr){ 2, 1e-6, false } },
    { .in = { { 2, { 5, 40 } }, { 2, { 5, 40 } }, { 1, { 40 } } },
      .n_in = 3,
      .attr = &(Attr){ 1, 1e-5, false } },
};

/* a + b and the layer_norm node `norm` of it in one; NULL: it has no scale. The outputs are those
 * of `norm`, with `keep` behind the sum. */
QN_API QnNode *qn_add_layer_norm(QnGraph *g, QnValue *a, QnValue *b, const QnNode *norm, bool keep)
{
    const QnLayerNormAttr *n = norm->attr;
    QnValue *in[4] = { a, b };
    if (norm->n_in < 2 || !norm->in[1])
        return NULL;
    memcpy(in + 2, norm->in + 1, (size_t)(norm->n_in - 1) * sizeof *in);
    return qn_emit(g, &qn_op_add_layer_norm, &(Attr){ n->axis, n->eps, keep }, in, norm->n_in + 1);
}

const QnOp qn_op_add_layer_norm = {
    .name = "add_layer_norm",
    .version = 1,
    .doc = "layer_norm of a sum, in one pass over memory",
    .n_in = 3,
    .n_in_max = 4,
    .n_out = -1,
    .traits = QN_ROWWISE,
    QN_ATTRS(Attr, add_layer_norm_fields),
    .infer = add_layer_norm_infer,
    .cost = add_layer_norm_cost,
    .lower = add_layer_norm_lower,
    .inplace = 3,
    .device = QN_TEXT(layer_norm),
    .call = add_layer_norm_call,
    QN_SAMPLES(add_layer_norm_samples),
};
#endif
