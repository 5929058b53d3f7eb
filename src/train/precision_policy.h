/* What `precision: auto` decides by: how much of a tensor's values a type of number would lose, and
 * the rule, with hysteresis, that moves a layer from one type to another. Nothing here knows of
 * graphs. */
#ifndef QN_TRAIN_PRECISION_POLICY_H
#define QN_TRAIN_PRECISION_POLICY_H

#include "train/recipe.h"

enum { QN_AUTO_TYPES = 4 }; /* by QnPrecision: fp32, bf16, fp16, fp8 */

/* Of the elements that are not zero. */
typedef struct QnRoundingStats {
    double overflow;  /* share beyond the type's largest, or not finite to begin with */
    double underflow; /* share that rounds to zero */
    double snr;       /* sum of x^2 over sum of (x - rounded x)^2, of those that do not overflow;
                       * infinite where nothing is lost */
} QnRoundingStats;

/* Of x[0..n) times `scale`, rounded to the type to nearest, as casts round. fp8 is e5m2, that of
 * gradients, and brings the largest element below the type's by a power of two (ops/f8.h). */
QnRoundingStats qn_rounding_stats(const float *x, int64_t n, double scale, QnPrecision type);
/* The worse of two, each number by itself. */
QnRoundingStats qn_rounding_worse(QnRoundingStats a, QnRoundingStats b);

/* A type is left at once beyond these limits, and taken only within half of them. */
#define QN_AUTO_UNDERFLOW 0.01  /* share */
#define QN_AUTO_SNR       100.0 /* 20 dB: 1 % of the power is noise */

typedef struct QnAutoLayer {
    const char *name; /* of its weight */
    bool takes_f8;    /* its lengths do, and the recipe allows it */
    QnPrecision now;
    int64_t clean[QN_AUTO_TYPES]; /* probes in a row at which the type would have been taken */
    int64_t steps[QN_AUTO_TYPES]; /* updates done in it */
} QnAutoLayer;

/* Takes one probe's statistics, by type, into account and returns the type to go on in: `now` or
 * another. One violation raises it; `hold` clean probes in a row lower it, to fp8 before fp16
 * (finer) before bf16 before fp32. *because is the type whose numbers decided. */
QnPrecision qn_auto_decide(QnAutoLayer *l, const QnRoundingStats stats[QN_AUTO_TYPES], int64_t hold,
                           QnPrecision *because);
/* Whether one costs less than the other, or as much and is finer. */
bool qn_auto_is_lower(QnPrecision a, QnPrecision than);

/* Whether a probe comes before this update: 0, 8, 16, 32 … and every `every`. */
bool qn_auto_is_due(int64_t update, int64_t every);

#endif
