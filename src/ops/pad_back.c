/* The adjoint of pad: every element is added to the one that pad copied it from. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/region.h"

static const char *const mode_names[] = { "constant", "reflect", "edge", "wrap", NULL };

static const QnAttrField pad_back_fields[] = {
    { .name = "before",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnPadAttr, before),
      .doc = "elements that were added before each axis" },
    { .name = "after",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnPadAttr, after),
      .doc = "elements that were added after each axis" },
    { .name = "mode",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnPadAttr, mode),
      .names = mode_names,
      .doc = "what was added" },
    { .name = "value",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(QnPadAttr, value),
      .doc = "without meaning here" },
};

static QnStatus pad_back_infer(QnInfer *c)
{
    c->out[0].dtype = c->in[0]->dtype;
    return qn_region_pad(c->graph, "pad_back", &c->in[0]->shape, c->attr, true, &c->out[0].shape);
}

static QnCost pad_back_cost(const QnNode *n)
{
    return (QnCost){ .flops = (double)qn_shape_count(&n->in[0]->type.shape),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

static QnStatus pad_back_ref(const QnRefArgs *a)
{
    const QnPadAttr *attr = a->attr;
    const QnShape *from = &a->in_type[0]->shape, *s = &a->out_type[0]->shape;
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    qn_shape_strides(s, stride);
    memset(a->out[0], 0, (size_t)qn_shape_count(s) * sizeof(double));
    for (int64_t i = 0, n = qn_shape_count(from); i < n; i++) {
        int64_t to = 0;
        for (int d = 0; d < s->rank && to >= 0; d++) {
            int64_t j = qn_region_pad_index(index[d], attr->before.v[d], s->dim[d], attr->mode);
            to = j < 0 ? -1 : to + j * stride[d];
        }
        if (to >= 0)
            a->out[0][to] += a->in[0][i];
        qn_util_next(from, index);
    }
    return QN_OK;
}

static void pad_back_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnPadAttr a = *(const QnPadAttr *)n->attr;
    a.value = 0;
    dx[0] = qn_pad(g, dy[0], &a);
}

static const QnSample pad_back_samples[] = {
    { .in = { { 3, { 2, 9, 10 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 3, { 0, 3, 1 } }, { 3, { 0, 2, 4 } }, QN_PAD_REFLECT, 0 } },
    { .in = { { 2, { 6, 9 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 2, { 2, 0 } }, { 2, { 1, 5 } }, QN_PAD_EDGE, 0 } },
    { .in = { { 2, { 7, 130 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 2, { 4, 1 } }, { 2, { 0, 2 } }, QN_PAD_WRAP, 0 } },
};

QN_API QnValue *qn_pad_back(QnGraph *g, QnValue *x, const QnPadAttr *attr)
{
    return qn_emit1(g, &qn_op_pad_back, attr, x);
}

const QnOp qn_op_pad_back = {
    .name = "pad_back",
    .version = 1,
    .doc = "the adjoint of pad",
    .n_in = 1,
    QN_ATTRS(QnPadAttr, pad_back_fields),
    .infer = pad_back_infer,
    .cost = pad_back_cost,
    .ref = pad_back_ref,
    .grad = pad_back_grad,
    QN_SAMPLES(pad_back_samples),
};
#endif
