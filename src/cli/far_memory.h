/* Says, before a run begins, that it takes more than the device has, and what that costs. */
#ifndef QN_CLI_FAR_MEMORY_H
#define QN_CLI_FAR_MEMORY_H

#include "cli/run_setup.h"

/* Nothing where all lies in the device's memory. The rates are measured for it. */
void qn_far_warn(const QnSetup *s, const QnLog *log);

#endif
