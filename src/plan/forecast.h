/* What a training run on this machine will take, from its own plans: plan/calib.h. */
#ifndef QN_PLAN_FORECAST_H
#define QN_PLAN_FORECAST_H

#include "plan/calib.h"
#include "plan/residual.h"

typedef struct QnForecast {
    double update_s, eval_batch_s; /* 0: not known */
    double raw_update_s;           /* without residuals */
    double factor;                 /* by earlier runs of this step here */
    int64_t n_earlier;
    double spread;       /* 80 % of cases lie within a factor of exp(this) */
    double watts;        /* 0: not known */
    double usd_per_hour; /* 0: not known */
    char device[128], model[24];
} QnForecast;

/* A run as it is compiled; update and eval may be NULL. */
typedef struct QnRunPlans {
    QnDevice *device;
    const QnPlan *train, *update, *eval;
    int64_t micro_batches; /* runs of train before update */
    bool fp32;             /* no products in fewer bits */
} QnRunPlans;

/* Where there is no calibration for the device, its threads and the precision, only the device's
 * name is set. calib and earlier may be NULL. */
void qn_forecast(const QnRunPlans *p, const QnCalib *calib, const QnResiduals *earlier,
                 QnForecast *out);

#endif
