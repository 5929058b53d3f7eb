/* matmul by Quern's own matrix product, every batch cut into blocks of rows and columns. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "ops/ops.h"

#include <string.h>

typedef struct MatmulState {
    QnGemm gemm;
    QnGemmFn *fn;
    int rank;                                         /* of the batch */
    int64_t dim[QN_MAX_RANK], stride[4][QN_MAX_RANK]; /* of a, b, bias, c in elements */
    int64_t block_m, block_n, n_m, n_n, n_batch;
} MatmulState;

static const char *matmul_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    QnDtype d = n->out[0].type.dtype;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    return qn_cpu_need_plain(n);
}

/* Strides of an operand along the axes of y, 0 where it is broadcast. */
static void operand_strides(const QnShape *s, int rank, int64_t out[QN_MAX_RANK])
{
    int64_t tight[QN_MAX_RANK];
    qn_shape_strides(s, tight);
    memset(out, 0, QN_MAX_RANK * sizeof *out);
    for (int i = 0; i < s->rank; i++)
        out[rank - s->rank + i] = s->dim[i] == 1 ? 0 : tight[i];
}

/* Steps of rows and columns of a stored matrix that may be meant transposed. */
static void matrix_steps(const QnShape *s, bool trans, int64_t *row, int64_t *column)
{
    int64_t wide = s->dim[s->rank - 1];
    *row = trans ? 1 : wide;
    *column = trans ? wide : 1;
}

/* Blocks as large as possible that still give every thread several. Multiples of 24 rows and 96
 * columns are whole tiles at any instruction set. */
static void choose_blocks(MatmulState *m, int n_threads)
{
    int64_t rows = QN_MAX(m->gemm.m, 1), columns = QN_MAX(m->gemm.n, 1);
    m->block_m = QN_GEMM_M;
    m->block_n = QN_GEMM_N;
    for (;;) {
        m->n_m = (rows + m->block_m - 1) / m->block_m;
        m->n_n = (columns + m->block_n - 1) / m->block_n;
        bool enough = m->n_m * m->n_n * m->n_batch >= (int64_t)n_threads * (n_threads > 1 ? 3 : 1);
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
    const QnNode *n = p->node;
    MatmulState *m = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    const QnShape *a = &n->in[0]->type.shape, *b = &n->in[1]->type.shape;
    const QnShape *y = &n->out[0].type.shape;
    const bool trans_a = *(const bool *)qn_cpu_attr(n, "trans_a");
    QnGemm *g = &m->gemm;
    int rank = y->rank;
    g->dtype = n->out[0].type.dtype;
    g->m = y->dim[rank - 2];
    g->n = g->cm = y->dim[rank - 1];
    g->k = a->dim[a->rank - (trans_a ? 2 : 1)];
    matrix_steps(a, trans_a, &g->am, &g->ak);
    matrix_steps(b, *(const bool *)qn_cpu_attr(n, "trans_b"), &g->bk, &g->bn);
    operand_strides(a, rank, m->stride[0]);
    operand_strides(b, rank, m->stride[1]);
    if (n->n_in > 2 && n->in[2]) {
        operand_strides(&n->in[2]->type.shape, rank, m->stride[2]);
        g->bias_m = m->stride[2][rank - 2];
        g->bias_n = m->stride[2][rank - 1];
    }
    operand_strides(y, rank, m->stride[3]);
    m->rank = rank - 2;
    m->n_batch = 1;
    for (int i = 0; i < m->rank; i++)
        m->n_batch *= m->dim[i] = y->dim[i];
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
    QnGemm g = m->gemm;
    int64_t bytes = (int64_t)qn_dtype_bytes(g.dtype), at[4] = { 0 };
    int64_t i = unit / m->n_n % m->n_m * m->block_m, j = unit % m->n_n * m->block_n;
    int64_t batch = unit / m->n_n / m->n_m;
    for (int d = m->rank - 1; d >= 0; d--) {
        for (int k = 0; k < 4; k++)
            at[k] += batch % m->dim[d] * m->stride[k][d];
        batch /= m->dim[d];
    }
    g.a = r->operand[0] + at[0] * bytes;
    g.b = r->operand[1] + at[1] * bytes;
    g.bias = r->operand[2] ? r->operand[2] + at[2] * bytes : NULL;
    g.c = (void *)(r->operand[3] + at[3] * bytes);
    m->fn(&g, i, QN_MIN(i + m->block_m, g.m), j, QN_MIN(j + m->block_n, g.n),
          r->scratch + (int64_t)worker * QN_GEMM_SCRATCH);
}

static QnStatus matmul_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const MatmulState *m = p->state;
    MatmulRun r = { m, { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] }, workspace };
    if (m->gemm.m && m->gemm.n)
        qn_cpu_units(qn_cpu_threads(p), m->n_batch * m->n_m * m->n_n, run_unit, &r);
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
