/* A tensor that lives across runs: parameters, optimizer moments, running statistics. */
#include "ops/dialect.h"

#ifdef QN_HOST

static const char *const init_names[] = { "zeros",  "constant",     "uniform",
                                          "normal", "trunc_normal", NULL };

static const QnAttrField state_fields[] = {
    { .name = "name",
      .kind = QN_ATTR_STRING,
      .offset = offsetof(QnStateAttr, name),
      .doc = "unique in the graph; checkpoints use it" },
    { .name = "dtype",
      .kind = QN_ATTR_DTYPE,
      .offset = offsetof(QnStateAttr, dtype),
      .doc = "element type" },
    { .name = "dims", .kind = QN_ATTR_DIMS, .offset = offsetof(QnStateAttr, dims), .doc = "shape" },
    { .name = "trainable",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(QnStateAttr, trainable),
      .doc = "a parameter that optimizers update" },
    { .name = "init",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnStateAttr, init),
      .names = init_names,
      .doc = "first content: constant a; uniform in [a,b); normal with mean a, deviation b" },
    { .name = "a", .kind = QN_ATTR_FLOAT, .offset = offsetof(QnStateAttr, a), .doc = "see init" },
    { .name = "b",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(QnStateAttr, b),
      .doc = "see init; trunc_normal cuts at 2 b" },
};

static QnStatus state_infer(QnInfer *c)
{
    const QnStateAttr *a = c->attr;
    c->out[0].dtype = a->dtype;
    c->out[0].shape = qn_shape_make(a->dims.n, a->dims.d);
    return QN_OK;
}

static QnCost state_cost(const QnNode *n)
{
    (void)n;
    return (QnCost){ 0 };
}

static const QnSample state_samples[] = {
    { .attr = &(QnStateAttr){ .name = "w", .dims = { 2, { 3, 4 } }, .trainable = true },
      .flags = QN_SAMPLE_NO_GRAD },
    { .attr =
          &(QnStateAttr){
              .name = "b", .dims = { 1, { 5 } }, .init = QN_INIT_UNIFORM, .a = -1, .b = 1 },
      .flags = QN_SAMPLE_NO_GRAD },
};

QN_API QnValue *qn_state(QnGraph *g, const QnStateAttr *attr)
{
    return qn_emit0(g, &qn_op_state, attr);
}

const QnOp qn_op_state = {
    .name = "state",
    .version = 1,
    .doc = "a tensor that lives across runs",
    .traits = QN_LEAF | QN_STATE | QN_NO_GRAD | QN_NO_FOLD,
    QN_ATTRS(QnStateAttr, state_fields),
    .infer = state_infer,
    .cost = state_cost,
    QN_SAMPLES(state_samples),
};
#endif
