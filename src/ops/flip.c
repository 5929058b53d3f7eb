/* Axes run backwards. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/util.h"

typedef struct Attr {
    QnInts axes;
} Attr;

static const QnAttrField flip_fields[] = {
    { .name = "axes",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, axes),
      .doc = "reversed axes; none: all" },
};

static QnStatus flip_infer(QnInfer *c)
{
    unsigned mask;
    QN_TRY(qn_util_axes_mask("flip", &c->in[0]->shape, &((const Attr *)c->attr)->axes, &mask));
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void flip_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const QnShape *s = &n->in[0]->type.shape;
    unsigned mask = 0;
    qn_util_axes_mask("flip", s, &((const Attr *)n->attr)->axes, &mask);
    QnSliceAttr a = { .axes.n = 0 };
    for (int i = 0; i < s->rank; i++) {
        if (!(mask >> i & 1))
            continue;
        a.axes.v[a.axes.n] = i;
        a.starts.v[a.axes.n] = -1;
        a.ends.v[a.axes.n] = INT64_MIN;
        a.steps.v[a.axes.n++] = -1;
    }
    a.starts.n = a.ends.n = a.steps.n = a.axes.n;
    out[0] = qn_slice(g, n->in[0], &a);
}

static const QnSample flip_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1 },
    { .in = { { 3, { 2, 130, 3 } } }, .n_in = 1, .attr = &(Attr){ { 2, { 1, -1 } } } },
};

QN_API QnValue *qn_flip(QnGraph *g, QnValue *x, QnInts axes)
{
    return qn_emit1(g, &qn_op_flip, &(Attr){ axes }, x);
}

const QnOp qn_op_flip = {
    .name = "flip",
    .version = 1,
    .doc = "axes run backwards",
    .n_in = 1,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, flip_fields),
    .infer = flip_infer,
    .lower = flip_lower,
    QN_SAMPLES(flip_samples),
};
#endif
