/* attention and its gradient in f32 by Quern's matrix product: the scores of a block of queries are
 * written to scratch memory, turned into weights row by row, and multiplied on. Sums follow one
 * order whatever the number of threads. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/rows.h"
#include "ops/heads.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 64,            /* queries of a forward unit */
    MOST_SCORES = 1 << 22, /* of a backward unit, which keeps all of its scores twice */
};

typedef struct AttentionState {
    QnHeads h;
    QnGemmFn *gemm;
    const QnRowFns *rows;
    int64_t n_blocks; /* of queries a head */
    int64_t wide;     /* floats from one row of scores to the next */
    int64_t scratch;  /* floats a worker */
    float scale;
} AttentionState;

static const QnShape *shape_of(const QnNode *n, int i)
{
    return i < n->n_in && n->in[i] ? &n->in[i]->type.shape : NULL;
}

static QnHeads heads_of(const QnNode *n)
{
    int q = n->op == &qn_op_attention ? 0 : 1, mask = n->op == &qn_op_attention ? 3 : 6;
    return qn_heads_make(n->attr, shape_of(n, q), shape_of(n, q + 1), shape_of(n, q + 2),
                         shape_of(n, mask));
}

/* Query rows that share one head of keys. */
static int64_t shared_rows(const QnHeads *h)
{
    return h->hkv ? h->h / h->hkv * h->t : 0;
}

static const char *attention_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const char *why = qn_cpu_need_plain(n);
    return why ? why : qn_cpu_need_f32(n);
}

static const char *attention_grad_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnHeads h = heads_of(n);
    if (shared_rows(&h) > MOST_SCORES / QN_MAX(h.s, 1))
        return "keeps at most 4 million scores a head";
    return attention_accepts(n, env);
}

static QnStatus state_new(QnPrepared *p, int64_t buffers, int64_t rows)
{
    AttentionState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->h = heads_of(p->node);
    s->gemm = qn_gemm_find(p->env->isa);
    s->rows = qn_rows_find(p->env->isa);
    s->n_blocks = (s->h.t + BLOCK - 1) / BLOCK;
    s->wide = (s->h.s + 15) / 16 * 16;
    s->scratch = QN_GEMM_SCRATCH + buffers * rows * s->wide;
    s->scale = (float)s->h.scale;
    p->workspace_bytes = (size_t)(s->scratch * p->env->n_threads) * sizeof(float);
    return QN_OK;
}

static QnStatus attention_prepare(QnPrepared *p)
{
    return state_new(p, 1, BLOCK);
}

static QnStatus attention_grad_prepare(QnPrepared *p)
{
    QnHeads h = heads_of(p->node);
    return state_new(p, 2, shared_rows(&h));
}

static void attention_fini(QnPrepared *p)
{
    qn_free(p->state);
}

/* A matrix in memory: element (i,j) at p[i * row + j * column]. */
typedef struct Matrix {
    const float *p;
    int64_t row, column;
} Matrix;

static Matrix turned(Matrix m)
{
    return (Matrix){ m.p, m.column, m.row };
}

/* c (m,n), rows `wide` apart, = a (m,k) * b (k,n) */
static void multiply(const AttentionState *s, Matrix a, Matrix b, float *c, int64_t wide, int64_t m,
                     int64_t n, int64_t k, float *scratch)
{
    QnGemm g = { .m = m,
                 .n = n,
                 .k = k,
                 .dtype = QN_DTYPE_F32,
                 .a = a.p,
                 .b = b.p,
                 .c = c,
                 .am = a.row,
                 .ak = a.column,
                 .bk = b.row,
                 .bn = b.column,
                 .cm = wide };
    for (int64_t i = 0; k == 0 && i < m; i++)
        memset(c + i * wide, 0, (size_t)n * sizeof *c);
    for (int64_t i = 0; k > 0 && i < m; i += QN_GEMM_M) {
        for (int64_t j = 0; j < n; j += QN_GEMM_N)
            s->gemm(&g, i, QN_MIN(i + QN_GEMM_M, m), j, QN_MIN(j + QN_GEMM_N, n), scratch);
    }
}

static int64_t keys_seen(const QnHeads *h, int64_t t)
{
    return h->causal ? QN_MIN(QN_MAX(t + h->s - h->t + 1, 0), h->s) : h->s;
}

static float greatest(const float *x, int64_t n)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

/* Products q . k of query `row` with the first n keys become weights, 0 for keys it does not see.
 * Returns the logarithm of their denominator, by which the greatest weight is exp(its score - it).
 */
static float weigh(const AttentionState *s, const float *mask, int64_t row, float *x, int64_t n)
{
    const QnHeads *h = &s->h;
    int64_t t = row % h->t, seen = QN_MIN(keys_seen(h, t), n);
    if (mask)
        mask += row / h->t / h->h * h->mask[0] + row / h->t % h->h * h->mask[1] + t * h->mask[2];
    for (int64_t i = 0; i < seen; i++)
        x[i] *= s->scale;
    for (int64_t i = 0; mask && i < seen; i++)
        x[i] += mask[i * h->mask[3]];
    float top = greatest(x, seen);
    memset(x + seen, 0, (size_t)(n - seen) * sizeof *x);
    if (top == -INFINITY) {
        memset(x, 0, (size_t)seen * sizeof *x);
        return top;
    }
    int64_t at = 0;
    while (at < seen - 1 && x[at] != top)
        at++;
    s->rows->softmax(x, x, seen);
    return top - logf(x[at]);
}

