/* Products of few columns: each row of a is dotted with every column of b, which stay in the
 * caches. The general product would copy a first, to use each element of the copy a few times. */
#include "backend/cpu/isa/simd.h"
#include "backend/cpu/matmul.h"

#include <string.h>

QnMatmulColumnsFn QN_ISA_NAME(qn_matmul_columns);

enum { ROWS = MR >= 8 ? 4 : 2, COLUMNS = 4 }; /* sums that stay in registers, a vector each */

/* Adds the lanes of all sums up, halves first, as qn_vec_sum does with one. */
QN_INLINE void lanes(float t[ROWS * COLUMNS][VW])
{
    QN_UNROLL for (int half = VW / 2; half > 0; half /= 2)
    {
        for (int s = 0; s < ROWS * COLUMNS; s++) {
            for (int i = 0; i < half; i++)
                t[s][i] += t[s][i + half];
        }
    }
}

/* c[i..i+rows][j..j+columns], both constants once inlined. */
QN_INLINE void dots(const QnGemm *g, int64_t i, int64_t j, int rows, int columns)
{
    const float *a = (const float *)g->a + i * g->am, *b = (const float *)g->b + j * g->bn;
    const float *bias = g->bias;
    QnVec s[ROWS][COLUMNS] = { { { 0 } } };
    float t[ROWS * COLUMNS][VW];
    int64_t whole = g->k / VW * VW;
    for (int64_t k = 0; k < whole; k += VW) {
        QnVec y[COLUMNS];
        QN_UNROLL for (int q = 0; q < columns; q++) y[q] = qn_vec_load(b + q * g->bn + k);
        QN_UNROLL for (int r = 0; r < rows; r++)
        {
            QnVec x = qn_vec_load(a + r * g->am + k);
            QN_UNROLL for (int q = 0; q < columns; q++) s[r][q] += x * y[q];
        }
    }
    memcpy(t, s, sizeof t);
    lanes(t);
    for (int r = 0; r < rows; r++) {
        for (int q = 0; q < columns; q++) {
            float sum = t[r * COLUMNS + q][0];
            for (int64_t k = whole; k < g->k; k++)
                sum += a[r * g->am + k] * b[q * g->bn + k];
            sum += bias ? bias[(i + r) * g->bias_m + (j + q) * g->bias_n] : 0;
            ((float *)g->c)[(i + r) * g->cm + j + q] = sum;
        }
    }
}

QN_INLINE void dots_of_columns(const QnGemm *g, int64_t i, int rows)
{
    int64_t j = 0;
    for (; j + COLUMNS <= g->n; j += COLUMNS)
        dots(g, i, j, rows, COLUMNS);
    for (; j < g->n; j++)
        dots(g, i, j, rows, 1);
}

void QN_ISA_NAME(qn_matmul_columns)(const QnGemm *g, int64_t m0, int64_t m1)
{
    int64_t i = m0;
    for (; i + ROWS <= m1; i += ROWS)
        dots_of_columns(g, i, ROWS);
    for (; i < m1; i++)
        dots_of_columns(g, i, 1);
}
