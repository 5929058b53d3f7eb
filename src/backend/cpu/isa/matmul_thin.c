/* Products of a hundred rows or fewer with a transposed b, as a fully connected layer has them: the
 * rows of a are packed, those of b read as they lie, once for each panel of a. The general product
 * would turn all of b first, to use each element of the copy a few times. */
#include "backend/cpu/isa/gemm_pack.h"
#include "backend/cpu/matmul.h"

QnMatmulThinFn QN_ISA_NAME(qn_matmul_thin);
QnMatmulThinPackFn QN_ISA_NAME(qn_matmul_thin_pack);
const int QN_ISA_NAME(qn_matmul_thin_width) = NR;

/* Rows m0..m1 of a, over all k: panels of NR rows. */
void QN_ISA_NAME(qn_matmul_thin_pack)(const QnGemm *g, int64_t m0, int64_t m1, float *to)
{
    QnGemm turned = { .dtype = QN_DTYPE_F32, .b = g->a, .bn = g->am, .bk = g->ak };
    QN_ISA_NAME(qn_gemm_pack_columns)(&turned, m0, m1, 0, g->k, to, false);
}

/* `rows` rows of b from n0 on and a panel of a, which begins with row m0. */
QN_INLINE void tile(const QnGemm *g, const float *a, int64_t m0, int64_t n0, int rows)
{
    const float *b = (const float *)g->b + n0 * g->bn, *bias = g->bias;
    const int64_t step = g->bn;
    float *c = (float *)g->c + m0 * g->cm + n0, turned[32 * NR]; /* qn_turn may look ahead */
    int64_t m = QN_MIN((int64_t)NR, g->m - m0);
    QnVec s[MR][NV];
    QN_UNROLL for (int i = 0; i < rows; i++)
    {
        QN_UNROLL for (int j = 0; j < NV; j++) s[i][j] = qn_vec_set(0);
    }
    for (int64_t t = 0; t < g->k; t++, a += NR, b++) {
        QnVec x[NV];
        QN_UNROLL for (int j = 0; j < NV; j++)
        {
            x[j] = qn_vec_load(a + j * VW);
            qn_prefetch(a + j * VW + 8 * NR);
        }
        QN_UNROLL for (int i = 0; i < rows; i++)
        {
            QnVec y = qn_vec_set(b[i * step]);
            QN_UNROLL for (int j = 0; j < NV; j++) s[i][j] += x[j] * y;
        }
    }
    QN_UNROLL for (int i = 0; i < rows; i++)
    {
        QN_UNROLL for (int j = 0; j < NV; j++) qn_vec_store(turned + i * NR + j * VW, s[i][j]);
    }
    for (int i = 0; bias && i < rows; i++) {
        for (int64_t j = 0; j < m; j++)
            turned[i * NR + j] += bias[(m0 + j) * g->bias_m + (n0 + i) * g->bias_n];
    }
    qn_turn(turned, NR, rows, m, c, g->cm);
}

QN_INLINE void tiles(const QnGemm *g, const float *a, int64_t n, int rows)
{
    for (int64_t m = 0; m < g->m; m += NR)
        tile(g, a + m * g->k, m, n, rows);
}

void QN_ISA_NAME(qn_matmul_thin)(const QnGemm *g, const float *packed, int64_t n0, int64_t n1)
{
    int64_t n = n0;
    for (; n + MR <= n1; n += MR)
        tiles(g, packed, n, MR);
    for (; n + MR / 2 <= n1; n += MR / 2)
        tiles(g, packed, n, MR / 2);
    for (; n < n1; n++)
        tiles(g, packed, n, 1);
}
