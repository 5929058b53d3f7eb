/* What optimizers' update operators share: inputs p (the parameter), its moments, g (its gradient),
 * lr (f32 scalar) and for some step (i64 scalar, 1 at the first update); outputs the new p and
 * moments, each in the place of its old one. A negative lr leaves all of them as they are: so steps
 * are left out whose gradients overflowed, without copies of what they would change. */
#ifndef QN_OPS_UPDATE_H
#define QN_OPS_UPDATE_H

#include "ir/graph.h"

#define QN_UPDATE_FIELD(Type, member, text, value, what)                                           \
    {                                                                                              \
        .name = text, .kind = QN_ATTR_FLOAT, .offset = offsetof(Type, member), .def = (value),     \
        .min = 0, .max = 1e30, .doc = (what)                                                       \
    }

/* Types of the outputs, after checking the inputs. */
QnStatus qn_update_infer(QnInfer *c, const char *op, int n_moments, bool has_step);
/* Flops an element of p. */
QnCost qn_update_cost(const QnNode *n, double flops);
/* Whether lr, this input, is negative: the outputs are then the inputs. */
bool qn_update_is_left_out(const QnRefArgs *r, int lr);
/* One item for four elements; the first scalar is their count. */
void qn_update_call(const QnNode *n, const char *kernel, const char *at, QnDeviceCall *c);
/* 1 - beta^step, for kernels as step * log(beta): gives that logarithm, -inf for beta 0. */
double qn_update_log(double beta);

/* Emits the node; moments are NULL-terminated by their count, step may be NULL. */
QnNode *qn_update_emit(QnGraph *g, const QnOp *op, const void *attr, QnValue *p,
                       QnValue *const *moments, int n_moments, QnValue *grad, QnValue *lr,
                       QnValue *step);

#endif
