/* Measuring the machine that we run on: plan/calib.h. */
#ifndef QN_PLAN_CALIBRATE_H
#define QN_PLAN_CALIBRATE_H

#include "plan/calib.h"

typedef struct QnCalibrateOptions {
    double seconds;           /* about how long it may take */
    const QnChoices *choices; /* of kernels, as training will have them; or NULL */
    void (*progress)(void *ctx, double part, const char *what); /* part of all, 0 to 1; or NULL */
    void *ctx;
} QnCalibrateOptions;

/* device: of the host. Little time measures fewer nets; at least three are. */
QnStatus qn_calibrate(QnDevice *device, const QnCalibrateOptions *o, QnCalib *out);

/* What a step of the model takes here when nothing else disturbs it: of its runs in `seconds` the
 * fastest tenth, kernel by kernel. */
QnStatus qn_calibrate_step(QnDevice *device, const QnChoices *choices, const QnModel *m,
                           const QnCountRequest *request, double seconds, double *step_s);

/* ---- the fit, for whoever has other samples ---- */

typedef struct QnCalibSample {
    QnWork work;
    double seconds; /* of one kernel */
    int net;        /* where it was met */
} QnCalibSample;

/* Groups from all samples but those of net `without` (-1: all). */
QnStatus qn_calib_fit(QnCalib *c, const QnCalibSample *s, int64_t n, int without);

#endif