typedef struct AttentionRun {
    const AttentionState *s;
    const float *dy, *q, *k, *v, *lse, *delta, *mask;
    float *y, *out_lse, *dq, *dk, *dv, *scratch;
} AttentionRun;

/* One block of queries of one head. */
static void forward_unit(void *ctx, int worker, int64_t unit)
{
    const AttentionRun *r = ctx;
    const AttentionState *s = r->s;
    const QnHeads *h = &s->h;
    float *scratch = r->scratch + worker * s->scratch, *x = scratch + QN_GEMM_SCRATCH;
    int64_t head = unit / s->n_blocks, t = unit % s->n_blocks * BLOCK, m = QN_MIN(BLOCK, h->t - t);
    int64_t row = head * h->t + t, n = keys_seen(h, t + m - 1);
    int64_t key = (head / h->h * h->hkv + head % h->h / (h->h / h->hkv)) * h->s;
    Matrix q = { r->q + row * h->d, h->d, 1 }, k = { r->k + key * h->d, h->d, 1 };
    multiply(s, q, turned(k), x, s->wide, m, n, h->d, scratch);
    for (int64_t i = 0; i < m; i++)
        r->out_lse[row + i] = weigh(s, r->mask, row + i, x + i * s->wide, n);
    Matrix p = { x, s->wide, 1 }, v = { r->v + key * h->e, h->e, 1 };
    multiply(s, p, v, r->y + row * h->e, h->e, m, h->e, n, scratch);
}

/* x becomes p = exp(scale * q . k + mask - lse), z, which holds dy . v, the gradient of q . k. */
static void grad_row(const AttentionRun *r, int64_t row, float *x, float *z)
{
    const AttentionState *s = r->s;
    float lse = r->lse[row], delta = r->delta[row];
    float own = weigh(s, r->mask, row, x, s->h.s); /* x sums to 1 now; lse may say otherwise */
    float factor = lse == -INFINITY || own == -INFINITY ? 0.0f : expf(own - lse);
    for (int64_t i = 0; i < s->h.s; i++) {
        x[i] *= factor;
        z[i] = x[i] * (z[i] - delta) * s->scale;
    }
}

/* One head of keys with all the queries that read it. */
static void grad_unit(void *ctx, int worker, int64_t unit)
{
    const AttentionRun *r = ctx;
    const AttentionState *s = r->s;
    const QnHeads *h = &s->h;
    int64_t rows = shared_rows(h), row = unit * rows, key = unit * h->s;
    float *scratch = r->scratch + worker * s->scratch, *x = scratch + QN_GEMM_SCRATCH;
    float *z = x + rows * s->wide;
    Matrix q = { r->q + row * h->d, h->d, 1 }, k = { r->k + key * h->d, h->d, 1 };
    Matrix dy = { r->dy + row * h->e, h->e, 1 }, v = { r->v + key * h->e, h->e, 1 };
    multiply(s, q, turned(k), x, s->wide, rows, h->s, h->d, scratch);
    multiply(s, dy, turned(v), z, s->wide, rows, h->s, h->e, scratch);
    for (int64_t i = 0; i < rows; i++)
        grad_row(r, row + i, x + i * s->wide, z + i * s->wide);
    Matrix p = { x, s->wide, 1 }, dz = { z, s->wide, 1 };
    multiply(s, turned(p), dy, r->dv + key * h->e, h->e, h->s, h->e, rows, scratch);
    multiply(s, turned(dz), q, r->dk + key * h->d, h->d, h->s, h->d, rows, scratch);
    multiply(s, dz, k, r->dq + row * h->d, h->d, rows, h->d, h->s, scratch);
}

static QnStatus attention_run(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    const AttentionState *s = p->state;
    AttentionRun r = { .s = s, .q = in[0], .k = in[1], .v = in[2], .scratch = workspace };
    r.mask = p->node->n_in > 3 ? in[3] : NULL;
    r.y = out[0];
    r.out_lse = out[1];
    qn_cpu_units(p->env->n_threads, s->h.b * s->h.h * s->n_blocks, forward_unit, &r);
    return QN_OK;
}

static QnStatus attention_grad_run(const QnPrepared *p, const void *const *in, void *const *out,
                                   void *workspace)
{
    const AttentionState *s = p->state;
    AttentionRun r = { .s = s, .dy = in[0], .q = in[1], .k = in[2], .v = in[3], .lse = in[4] };
    r.delta = in[5];
    r.mask = p->node->n_in > 6 ? in[6] : NULL;
    r.scratch = workspace;
    r.dq = out[0];
    r.dk = out[1];
    r.dv = out[2];
    qn_cpu_units(p->env->n_threads, s->h.b * s->h.hkv, grad_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_attention_gemm = {
    .name = "cpu.attention.gemm",
    .backend = "cpu",
    .op = &qn_op_attention,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = attention_accepts,
    .prepare = attention_prepare,
    .run = attention_run,
    .fini = attention_fini,
};

const QnKernel qn_kernel_attention_grad_gemm = {
    .name = "cpu.attention_grad.gemm",
    .backend = "cpu",
    .op = &qn_op_attention_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = attention_grad_accepts,
    .prepare = attention_grad_prepare,
    .run = attention_grad_run,
    .fini = attention_fini,
};
