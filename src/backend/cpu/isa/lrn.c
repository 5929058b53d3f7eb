/* The window's squares are added up anew for each channel: a running sum would cancel. */
#include "backend/cpu/lrn.h"
#include "backend/cpu/isa/simd.h"
#include "base/vmath.h"

/* t = t^-beta; the powers of published nets need no logarithm. */
static void powers(float *t, int64_t n, float beta)
{
    if (beta == 0.75f) {
        QN_IVDEP for (int64_t i = 0; i < n; i++)
        {
            float root = qn_sqrtf(t[i]);
            t[i] = 1 / (root * qn_sqrtf(root));
        }
    } else if (beta == 0.5f) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) t[i] = 1 / qn_sqrtf(t[i]);
    } else {
        QN_IVDEP for (int64_t i = 0; i < n; i++) t[i] = qn_expf(-beta * qn_logf(t[i]));
    }
}

static void plain(const QnLrn *l, const float *x, float *y, int64_t p0, int64_t p1)
{
    float t[QN_LRN_PIXELS];
    int64_t n = p1 - p0;
    x += p0;
    y += p0;
    for (int64_t c = 0; c < l->c; c++) {
        int64_t first = QN_MAX(c - l->size / 2, 0), end = QN_MIN(c - l->size / 2 + l->size, l->c);
        for (int64_t i = 0; i < n; i++)
            t[i] = 0;
        for (int64_t j = first; j < end; j++) {
            const float *from = x + j * l->pixels;
            QN_IVDEP for (int64_t i = 0; i < n; i++) t[i] += from[i] * from[i];
        }
        QN_IVDEP for (int64_t i = 0; i < n; i++) t[i] = l->k + l->scale * t[i];
        powers(t, n, l->beta);
        const float *from = x + c * l->pixels;
        float *to = y + c * l->pixels;
        QN_IVDEP for (int64_t i = 0; i < n; i++) to[i] = from[i] * t[i];
    }
}

/* Squares stand between zeros for the channels outside, and what whole vectors read beyond. */
static void last(const QnLrn *l, const float *x, float *y, float *scratch)
{
    int64_t before = l->size / 2, wide = (l->c + VW - 1) / VW * VW;
    float *t = scratch, *square = scratch + l->c + QN_LRN_PAD;
    for (int64_t i = 0; i < before; i++)
        square[i] = 0;
    QN_IVDEP for (int64_t i = 0; i < l->c; i++) square[before + i] = x[i] * x[i];
    for (int64_t i = before + l->c; i < wide + l->size; i++)
        square[i] = 0;
    for (int64_t i = 0; i < l->c; i += VW) {
        QnVec s = qn_vec_set(0);
        for (int64_t j = 0; j < l->size; j++)
            s += qn_vec_load(square + i + j);
        qn_vec_store(t + i, qn_vec_set(l->k) + s * l->scale);
    }
    powers(t, l->c, l->beta);
    QN_IVDEP for (int64_t i = 0; i < l->c; i++) y[i] = x[i] * t[i];
}

const QnLrnFns QN_ISA_NAME(qn_lrn_fns) = { plain, last };
