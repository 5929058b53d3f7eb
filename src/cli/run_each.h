/* `quern run --each`: streams. */
#ifndef QN_CLI_RUN_EACH_H
#define QN_CLI_RUN_EACH_H

#include "cli/cli.h"

typedef struct QnRunEach {
    const char *each; /* "a,b": inputs that have a row for each run */
    const char *feed; /* "in=out,…": from the second run on, in is the last run's out; or NULL */
    const char *output; /* folder for the outputs, stacked; or NULL */
    const QnChoices *choices;
} QnRunEach;
/* Inputs are a->many, "NAME=FILE.npy". */
QnStatus qn_run_each(const QnArgs *a, QnDevice *d, const QnRunEach *o);

#endif
