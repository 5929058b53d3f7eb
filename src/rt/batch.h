/* Runs of steps by one device text, as the updates of all parameters: one launch does them all.
 * What it works on, its kernel reads from a table in device memory, a row a step. */
#ifndef QN_RT_BATCH_H
#define QN_RT_BATCH_H

#include "rt/device.h"

enum { QN_BATCH_ITEMS = 256 }; /* of a work group; each works for one step */

/* What a device makes a launch of. */
typedef struct QnBatchLaunch {
    const char *text; /* after the dialect; its kernel is qn_batch(table, n_rows) */
    QnDtype storage;  /* the type of QN_T */
    const void *table;
    int64_t n_rows, n_groups;
    const void *const *pointers; /* all that the table holds, for devices that must be told */
    int64_t n_pointers;
} QnBatchLaunch;

typedef struct QnBatch {
    int64_t first, n;     /* steps */
    int64_t table_offset; /* among the constants */
    int64_t row_words;    /* 64-bit words: first group, pointers, scalars */
    void *launch;         /* the device's own; NULL: steps are launched one by one */
} QnBatch;

typedef struct QnBatches {
    QnBatch *items; /* in the order of steps */
    int64_t n, cap;
} QnBatches;

struct QnPlan;
/* Finds runs of steps whose launches are alike, and reserves their tables behind *bytes of
 * constants. Kernels are prepared. */
QnStatus qn_batches_find(struct QnPlan *p, int64_t *bytes);
/* Writes the tables and asks the device for launches, once buffers have addresses. Steps that touch
 * each other's memory do not share one; where the device refuses, none do. */
QnStatus qn_batches_make(struct QnPlan *p);
void qn_batches_free(struct QnPlan *p);
/* The batch that starts at the step; NULL: it is launched alone, or with one before it. */
const QnBatch *qn_batch_at(const struct QnPlan *p, int64_t step);

#endif
