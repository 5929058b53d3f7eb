/* The coefficients and effects that agree best with measurements. */
#ifndef QN_PLAN_FIT_H
#define QN_PLAN_FIT_H

#include "base/str.h"
#include "plan/measured.h"

/* use[i]: whether row i takes part; NULL: all do. Writes the table that qn_coefs_parse reads.
 *
 * The logarithm of a step's time is linearised in the logarithms of all coefficients and effects;
 * each has a normal prior (a coefficient around its start, an effect around 0), and the step that
 * the rows and the priors agree on is taken, again and again. Rows far off weigh less, as for the
 * mean of absolute errors. How strongly effects of a group are drawn to 0 is estimated from their
 * own scatter. The same rows give the same result. */
QnStatus qn_fit(const QnMeasuredSet *s, const bool *use, QnStr *table);

#endif
