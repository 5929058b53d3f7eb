/* matmul of tens of rows by a transposed b, such as a fully connected layer of a batch: b is read
 * as it lies. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/matmul.h"
#include "ops/ops.h"

/* Fewer rows leave a panel empty; of more, turning b once is worth it. */
enum { LEAST_ROWS = 16, MOST_ROWS = 128, LEAST_COLUMNS = 48, LEAST_K = 64, MOST_K = 4096 };
enum { UNIT = 24 }; /* rows of b: whole tiles at any instruction set */

static const char *thin_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (n->out[0].type.dtype != QN_DTYPE_F32)
        return "takes f32";
    QnMatmul m = qn_matmul_of(n);
    const QnGemm *g = &m.gemm;
    if (g->m < LEAST_ROWS || g->m > MOST_ROWS || g->n < LEAST_COLUMNS || g->k < LEAST_K ||
        g->k > MOST_K)
        return "for 16 to 128 rows of 64 to 4096, and at least 48 columns";
    if (g->bk != 1 || (g->ak != 1 && g->am != 1))
        return "takes b transposed";
    return qn_matmul_thin_find(env->isa).run ? qn_cpu_need_plain(n) : "no such instruction set";
}

typedef struct ThinState {
    QnMatmul product;
    QnMatmulThinFns fns;
    int64_t panels, units; /* of one product of the batch */
} ThinState;

static QnStatus thin_prepare(QnPrepared *p)
{
    ThinState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->product = qn_matmul_of(p->node);
    s->fns = qn_matmul_thin_find(p->env->isa);
    s->panels = (s->product.gemm.m + s->fns.width - 1) / s->fns.width;
    s->units = (s->product.gemm.n + UNIT - 1) / UNIT;
    p->state = s;
    p->workspace_bytes =
        (size_t)(s->product.n_batch * s->panels * s->fns.width * s->product.gemm.k) * sizeof(float);
    return QN_OK;
}

typedef struct ThinRun {
    const ThinState *s;
    const char *operand[4];
    float *packed; /* of one product after the other */
} ThinRun;

static float *packed_at(const ThinRun *r, int64_t batch, int64_t panel)
{
    const ThinState *s = r->s;
    return r->packed + (batch * s->panels + panel) * s->fns.width * s->product.gemm.k;
}

static void pack_unit(void *ctx, int64_t unit)
{
    const ThinRun *r = ctx;
    const ThinState *s = r->s;
    int64_t batch = unit / s->panels, panel = unit % s->panels, m0 = panel * s->fns.width;
    QnGemm g = qn_matmul_at(&s->product, batch, r->operand);
    s->fns.pack(&g, m0, QN_MIN(m0 + s->fns.width, g.m), packed_at(r, batch, panel));
}

static void run_unit(void *ctx, int64_t unit)
{
    const ThinRun *r = ctx;
    const ThinState *s = r->s;
    int64_t batch = unit / s->units, n0 = unit % s->units * UNIT;
    QnGemm g = qn_matmul_at(&s->product, batch, r->operand);
    s->fns.run(&g, packed_at(r, batch, 0), n0, QN_MIN(n0 + UNIT, g.n));
}

static QnStatus thin_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const ThinState *s = p->state;
    ThinRun r = { s, { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] }, workspace };
    qn_cpu_parallel(qn_cpu_threads(p), s->product.n_batch * s->panels, pack_unit, &r);
    qn_cpu_parallel(qn_cpu_threads(p), s->product.n_batch * s->units, run_unit, &r);
    return QN_OK;
}

static void thin_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_matmul_thin = {
    .name = "cpu.matmul.thin",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 65,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = thin_accepts,
    .prepare = thin_prepare,
    .run = thin_run,
    .fini = thin_fini,
};
