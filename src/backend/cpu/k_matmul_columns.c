/* matmul of few columns, such as a layer of few outputs over many rows: a is read once, as it lies.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/matmul.h"
#include "ops/ops.h"

/* Up to here a core is at its peak by reading a as it lies; UNIT: rows of a unit of work, a
 * multiple of those that any instruction set takes at once. */
enum { MOST_COLUMNS = 16, LEAST_ROWS = 64, LEAST_K = 128, UNIT = 16 };

static const char *columns_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (n->out[0].type.dtype != QN_DTYPE_F32)
        return "takes f32";
    QnMatmul m = qn_matmul_of(n);
    if (m.gemm.n > MOST_COLUMNS || m.gemm.m < LEAST_ROWS || m.gemm.k < LEAST_K)
        return "for at most 16 columns, and at least 64 rows of 128";
    if (m.gemm.ak != 1 || m.gemm.bk != 1)
        return "takes a as it lies, and b transposed";
    return qn_matmul_columns_find(env->isa) ? qn_cpu_need_plain(n) : "no such instruction set";
}

typedef struct ColumnsState {
    QnMatmul product;
    QnMatmulColumnsFn *fn;
    int64_t units; /* of one product of the batch */
} ColumnsState;

static QnStatus columns_prepare(QnPrepared *p)
{
    ColumnsState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->product = qn_matmul_of(p->node);
    s->fn = qn_matmul_columns_find(p->env->isa);
    s->units = (s->product.gemm.m + UNIT - 1) / UNIT;
    p->state = s;
    return QN_OK;
}

typedef struct ColumnsRun {
    const ColumnsState *s;
    const char *operand[4];
} ColumnsRun;

static void run_unit(void *ctx, int64_t unit)
{
    const ColumnsRun *r = ctx;
    QnGemm g = qn_matmul_at(&r->s->product, unit / r->s->units, r->operand);
    int64_t i = unit % r->s->units * UNIT;
    r->s->fn(&g, i, QN_MIN(i + UNIT, g.m));
}

static QnStatus columns_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    (void)workspace;
    const ColumnsState *s = p->state;
    ColumnsRun r = { s, { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] } };
    qn_cpu_parallel(qn_cpu_threads(p), s->product.n_batch * s->units, run_unit, &r);
    return QN_OK;
}

static void columns_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_matmul_columns = {
    .name = "cpu.matmul.columns",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 72,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = columns_accepts,
    .prepare = columns_prepare,
    .run = columns_run,
    .fini = columns_fini,
};
