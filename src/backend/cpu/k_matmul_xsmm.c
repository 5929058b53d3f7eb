/* matmul of small matrices, above all of many in a batch, by code that libxsmm generates for their
 * sizes. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/matmul.h"
#include "ops/ops.h"

#include <string.h>

#ifdef QN_HAVE_XSMM
#include <libxsmm.h>

/* Multiply-adds of one product of the batch: beyond them, blocks that fit the caches matter, which
 * the generated loops do not have. */
enum { MOST_WORK = 128 * 128 * 128, MOST_SIDE = 1024 };

/* The library's matrices lie in columns, so that it multiplies our transposes: c' = b' a'. Code is
 * generated where sizes are asked for the first time, and kept by the library. NULL: it has none
 * for this processor, or may not make memory executable. */
static libxsmm_smmfunction generate(const QnGemm *g, bool adds)
{
    const libxsmm_blasint lda = (libxsmm_blasint)g->bk, ldc = (libxsmm_blasint)g->cm;
    const libxsmm_blasint ldb = (libxsmm_blasint)(g->ak == 1 ? g->am : g->ak);
    const int flags = g->ak == 1 ? LIBXSMM_GEMM_FLAG_NONE : LIBXSMM_GEMM_FLAG_TRANS_B;
    const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    const float alpha = 1, beta = adds ? 1 : 0;
    libxsmm_init(); /* the first one's does it, whichever thread that is; others wait for it */
    return libxsmm_smmdispatch((libxsmm_blasint)g->n, (libxsmm_blasint)g->m, (libxsmm_blasint)g->k,
                               &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
}

static libxsmm_smmfunction code_of(const QnNode *n)
{
    QnMatmul m = qn_matmul_of(n);
    return generate(&m.gemm, n->n_in > 2 && n->in[2]);
}

static const char *xsmm_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (n->out[0].type.dtype != QN_DTYPE_F32)
        return "takes f32";
    if (strcmp(env->isa, qn_cpu_isa_best()) != 0)
        return "the library chooses the instruction set itself";
    QnMatmul m = qn_matmul_of(n);
    const QnGemm *g = &m.gemm;
    if (g->m <= 0 || g->n <= 0 || g->k <= 0 || m.n_batch <= 0)
        return "a tensor is empty";
    if (g->m > MOST_SIDE || g->n > MOST_SIDE || g->k > MOST_SIDE || g->m * g->n * g->k > MOST_WORK)
        return "for products of at most 128 * 128 * 128 multiply-adds";
    if (g->bn != 1)
        return "b is transposed";
    const char *why = qn_cpu_need_plain(n);
    return why || code_of(n) ? why : "libxsmm generates no code for this here";
}

typedef struct XsmmState {
    QnMatmul product;
    libxsmm_smmfunction fn; /* the library's */
    int64_t inner, step[4]; /* so many products lie in even steps: floats of a, b, bias and c */
} XsmmState;

/* The batch's last axes as one, as far as all operands go on evenly from one axis to the next. */
static void find_steps(XsmmState *s)
{
    const QnMatmul *m = &s->product;
    s->inner = 1;
    for (int d = m->rank - 1; d >= 0; d--) {
        for (int k = 0; k < 4; k++) {
            if (s->inner == 1)
                s->step[k] = m->stride[k][d];
            else if (m->dim[d] > 1 && m->stride[k][d] != s->step[k] * s->inner)
                return;
        }
        s->inner *= m->dim[d];
    }
}

static QnStatus xsmm_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    XsmmState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->product = qn_matmul_of(n);
    s->fn = code_of(n);
    if (!s->fn) {
        qn_free(s);
        return qn_fail(QN_EUNSUPPORTED, "libxsmm generates no code for this here");
    }
    find_steps(s);
    p->state = s;
    return QN_OK;
}

typedef struct XsmmRun {
    const XsmmState *s;
    const char *operand[4];
    int64_t parts;
} XsmmRun;

/* c = bias, to which the product is added. */
static void spread_bias(const QnGemm *g)
{
    const float *bias = g->bias;
    for (int64_t i = 0; i < g->m; i++) {
        const float *from = bias + i * g->bias_m;
        float *c = (float *)g->c + i * g->cm;
        if (g->bias_n == 1)
            memcpy(c, from, (size_t)g->n * sizeof *c);
        else
            for (int64_t j = 0; j < g->n; j++)
                c[j] = from[j * g->bias_n];
    }
}

static void advance(QnGemm *g, const int64_t step[4])
{
    g->a = (const float *)g->a + step[0];
    g->b = (const float *)g->b + step[1];
    if (g->bias)
        g->bias = (const float *)g->bias + step[2];
    g->c = (float *)g->c + step[3];
}

static void run_part(void *ctx, int64_t part)
{
    const XsmmRun *r = ctx;
    const XsmmState *s = r->s;
    int64_t begin = qn_cpu_part_begin(s->product.n_batch, r->parts, part);
    int64_t end = qn_cpu_part_begin(s->product.n_batch, r->parts, part + 1);
    QnGemm g = { 0 };
    for (int64_t i = begin; i < end; i++) {
        if (i == begin || i % s->inner == 0)
            g = qn_matmul_at(&s->product, i, r->operand);
        else
            advance(&g, s->step);
        if (g.bias)
            spread_bias(&g);
        s->fn(g.b, g.a, g.c);
    }
}

static QnStatus xsmm_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    (void)workspace;
    const XsmmState *s = p->state;
    int threads = qn_cpu_threads(p);
    XsmmRun r = { .s = s,
                  .operand = { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] },
                  .parts = qn_cpu_parts(threads, s->product.n_batch, 1) };
    qn_cpu_parallel(threads, r.parts, run_part, &r);
    return QN_OK;
}

static void xsmm_fini(QnPrepared *p)
{
    qn_free(p->state);
}

#else

static const char *xsmm_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)n;
    (void)env;
    return "Quern was built without libxsmm";
}

static QnStatus xsmm_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    (void)p;
    (void)in;
    (void)out;
    (void)workspace;
    return qn_fail(QN_EUNSUPPORTED, "Quern was built without libxsmm");
}

#define xsmm_prepare NULL
#define xsmm_fini    NULL
#endif

const QnKernel qn_kernel_matmul_xsmm = {
    .name = "xsmm.matmul",
    .backend = "cpu",
    .op = &qn_op_matmul,
    .rank = 65,
    .flags = QN_KERNEL_LIBRARY | QN_KERNEL_ANY_THREADS,
    .accepts = xsmm_accepts,
    .prepare = xsmm_prepare,
    .run = xsmm_run,
    .fini = xsmm_fini,
};
