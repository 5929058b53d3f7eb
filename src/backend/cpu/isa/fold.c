/* Folding adjacent floats, and columns, in a fixed order. */
#include "backend/cpu/fold.h"
#include "backend/cpu/isa/simd.h"
#include "base/vmath.h"

enum { LANES = 4 * VW };

QN_INLINE float start(QnFoldKind kind)
{
    return kind == QN_FOLD_PROD  ? 1.0f
           : kind == QN_FOLD_MAX ? -QN_INF
           : kind == QN_FOLD_MIN ? QN_INF
                                 : 0.0f;
}

/* a folded with element x. */
QN_INLINE float with_element(QnFoldKind kind, float a, float x)
{
    switch (kind) {
    case QN_FOLD_ABS: return a + fabsf(x);
    case QN_FOLD_SQUARE: return a + x * x;
    case QN_FOLD_PROD: return a * x;
    case QN_FOLD_MAX: return x > a || x != x ? x : a;
    case QN_FOLD_MIN: return x < a || x != x ? x : a;
    default: return a + x;
    }
}

/* Two folded results in one. */
QN_INLINE float join(QnFoldKind kind, float a, float b)
{
    return kind == QN_FOLD_ABS || kind == QN_FOLD_SQUARE ? a + b : with_element(kind, a, b);
}

QN_INLINE float run_of(QnFoldKind kind, const float *x, int64_t n)
{
    float lane[LANES], y = start(kind);
    int64_t i = 0;
    if (n < LANES) {
        for (; i < n; i++)
            y = with_element(kind, y, x[i]);
        return y;
    }
    for (int l = 0; l < LANES; l++)
        lane[l] = start(kind);
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++)
            lane[l] = with_element(kind, lane[l], x[i + l]);
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++)
            lane[l] = join(kind, lane[l], lane[l + half]);
    }
    for (; i < n; i++)
        y = with_element(kind, y, x[i]);
    return join(kind, lane[0], y);
}

QN_INLINE void columns_of(QnFoldKind kind, float *acc, const float *x, int64_t step, int64_t rows,
                          int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * step;
        QN_IVDEP for (int64_t j = 0; j < columns; j++) acc[j] = with_element(kind, acc[j], row[j]);
    }
}

#define EACH(call)                                                                                 \
    switch (kind) {                                                                                \
    case QN_FOLD_ABS: call(QN_FOLD_ABS); break;                                                    \
    case QN_FOLD_SQUARE: call(QN_FOLD_SQUARE); break;                                              \
    case QN_FOLD_PROD: call(QN_FOLD_PROD); break;                                                  \
    case QN_FOLD_MAX: call(QN_FOLD_MAX); break;                                                    \
    case QN_FOLD_MIN: call(QN_FOLD_MIN); break;                                                    \
    default: call(QN_FOLD_SUM); break;                                                             \
    }

static float run(QnFoldKind kind, const float *x, int64_t n)
{
    float y = 0;
#define RUN(k) y = run_of(k, x, n)
    EACH(RUN)
    return y;
}

static void columns(QnFoldKind kind, float *acc, const float *x, int64_t step, int64_t rows,
                    int64_t n)
{
#define COLUMNS(k) columns_of(k, acc, x, step, rows, n)
    EACH(COLUMNS)
}

static float exp_sum(const float *x, float m, int64_t n)
{
    float y[QN_FOLD_RUN];
    QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = qn_expf(x[i] - m);
    return run_of(QN_FOLD_SUM, y, n);
}

static float off_squares(const float *x, float m, int64_t n)
{
    float y[QN_FOLD_RUN];
    QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = x[i] - m;
    return run_of(QN_FOLD_SQUARE, y, n);
}

const QnFoldFns QN_ISA_NAME(qn_fold_fns) = {
    .run = run,
    .columns = columns,
    .exp_sum = exp_sum,
    .off_squares = off_squares,
};
