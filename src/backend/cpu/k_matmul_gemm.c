/* matmul by Quern's own matrix product, every batch cut into blocks of rows and columns. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/matmul.h"
#include "ops/ops.h"

typedef struct MatmulState {
    QnMatmul product;
    QnGemmFn *fn;
    int64_t block_m, block_n, n_m, n_n;
} MatmulState;

static const char *matmul_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    QnDtype d = n->out[0].type.dtype;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    return qn_cpu_need_plain(n);
}

/* Blocks as large as possible that still give every thread several. Multiples of 24 rows and 96
 * columns are whole tiles at any instruction set. */
static void choose_blocks(MatmulState *m, int n_threads)
{
    int64_t rows = QN_MAX(m->product.gemm.m, 1);
    int64_t columns = QN_MAX(m->product.gemm.n, 1), batch = m->product.n_batch;
    m->block_m = QN_GEMM_M;
    m->block_n = QN_GEMM_N;
    for (;;) {
        m->n_m = (rows + m->block_m - 1) / m->block_m;
        m->n_n = (columns + m->block_n - 1) / m->block_n;
        bool enough = m->n_m * m->n_n * batch >= (int64_t)n_threads * (n_threads > 1 ? 3 : 1);
        if (enough || (m->block_m <= 24 && m->block_n <= 96))
            return;
        if (m->block_m > 24 && (m->n_m > 1 || rows > 24 || m->block_n <= 96))
            m->block_m = m->block_m == QN_GEMM_M ? 72 : 24;
        else
            m->block_n = m->block_n == QN_GEMM_N ? 192 : 96;
    }
}

static QnStatus matmul_prepare(QnPrepared *p)
{
    MatmulState *m = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    m->product = qn_matmul_of(p->node);
    m->fn = qn_gemm_find(p->env->isa);
    choose_blocks(m, p->env->n_threads);
    p->state = m;
    p->workspace_bytes = (size_t)p->env->n_threads * QN_GEMM_SCRATCH * sizeof(float);
    return QN_OK;
}

typedef struct MatmulRun {
    const MatmulState *m;
    const char *operand[4];
    float *scratch;
} MatmulRun;

static void run_unit(void *ctx, int worker, int64_t unit)
{
    const MatmulRun *r = ctx;
    const MatmulState *m = r->m;
    QnGemm g = qn_matmul_at(&m->product, unit / m->n_n / m->n_m, r->operand);
    int64_t i = unit / m->n_n % m->n_m * m->block_m, j = unit % m->n_n * m->block_n;
    m->fn(&g, i, QN_MIN(i + m->block_m, g.m), j, QN_MIN(j + m->block_n, g.n),
          r->scratch + (int64_t)worker * QN_GEMM_SCRATCH);
}

static QnStatus matmul_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const MatmulState *m = p->state;
    MatmulRun r = { m, { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] }, workspace };
    if (m->product.gemm.m && m->product.gemm.n)
        qn_cpu_units(qn_cpu_threads(p), m->product.n_batch * m->n_m * m->n_n, run_unit, &r);
    return QN_OK;
}

static void matmul_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_matmul_gemm = {
    .name = "cpu.matmul.gemm",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = matmul_accepts,
    .prepare = matmul_prepare,
    .run = matmul_run,
    .fini = matmul_fini,
};
