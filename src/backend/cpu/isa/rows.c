/* One row at a time, every sum in a fixed order. */
#include "backend/cpu/rows.h"
#include "backend/cpu/isa/row_folds.h"
#include "base/vmath.h"

/* Sum of (x - mean)^2. */
static float row_squares(const float *x, float mean, int64_t n)
{
    QnVec a = qn_vec_set(0), b = a;
    int64_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW) {
        QnVec u = qn_vec_load(x + i) - mean, v = qn_vec_load(x + i + VW) - mean;
        a += u * u;
        b += v * v;
    }
    float s = qn_vec_sum(a + b);
    for (; i < n; i++)
        s += (x[i] - mean) * (x[i] - mean);
    return s;
}

/* y = e^(x - max); returns their sum. Meanwhile the next row comes, or what lies there. */
static float row_exp(const float *x, float *y, int64_t n, float m)
{
    enum { BLOCK = 128, LINE = 16 };
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (int k = 0; k < BLOCK; k += LINE)
            qn_prefetch(x + n + i + k);
        QN_IVDEP for (int k = 0; k < BLOCK; k++) y[i + k] = qn_exp_belowf(x[i + k] - m);
    }
    QN_IVDEP for (; i < n; i++) y[i] = qn_exp_belowf(x[i] - m);
    return qn_row_sum(y, n);
}

static void softmax(const float *x, float *y, int64_t n)
{
    float k = 1 / row_exp(x, y, n, qn_row_max(x, n));
    QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] *= k;
}

static void log_softmax(const float *x, float *y, int64_t n, float *scratch)
{
    float m = qn_row_max(x, n), k = qn_logf(row_exp(x, scratch, n, m));
    QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = x[i] - m - k;
}

/* -sum of t * (x - k), k = m + log s, t = even / n everywhere and 1 - even more at the label, whose
 * score is `hit`. mean is that of x, where `even` is not 0. */
static float row_loss(float k, float hit, float mean, float even)
{
    float loss = even < 1 ? (1 - even) * (k - hit) : 0;
    return even > 0 ? loss + even * (k - mean) : loss;
}

static float row_mean(const float *x, int64_t n, float even)
{
    return even > 0 ? qn_row_sum(x, n) / (float)n : 0;
}

static float cross_entropy(const float *x, int64_t n, int64_t label, float even, float *scratch)
{
    float m = qn_row_max(x, n), k = m + qn_logf(row_exp(x, scratch, n, m));
    return row_loss(k, x[label], row_mean(x, n, even), even);
}

static float cross_entropy_grad(const float *x, float *dx, int64_t n, int64_t label, float even,
                                float dy, bool wants_loss)
{
    float hit = x[label], mean = wants_loss ? row_mean(x, n, even) : 0, m = qn_row_max(x, n);
    float s = row_exp(x, dx, n, m), k = dy / s, t = even / (float)n * dy;
    QN_IVDEP for (int64_t i = 0; i < n; i++) dx[i] = dx[i] * k - t;
    dx[label] -= (1 - even) * dy;
    return wants_loss ? row_loss(m + qn_logf(s), hit, mean, even) : 0;
}

static void add(const float *a, const float *b, float *y, int64_t n)
{
    QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void norm(const float *x, float *y, const float *scale, const float *bias, int64_t n,
                 float eps, float *mean, float *rstd)
{
    float count = n > 0 ? (float)n : 1; /* of nothing, the mean is 0 */
    float m = mean ? qn_row_sum(x, n) / count : 0;
    float r = 1 / sqrtf(row_squares(x, m, n) / count + eps);
    if (mean)
        *mean = m;
    *rstd = r;
    if (scale && bias) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * scale[i] + bias[i];
    } else if (scale) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * scale[i];
    } else {
        QN_IVDEP for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r;
    }
}

/* Sums of h and of h * (x - mean), h = dy * scale. */
static void grad_sums(const float *dy, const float *x, const float *scale, int64_t n, float mean,
                      float *sum, float *dot)
{
    QnVec a = qn_vec_set(0), b = a;
    int64_t i = 0;
    *sum = *dot = 0;
    for (; i + VW <= n; i += VW) {
        QnVec h = qn_vec_load(dy + i);
        if (scale)
            h *= qn_vec_load(scale + i);
        a += h;
        b += h * (qn_vec_load(x + i) - mean);
    }
    for (; i < n; i++) {
        float h = dy[i] * (scale ? scale[i] : 1);
        *sum += h;
        *dot += h * (x[i] - mean);
    }
    *sum += qn_vec_sum(a);
    *dot += qn_vec_sum(b);
}

static void norm_grad(const float *dy, const float *x, const float *scale, int64_t n, bool center,
                      float mean, float rstd, const float *more, float *dx, float *dscale,
                      float *dbias)
{
    float sum, dot;
    grad_sums(dy, x, scale, n, mean, &sum, &dot);
    float k0 = center ? sum / (float)n : 0, k1 = dot * rstd * rstd / (float)n;
    if (scale) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dscale[i] += dy[i] * (x[i] - mean) * rstd;
    }
    if (scale && dbias) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dbias[i] += dy[i];
    }
    if (scale && more) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dx[i] =
            more[i] + rstd * (dy[i] * scale[i] - k0 - (x[i] - mean) * k1);
    } else if (scale) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dx[i] =
            rstd * (dy[i] * scale[i] - k0 - (x[i] - mean) * k1);
    } else {
        QN_IVDEP for (int64_t i = 0; i < n; i++) dx[i] = rstd * (dy[i] - k0 - (x[i] - mean) * k1);
    }
}

const QnRowFns QN_ISA_NAME(qn_row_fns) = {
    .softmax = softmax,
    .log_softmax = log_softmax,
    .cross_entropy = cross_entropy,
    .cross_entropy_grad = cross_entropy_grad,
    .add = add,
    .norm = norm,
    .norm_grad = norm_grad,
};
