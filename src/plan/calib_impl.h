/* Between calibrate.c and what it measures the machine by. */
#ifndef QN_PLAN_CALIB_IMPL_H
#define QN_PLAN_CALIB_IMPL_H

#include "plan/calib.h"

/* Processor, threads, memory, cache. */
void qn_calib_describe(const QnDevice *d, QnCalib *c);
/* The package's energy counter, in joules; NAN: there is none that we may read. */
double qn_calib_joules(void);
/* How long decoding a JPEG takes. */
QnStatus qn_calib_jpeg(QnCalib *c);

#endif
