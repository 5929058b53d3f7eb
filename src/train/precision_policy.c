#include "train/precision_policy.h"

#include "base/float8.h"
#include "base/half.h"

#include <math.h>

const char *qn_precision_name(QnPrecision p)
{
    static const char *const names[] = { "fp32", "bf16", "fp16", "fp8", "auto" };
    return names[p];
}

/* ---- statistics ---- */

static double rounded(double x, QnPrecision type)
{
    switch (type) {
    case QN_PRECISION_BF16: return qn_bf16_to_f32(qn_f32_to_bf16((float)x));
    case QN_PRECISION_FP16: return qn_f16_to_f32(qn_f32_to_f16((float)x));
    case QN_PRECISION_FP8:
        return qn_float8_decode(QN_FLOAT8_E5M2, qn_float8_encode(QN_FLOAT8_E5M2, x));
    default: return (float)x;
    }
}

/* A scale for the whole tensor, as qn_f8_scale has it. */
static double scale_of_f8(const float *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]))
            most = fmax(most, fabs((double)x[i]));
    }
    if (!(most > 1e-30))
        return 1;
    double octaves = floor(log2(qn_float8_max(QN_FLOAT8_E5M2) / most));
    return ldexp(1, (int)fmin(fmax(octaves, -60), 60));
}

QnRoundingStats qn_rounding_stats(const float *x, int64_t n, double scale, QnPrecision type)
{
    int64_t count = 0, over = 0, under = 0;
    double signal = 0, noise = 0;
    if (type == QN_PRECISION_FP8)
        scale = scale_of_f8(x, n);
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == 0)
            continue;
        double v = (double)x[i] * scale, r = rounded(v, type);
        count++;
        if (!isfinite(r)) {
            over++;
            continue;
        }
        under += r == 0;
        signal += v * v;
        noise += (v - r) * (v - r);
    }
    QnRoundingStats s = { .snr = noise > 0 ? signal / noise : INFINITY };
    if (count) {
        s.overflow = (double)over / (double)count;
        s.underflow = (double)under / (double)count;
    }
    return s;
}

QnRoundingStats qn_rounding_worse(QnRoundingStats a, QnRoundingStats b)
{
    return (QnRoundingStats){ .overflow = fmax(a.overflow, b.overflow),
                              .underflow = fmax(a.underflow, b.underflow),
                              .snr = fmin(a.snr, b.snr) };
}

/* ---- the rule ---- */

/* From the lowest up. */
static const QnPrecision order[QN_AUTO_TYPES] = { QN_PRECISION_FP8, QN_PRECISION_FP16,
                                                  QN_PRECISION_BF16, QN_PRECISION_FP32 };

static int rank_of(QnPrecision p)
{
    int i = 0;
    while (i < QN_AUTO_TYPES - 1 && order[i] != p)
        i++;
    return i;
}

bool qn_auto_is_lower(QnPrecision a, QnPrecision than)
{
    return rank_of(a) < rank_of(than);
}

static bool is_within(const QnRoundingStats *s, double part)
{
    return s->overflow == 0 && s->underflow <= part * QN_AUTO_UNDERFLOW &&
           s->snr >= QN_AUTO_SNR / part;
}

QnPrecision qn_auto_decide(QnAutoLayer *l, const QnRoundingStats stats[QN_AUTO_TYPES], int64_t hold,
                           QnPrecision *because)
{
    int at = rank_of(l->now);
    for (int t = 0; t < QN_AUTO_TYPES; t++)
        l->clean[t] = is_within(&stats[t], 0.5) ? l->clean[t] + 1 : 0;
    *because = l->now;
    if (l->now != QN_PRECISION_FP32 && !is_within(&stats[l->now], 1)) {
        while (++at < QN_AUTO_TYPES - 1 && !is_within(&stats[order[at]], 1))
            ;
        return order[at];
    }
    for (int i = 0; i < at; i++) {
        if ((order[i] == QN_PRECISION_FP8 && !l->takes_f8) || l->clean[order[i]] < hold)
            continue;
        return *because = order[i];
    }
    return l->now;
}

bool qn_auto_is_due(int64_t update, int64_t every)
{
    bool early = update < every && update >= 8 && (update & (update - 1)) == 0;
    return update % every == 0 || early;
}
