/* Writes a value into a state tensor at the end of its last reading; the output is the new state.
 * The planner lets the value be computed in the state's own memory wherever it can. */
#include "ops/dialect.h"

#ifdef QN_HOST

static QnStatus assign_infer(QnInfer *c)
{
    if (!qn_type_is_equal(c->in[0], c->in[1])) {
        char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "assign: the state is %s, the value %s",
                       qn_type_text(c->in[0], a), qn_type_text(c->in[1], b));
    }
    c->out[0] = *c->in[0];
    return QN_OK;
}

static QnStatus assign_ref(const QnRefArgs *a)
{
    int64_t n = qn_shape_count(&a->out_type[0]->shape);
    memcpy(a->out[0], a->in[1], (size_t)n * sizeof(double));
    return QN_OK;
}

static const QnSample assign_samples[] = {
    { .in = { { 2, { 3, 4 } }, { 2, { 3, 4 } } }, .n_in = 2, .flags = QN_SAMPLE_NO_GRAD },
    { .in = { { 1, { 130 } }, { 1, { 130 } } }, .n_in = 2, .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_assign(QnGraph *g, QnValue *state, QnValue *value)
{
    return qn_emit2(g, &qn_op_assign, NULL, state, value);
}

const QnOp qn_op_assign = {
    .name = "assign",
    .version = 1,
    .doc = "state becomes value",
    .n_in = 2,
    .traits = QN_EFFECT | QN_NO_GRAD | QN_NO_FOLD | QN_MOVES_DATA,
    .infer = assign_infer,
    .ref = assign_ref,
    .inplace = 3,
    QN_SAMPLES(assign_samples),
};
#endif
