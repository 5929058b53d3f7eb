/* Products of few rows: what they cost is reading b once, at the speed of memory. Columns of b that
 * are adjacent along k are dotted with the rows, four at a time; else b is read row by row, each
 * added to the rows of c, which stay in the first-level cache. */
#include "backend/cpu/isa/simd.h"
#include "backend/cpu/matmul.h"

QnMatmulRowsFn QN_ISA_NAME(qn_matmul_rows);

/* ROWS x COLUMNS sums stay in registers with a vector of each. AHEAD: floats to fetch early: the
 * processor's own guesses end with a page. */
enum { COLUMNS = 4, ROWS = MR >= 8 ? 4 : 2, AHEAD = 512 };
enum { STEPS = 4 }; /* rows of b at a time */

QN_INLINE float bias_of(const QnGemm *g, int64_t i, int64_t j)
{
    return g->bias ? ((const float *)g->bias)[i * g->bias_m + j * g->bias_n] : 0.0f;
}

/* c[i..i+rows][j..j+columns], both constants once inlined. */
QN_INLINE void dots(const QnGemm *g, int64_t i, int64_t j, int rows, int columns)
{
    const float *a = (const float *)g->a + i * g->am, *b = (const float *)g->b + j * g->bn;
    float *c = (float *)g->c + i * g->cm + j;
    QnVec s[ROWS][COLUMNS] = { { { 0 } } };
    int64_t whole = g->k / VW * VW;
    for (int64_t t = 0; t < whole; t += VW) {
        QnVec x[COLUMNS];
        QN_UNROLL for (int q = 0; q < columns; q++)
        {
            if (i == 0)
                __builtin_prefetch(b + q * g->bn + t + AHEAD);
            x[q] = qn_vec_load(b + q * g->bn + t);
        }
        QN_UNROLL for (int r = 0; r < rows; r++)
        {
            QnVec y = qn_vec_load(a + r * g->am + t);
            QN_UNROLL for (int q = 0; q < columns; q++) s[r][q] += y * x[q];
        }
    }
    QN_UNROLL for (int r = 0; r < rows; r++)
    {
        QN_UNROLL for (int q = 0; q < columns; q++)
        {
            float sum = qn_vec_sum(s[r][q]);
            for (int64_t t = whole; t < g->k; t++)
                sum += a[r * g->am + t] * b[q * g->bn + t];
            c[r * g->cm + q] = sum + bias_of(g, i + r, j + q);
        }
    }
}

QN_INLINE void dots_of_rows(const QnGemm *g, int64_t j, int columns)
{
    int64_t i = 0;
    for (; i + ROWS <= g->m; i += ROWS)
        dots(g, i, j, ROWS, columns);
    for (; i + 2 <= g->m; i += 2)
        dots(g, i, j, 2, columns);
    for (; i < g->m; i++)
        dots(g, i, j, 1, columns);
}

/* c[i..i+rows][n0..n1] += a[..][t..t+steps] * b[t..t+steps][..] */
QN_INLINE void add_rows(const QnGemm *g, int64_t i, int64_t t, int64_t n0, int64_t n1, int rows,
                        int steps)
{
    const float *a = (const float *)g->a + i * g->am + t, *b = (const float *)g->b + t * g->bk;
    float *c = (float *)g->c + i * g->cm;
    int64_t j = n0;
    for (; j + VW <= n1; j += VW) {
        QnVec x[STEPS];
        QN_UNROLL for (int q = 0; q < steps; q++)
        {
            if (i == 0)
                __builtin_prefetch(b + (q + STEPS) * g->bk + j);
            x[q] = qn_vec_load(b + q * g->bk + j);
        }
        QN_UNROLL for (int r = 0; r < rows; r++)
        {
            QnVec y = qn_vec_load(c + r * g->cm + j);
            QN_UNROLL for (int q = 0; q < steps; q++) y += x[q] * a[r * g->am + q];
            qn_vec_store(c + r * g->cm + j, y);
        }
    }
    for (; j < n1; j++) {
        for (int r = 0; r < rows; r++) {
            float y = c[r * g->cm + j];
            for (int q = 0; q < steps; q++)
                y += b[q * g->bk + j] * a[r * g->am + q];
            c[r * g->cm + j] = y;
        }
    }
}

QN_INLINE void add_to_rows(const QnGemm *g, int64_t t, int64_t n0, int64_t n1, int steps)
{
    int64_t i = 0;
    for (; i + ROWS <= g->m; i += ROWS)
        add_rows(g, i, t, n0, n1, ROWS, steps);
    for (; i < g->m; i++)
        add_rows(g, i, t, n0, n1, 1, steps);
}

static void stream(const QnGemm *g, int64_t n0, int64_t n1)
{
    int64_t t = 0;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = n0; j < n1; j++)
            ((float *)g->c)[i * g->cm + j] = bias_of(g, i, j);
    }
    for (; t + STEPS <= g->k; t += STEPS)
        add_to_rows(g, t, n0, n1, STEPS);
    for (; t < g->k; t++)
        add_to_rows(g, t, n0, n1, 1);
}

void QN_ISA_NAME(qn_matmul_rows)(const QnGemm *g, int64_t n0, int64_t n1)
{
    if (g->bk == 1) {
        int64_t j = n0;
        for (; j + COLUMNS <= n1; j += COLUMNS)
            dots_of_rows(g, j, COLUMNS);
        for (; j < n1; j++)
            dots_of_rows(g, j, 1);
        return;
    }
    stream(g, n0, n1);
}
