/* The graphs of what quern plan is given as a file: QnFamily.graph and .step. */
#ifndef QN_CLI_PLAN_GRAPH_H
#define QN_CLI_PLAN_GRAPH_H

#include "cli/plan_subject.h"
#include "plan/step.h"

/* A step of a recipe as `quern train` builds it, or of its evaluation. */
QnStatus qn_plan_graph_recipe(const QnModel *m, const QnCountRequest *r, QnStep *out);
/* An ONNX file that has one input and one output: a run, or the loss of training it with the
 * classifier that it has, for any batch. */
QnValue *qn_plan_step_onnx(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers);
/* A run of any other, as `quern run` imports it, for the batch that its shapes allow. */
QnStatus qn_plan_graph_onnx(const QnModel *m, const QnCountRequest *r, QnStep *out);
bool qn_plan_graph_is_plain(const QnOnnxModel *m);

#endif
