/* The same elements in another order in memory. Shapes and values do not change: only the layout
 * of the output's type does, which the layout pass sets after emission. */
#include "ops/dialect.h"

#ifdef QN_HOST

typedef struct Attr {
    int to; /* QnLayout */
} Attr;

static const char *const layout_names[] = { "plain", "channels_last", NULL };

static const QnAttrField relayout_fields[] = {
    { .name = "to",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(Attr, to),
      .names = layout_names,
      .doc = "order in memory of the output" },
};

static QnStatus relayout_infer(QnInfer *c)
{
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnStatus relayout_ref(const QnRefArgs *a)
{
    memcpy(a->out[0], a->in[0], (size_t)qn_shape_count(&a->out_type[0]->shape) * sizeof(double));
    return QN_OK;
}

static void relayout_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    (void)g;
    (void)n;
    dx[0] = dy[0];
}

static const QnSample relayout_samples[] = {
    { .in = { { 4, { 2, 3, 4, 5 } } }, .n_in = 1, .attr = &(Attr){ QN_LAYOUT_CHANNELS_LAST } },
    { .in = { { 3, { 2, 19, 130 } } }, .n_in = 1 },
};

/* x in the layout `to`. */
QN_API QnValue *qn_relayout(QnGraph *g, QnValue *x, QnLayout to)
{
    QnValue *y = qn_emit1(g, &qn_op_relayout, &(Attr){ (int)to }, x);
    if (!qn_value_is_poison(y))
        y->type.layout = to;
    return y;
}

const QnOp qn_op_relayout = {
    .name = "relayout",
    .version = 1,
    .doc = "the same tensor in another order in memory",
    .n_in = 1,
    .traits = QN_MOVES_DATA | QN_RELAYOUT,
    QN_ATTRS(Attr, relayout_fields),
    .infer = relayout_infer,
    .ref = relayout_ref,
    .grad = relayout_grad,
    QN_SAMPLES(relayout_samples),
};
#endif
