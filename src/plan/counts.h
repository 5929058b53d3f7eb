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

/* Answers of `out` tokens to prompts of `in`: the prompt's step gives the first token, then follow
 * `steps` equal ones, counted at the mean length of what is kept. A batch takes
 * time(prompt) + steps * time(step); memory is that of `last`, the
 * longest of them. */
typedef struct QnGeneration {
    const QnCount *prompt, *step, *last;
    double steps;
} QnGeneration;
/* r->sequence and r->context are not read. */
QnStatus qn_counts_generation(QnCounts *c, const QnModel *m, const QnCountRequest *r, int64_t in,
                              int64_t out, QnGeneration *g);

#endif
