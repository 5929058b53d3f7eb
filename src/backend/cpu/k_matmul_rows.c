/* matmul of few rows, such as a fully connected layer of one image: b is read once, as it lies. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/matmul.h"
#include "ops/ops.h"

enum { MOST_ROWS = 8 };

static const char *rows_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (n->out[0].type.dtype != QN_DTYPE_F32)
        return "takes f32";
    QnMatmul m = qn_matmul_of(n);
    if (m.gemm.m > MOST_ROWS)
        return "for at most 8 rows";
    if (m.gemm.m > 1 && m.gemm.k > 1 && m.gemm.ak != 1)
        return "a is transposed";
    return qn_matmul_rows_find(env->isa) ? qn_cpu_need_plain(n) : "no such instruction set";
}

typedef struct RowsState {
    QnMatmul product;
    QnMatmulRowsFn *fn;
    int64_t unit,
        blocks; /* of columns: numbers of their own, so that sums do not hang on threads */
} RowsState;

static QnStatus rows_prepare(QnPrepared *p)
{
    RowsState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->product = qn_matmul_of(p->node);
    s->fn = qn_matmul_rows_find(p->env->isa);
    s->unit = s->product.gemm.bk == 1 ? QN_MATMUL_ROWS_DOTS : QN_MATMUL_ROWS_STREAM;
    s->blocks = (s->product.gemm.n + s->unit - 1) / s->unit;
    p->state = s;
    return QN_OK;
}

typedef struct RowsRun {
    const RowsState *s;
    const char *operand[4];
} RowsRun;

static void run_unit(void *ctx, int64_t unit)
{
    const RowsRun *r = ctx;
    QnGemm g = qn_matmul_at(&r->s->product, unit / r->s->blocks, r->operand);
    int64_t j = unit % r->s->blocks * r->s->unit;
    r->s->fn(&g, j, QN_MIN(j + r->s->unit, g.n));
}

static QnStatus rows_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    (void)workspace;
    const RowsState *s = p->state;
    RowsRun r = { s, { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] } };
    if (s->product.gemm.m)
        qn_cpu_parallel(qn_cpu_threads(p), s->product.n_batch * s->blocks, run_unit, &r);
    return QN_OK;
}

static void rows_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_matmul_rows = {
    .name = "cpu.matmul.rows",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 75,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = rows_accepts,
    .prepare = rows_prepare,
    .run = rows_run,
    .fini = rows_fini,
};
