/* Attention's blocks: products by the own matrix product, softmax by rows between them. */
#include "backend/cpu/attention.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/isa/row_folds.h"
#include "base/vmath.h"

#include <string.h>

/* A whole product, in the parts that one call takes. */
static void product(const QnGemm *g, float *scratch)
{
    for (int64_t i = 0; i < g->m; i += QN_GEMM_M) {
        for (int64_t j = 0; j < g->n; j += QN_GEMM_N)
            QN_ISA_NAME(qn_gemm).block(g, i, QN_MIN(i + QN_GEMM_M, g->m), j,
                                       QN_MIN(j + QN_GEMM_N, g->n), scratch);
    }
}

/* c (m,n) = a (m,k) * b, b (n,k) turned. */
static void times_turned(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k,
                         int64_t c_step, float *scratch)
{
    QnGemm g = { .m = m, .n = n, .k = k, .a = a, .b = b, .c = c };
    g.am = g.bn = k;
    g.ak = g.bk = 1;
    g.cm = c_step;
    product(&g, scratch);
}

/* c (m,n) = a (m,k) * b (k,n). */
static void times(const float *a, int64_t a_step, const float *b, float *c, int64_t m, int64_t n,
                  int64_t k, float *scratch)
{
    QnGemm g = { .m = m, .n = n, .k = k, .a = a, .b = b, .c = c };
    g.am = a_step;
    g.ak = g.bn = 1;
    g.bk = g.cm = n;
    product(&g, scratch);
}

/* c (m,n) += a (k,m) turned * b (k,n). */
static void add_turned_times(const float *a, int64_t a_step, const float *b, float *c, int64_t m,
                             int64_t n, int64_t k, float *scratch)
{
    QnGemm g = { .m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .accumulate = true };
    g.ak = a_step;
    g.am = g.bn = 1;
    g.bk = g.cm = n;
    product(&g, scratch);
}

/* ---- rows of scores ---- */

static int64_t keys_seen(const QnHeads *h, int64_t t)
{
    return h->causal ? QN_MIN(QN_MAX(t + h->s - h->t + 1, 0), h->s) : h->s;
}

static void scale_row(const QnHeads *h, float *x, int64_t n, const float *mask)
{
    const float scale = (float)h->scale;
    if (!mask) {
        QN_IVDEP for (int64_t i = 0; i < n; i++) x[i] *= scale;
    } else {
        const int64_t step = h->mask[3];
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] * scale + mask[i * step];
    }
}

/* x becomes softmax(x), zeros up to `all`; returns the logarithm of the denominator. */
static float softmax_row(float *x, int64_t n, int64_t all)
{
    float m = qn_row_max(x, n);
    if (m == -INFINITY) {
        memset(x, 0, (size_t)all * sizeof *x);
        return -INFINITY;
    }
    QN_IVDEP for (int64_t i = 0; i < n; i++) x[i] = qn_exp_belowf(x[i] - m);
    float s = qn_row_sum(x, n), k = 1 / s;
    QN_IVDEP for (int64_t i = 0; i < n; i++) x[i] *= k;
    memset(x + n, 0, (size_t)(all - n) * sizeof *x);
    return m + qn_logf(s);
}

/* x becomes p = e^(x - lse), z becomes p * (z - delta) * scale, both zeros up to `all`. */
static void grad_row(const QnHeads *h, float *x, float *z, int64_t n, int64_t all, float lse,
                     float delta)
{
    const float scale = (float)h->scale;
    if (lse == -INFINITY)
        n = 0;
    QN_IVDEP for (int64_t i = 0; i < n; i++)
    {
        float p = qn_exp_belowf(x[i] - lse);
        x[i] = p;
        z[i] = p * (z[i] - delta) * scale;
    }
    memset(x + n, 0, (size_t)(all - n) * sizeof *x);
    memset(z + n, 0, (size_t)(all - n) * sizeof *z);
}

/* ---- units ---- */

