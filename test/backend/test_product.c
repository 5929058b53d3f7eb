/* Products whose second operand is packed in several chunks, which only huge ones need by
 * themselves. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/product.h"

#include <math.h>

enum { M = 100, N = 310, K = 530 };

static float a[M * K], b[N * K], bias[N], c[M * N];

static QnMatmul product_of(void)
{
    QnMatmul m = { .n_batch = 1 };
    m.gemm = (QnGemm){ .m = M, .n = N, .k = K, .dtype = QN_DTYPE_F32 };
    m.gemm.am = m.gemm.bn = K;
    m.gemm.ak = m.gemm.bk = m.gemm.bias_n = 1;
    m.gemm.cm = N;
    return m;
}

/* The same bits for any number of chunks and threads, near the sums in float64. */
static void check(const char *isa)
{
    static float first[M * N];
    for (int threads = 1; threads <= 3; threads += 2) {
        for (int blocks = 1; blocks <= 4; blocks += 3) {
            QnMatmul of = product_of();
            QnProduct p;
            qn_product_init(&p, &of, qn_gemm_find(isa), threads);
            assert_true(p.shared);
            p.block_n = QN_GEMM_GRAIN;
            p.chunk_n = blocks * QN_GEMM_GRAIN;
            void *work = qn_alloc_aligned(qn_product_workspace(&p));
            memset(c, 0xff, sizeof c);
            const char *const operand[] = { (char *)a, (char *)b, (char *)bias, (char *)c };
            qn_product_run(&p, threads, operand, work);
            qn_free_aligned(work, qn_product_workspace(&p));
            if (threads == 1 && blocks == 1)
                memcpy(first, c, sizeof c);
            assert_memory_equal(first, c, sizeof c);
        }
    }
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double sum = bias[j];
            for (int k = 0; k < K; k++)
                sum += (double)a[i * K + k] * (double)b[j * K + k];
            assert_true(fabs(sum - (double)c[i * N + j]) < 1e-6 * sqrt(K));
        }
    }
}

static void test_chunks(void **state)
{
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i * 37 % 101) / 101 - 0.5f;
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i * 53 % 97) / 97 - 0.5f;
    for (int i = 0; i < N; i++)
        bias[i] = (float)i / N;
#define QN_X(name)                                                                                 \
    if (qn_cpu_isa_is_usable(#name))                                                               \
        check(#name);
    QN_ISA_LIST(QN_X)
#undef QN_X
}
