/* Counts that are kept, so that a catalogue of devices costs as much as one of them. */
#ifndef QN_PLAN_COUNTS_H
#define QN_PLAN_COUNTS_H

#include "plan/count.h"

typedef struct QnCounts QnCounts;
QnCounts *qn_counts_new(QnDevice *null_device); /* borrowed; NULL: out of memory */
void qn_counts_free(QnCounts *c);
/* Work and memory are linear in the batch, so two batches are counted and the others drawn through
 * them; where the passes made different graphs of the two, the batch itself is counted. The result
 * lives as long as c. */
QnStatus qn_counts_get(QnCounts *c, const QnModel *m, const QnCountRequest *r, const QnCount **out);

#endif
