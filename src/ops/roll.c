/* Axes turned: what leaves at the end comes back at the start. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/util.h"

typedef struct Attr {
    QnInts axes, shifts;
} Attr;

static const QnAttrField roll_fields[] = {
    { .name = "axes", .kind = QN_ATTR_INTS, .offset = offsetof(Attr, axes), .doc = "turned axes" },
    { .name = "shifts",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(Attr, shifts),
      .doc = "elements by which each moves towards its end" },
};

static QnStatus roll_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    unsigned mask;
    if (a->axes.n != a->shifts.n)
        return qn_fail(QN_EARG, "roll: %d axes and %d shifts; give one each", a->axes.n,
                       a->shifts.n);
    QN_TRY(qn_util_axes_mask("roll", &c->in[0]->shape, &a->axes, &mask));
    for (int i = 0; i < a->shifts.n; i++) {
        if (a->shifts.v[i] == INT64_MIN)
            return qn_fail(QN_EARG, "roll: shift %d is out of range", i);
    }
    c->out[0] = *c->in[0];
    return QN_OK;
}

static void roll_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnValue *x = n->in[0];
    for (int i = 0; i < a->axes.n; i++) {
        int axis = 0;
        qn_shape_axis(&x->type.shape, a->axes.v[i], &axis);
        int64_t k = a->shifts.v[i];
        QnDim length = x->type.shape.dim[axis];
        if (length >= 0)
            k = length ? k % length : 0;
        if (k == 0)
            continue;
        QnValue *tail = qn_slice_axis(g, x, axis, -k, INT64_MAX);
        QnValue *head = qn_slice_axis(g, x, axis, 0, -k);
        x = qn_concat(g, (QnValue *[]){ tail, head }, 2, axis);
    }
    out[0] = x;
}

static const QnSample roll_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ { 1, { 1 } }, { 1, { 3 } } } },
    { .in = { { 3, { 2, 130, 3 } } },
      .n_in = 1,
      .attr = &(Attr){ { 2, { 1, -1 } }, { 2, { -131, 2 } } } },
};

QN_API QnValue *qn_roll(QnGraph *g, QnValue *x, QnInts axes, QnInts shifts)
{
    return qn_emit1(g, &qn_op_roll, &(Attr){ axes, shifts }, x);
}

const QnOp qn_op_roll = {
    .name = "roll",
    .version = 1,
    .doc = "axes turned by a number of elements",
    .n_in = 1,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, roll_fields),
    .infer = roll_infer,
    .lower = roll_lower,
    QN_SAMPLES(roll_samples),
};
#endif
