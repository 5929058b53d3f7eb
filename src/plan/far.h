/* What it costs that plans take more than their device has, and part of them lies in memory of the
 * host. */
#ifndef QN_PLAN_FAR_H
#define QN_PLAN_FAR_H

#include "plan/rates.h"
#include "rt/plan.h"

typedef struct QnFarRun { /* plans of one update, or of one batch */
    const QnPlan *plan;   /* NULL is fine */
    double runs;
} QnFarRun;

typedef struct QnFarPrice {
    double need_bytes, has_bytes; /* of the device's own memory */
    double far_bytes;             /* that lie in memory of the host; 0: nothing does */
    double out_bytes;             /* of them, that have no place on the device */
    double bus_bytes, bus_s;      /* over the bus in an update, at least */
    double step_s;                /* what it would take without, by the rates */
    double factor;                /* times as long */
    double batch_share;           /* of the batch, that would fit; 0: not even the smallest */
} QnFarPrice;

/* By the rates that are given. What the runs do not name (evaluation beside training) counts as
 * memory, not as traffic. */
QnFarPrice qn_far_price(const QnFarRun *runs, int n_runs, const QnDevice *d,
                        const QnDeviceInfo *info, const QnDeviceRates *rates);

#endif
