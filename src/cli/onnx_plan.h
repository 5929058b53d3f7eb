/* An ONNX model as one plan, for commands that look at what would run. */
#ifndef QN_CLI_ONNX_PLAN_H
#define QN_CLI_ONNX_PLAN_H

#include "cli/cli.h"
#include "onnx/onnx.h"
#include "rt/plan.h"

/* By the end of the name. */
bool qn_cli_is_onnx(const char *path);

typedef struct QnOnnxPlanOptions {
    const char *device;
    int64_t threads, batch;       /* 0: as for other commands; as the file says */
    int dim_option, input_option; /* numbers of --dim and --input */
} QnOnnxPlanOptions;

typedef struct QnOnnxPlan {
    QnArena *arena;
    QnOnnxModel *model;
    QnDevice *host, *device; /* that import computes on; that the plan is for */
    QnChoices *choices;      /* what `quern tune` has measured */
    QnGraph *graph;
    QnPlan *plan;
    QnOnnxProblems problems;
} QnOnnxPlan;

/* The model of a->positional[0], compiled as its runs are. Dims without a number, and nodes that
 * need the elements of inputs which --input does not give, are errors. *out is to be closed on
 * failure too. */
QnStatus qn_onnx_plan_open(const QnArgs *a, const QnOnnxPlanOptions *o, QnOnnxPlan *out);
void qn_onnx_plan_close(QnOnnxPlan *p);

#endif
