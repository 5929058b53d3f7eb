/* Steps that a device leaves to the host. */
#ifndef QN_CLI_HOST_STEPS_H
#define QN_CLI_HOST_STEPS_H

#include "base/log.h"
#include "rt/plan.h"

/* One line where steps of the plan run on the host by the reference, far slower than the device:
 * how many, the first and why. NULL is a plan without any. */
void qn_host_steps_warn(const QnPlan *p, const QnDevice *d, const QnLog *log);

#endif
