/* What finished runs took over what was predicted, kept in a small file of JSON lines, and what the
 * next prediction learns from it. */
#ifndef QN_PLAN_RESIDUAL_H
#define QN_PLAN_RESIDUAL_H

#include "plan/count.h"

enum { QN_RESIDUALS = 20, QN_RESIDUAL_LIMIT = 256 << 10 };

typedef struct QnResidual {
    char device[128], model[24], name[64], stack[16];
    double predicted_s, measured_s; /* of an update; as predicted without any residual */
    int64_t time;                   /* when the run ended, seconds since 1970 */
} QnResidual;

typedef struct QnResiduals {
    QnResidual *items; /* oldest first */
    int64_t n, cap;
    int64_t n_corrupt; /* lines that were skipped */
} QnResiduals;

/* A missing file has none. Corrupt lines are skipped and counted. */
QnStatus qn_residuals_read(const char *path, QnResiduals *out);
void qn_residuals_fini(QnResiduals *r);

/* Adds a line in one write, so that several processes may at once. Beyond QN_RESIDUAL_LIMIT bytes
 * the older half goes. */
QnStatus qn_residual_append(const char *path, const QnResidual *r);

/* The factor on the time that the last QN_RESIDUALS runs of the device, model and stack suggest:
 * exp(n / (n + 2) * median of log(measured / predicted)), and their number n. 1 and 0: there is
 * none. */
double qn_residual_factor(const QnResiduals *r, const char *device, const char *model,
                          const char *stack, int64_t *n);

/* Names a step by its work: operators, shapes and how often, whatever the order. Equal steps have
 * equal names on one machine and another. */
typedef struct QnWorkHash {
    uint64_t sum;
} QnWorkHash;
void qn_work_hash_add(QnWorkHash *h, const QnWork *w);
void qn_work_hash_text(const QnWorkHash *h, char out[24]);

#endif
