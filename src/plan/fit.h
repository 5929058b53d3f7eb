/* The coefficients that agree best with measurements. */
#ifndef QN_PLAN_FIT_H
#define QN_PLAN_FIT_H

#include "plan/measured.h"

/* use[i]: whether row i takes part; NULL: all do. Coordinate descent on the logarithms of the
 * coefficients: each is moved up and down by a step that shrinks, and stays where the mean of
 * |log(predicted / measured)|, large errors counted as 1, is least; a weak pull to the start values
 * decides what the rows leave open. The same rows give the same result. */
QnStatus qn_fit(const QnMeasuredSet *s, const bool *use, int sweeps, QnCoefs *out);

#endif