typedef struct Block {
    int64_t row, kv;   /* first query, first key, counted over all heads */
    int64_t t, n;      /* first query within the head, how many */
    int64_t seen;      /* keys that any of them sees */
    const float *mask; /* of the first query; NULL: none */
} Block;

static Block block_of(const QnAttention *a, const QnAttentionIn *in, int64_t head, int64_t block)
{
    const QnHeads *h = &a->h;
    Block b = { .t = block * a->block };
    b.n = QN_MIN(a->block, h->t - b.t);
    b.row = head * h->t + b.t;
    b.kv = (head / h->h * h->hkv + head % h->h / (h->h / h->hkv)) * h->s;
    b.seen = keys_seen(h, b.t + b.n - 1);
    if (in->mask)
        b.mask = in->mask + head / h->h * h->mask[0] + head % h->h * h->mask[1] + b.t * h->mask[2];
    return b;
}

/* x (n, seen) = q k^T, scaled and masked. */
static void scores_of(const QnAttention *a, const QnAttentionIn *in, const Block *b, float *x,
                      float *scratch)
{
    const QnHeads *h = &a->h;
    times_turned(in->q + b->row * h->d, in->k + b->kv * h->d, x, b->n, b->seen, h->d, b->seen,
                 scratch);
    for (int64_t i = 0; i < b->n; i++)
        scale_row(h, x + i * b->seen, keys_seen(h, b->t + i),
                  b->mask ? b->mask + i * h->mask[2] : NULL);
}

static void forward(const QnAttention *a, const QnAttentionIn *in, float *y, float *lse,
                    int64_t unit, float *scratch)
{
    const QnHeads *h = &a->h;
    Block b = block_of(a, in, unit / a->n_blocks, unit % a->n_blocks);
    float *x = scratch + QN_GEMM_SCRATCH;
    scores_of(a, in, &b, x, scratch);
    for (int64_t i = 0; i < b.n; i++)
        lse[b.row + i] = softmax_row(x + i * b.seen, keys_seen(h, b.t + i), b.seen);
    times(x, b.seen, in->v + b.kv * h->e, y + b.row * h->e, b.n, h->e, b.seen, scratch);
}

static void backward(const QnAttention *a, const QnAttentionIn *in, float *dq, float *dk, float *dv,
                     int64_t unit, float *scratch)
{
    const QnHeads *h = &a->h;
    int64_t share = h->h / h->hkv, first = unit / h->hkv * h->h + unit % h->hkv * share;
    float *x = scratch + QN_GEMM_SCRATCH, *z = x + a->block * h->s;
    dk += unit * h->s * h->d;
    dv += unit * h->s * h->e;
    memset(dk, 0, (size_t)(h->s * h->d) * sizeof *dk);
    memset(dv, 0, (size_t)(h->s * h->e) * sizeof *dv);
    for (int64_t k = 0; k < share * a->n_blocks; k++) {
        Block b = block_of(a, in, first + k / a->n_blocks, k % a->n_blocks);
        const float *dy = in->dy + b.row * h->e;
        scores_of(a, in, &b, x, scratch);
        times_turned(dy, in->v + b.kv * h->e, z, b.n, b.seen, h->e, b.seen, scratch);
        for (int64_t i = 0; i < b.n; i++)
            grad_row(h, x + i * b.seen, z + i * b.seen, keys_seen(h, b.t + i), b.seen,
                     in->lse[b.row + i], in->delta[b.row + i]);
        times(z, b.seen, in->k + b.kv * h->d, dq + b.row * h->d, b.n, h->d, b.seen, scratch);
        add_turned_times(z, b.seen, in->q + b.row * h->d, dk, b.seen, h->d, b.n, scratch);
        add_turned_times(x, b.seen, dy, dv, b.seen, h->e, b.n, scratch);
    }
}

const QnAttentionFns QN_ISA_NAME(qn_attention_fns) = {
    .forward = forward,
    .backward = backward,
};
