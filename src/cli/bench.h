/* What the parts of `quern bench` share. */
#ifndef QN_CLI_BENCH_H
#define QN_CLI_BENCH_H

#include "cli/cli.h"
#include "rt/plan.h"

/* Prints what each step of a profiled plan has taken, beside what the machine's limits allow, the
 * largest gap between them first: as a table, or a JSON object a step. */
QnStatus qn_bench_profile(const QnPlan *p, const QnKernelEnv *env, bool json);

typedef struct QnBenchOnnx {
    int64_t batch;   /* 0: the file's */
    int64_t threads; /* 0: one a core */
    int64_t runs;    /* 0: two seconds of them */
    bool profile;
    int dim_option; /* number of --dim; all other words with '=' are inputs */
} QnBenchOnnx;
/* Times an ONNX model on random inputs: from opening the file to the first answer, then runs. */
QnStatus qn_bench_onnx(const QnArgs *a, const QnBenchOnnx *o);

#endif
