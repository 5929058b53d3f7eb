/* Gradient of attention, which recomputes p = exp(scale * q . k + mask - lse) tile by tile:
 *   ds = p * (dy . v - delta), dq = scale * ds k, dk = scale * ds^T q, dv = p^T dy
 * Inputs dy (B,H,T,E), q, k, v, lse (B,H,T), delta (B,H,T) = sum of dy * y less the gradient of
 * lse, and the mask if there is one; outputs dq, dk, dv (heads that share k and v add up). */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/tile.h"

#define ATTENTION_GRAD_ARGS                                                                        \
    qn_long nb, qn_long nh, qn_long nkv, qn_long nt, qn_long ns, qn_long nd, qn_long ne,           \
        qn_long m0, qn_long m1, qn_long m2, qn_long m3, qn_long causal, float scale

/* p and z = scale * ds of this item's queries and keys in the block at (t0, s0). */
#define ATTENTION_GRAD_PAIR(ADDED)                                                                 \
    float p[16], z[16];                                                                            \
    for (int i = 0; i < 16; i++)                                                                   \
        p[i] = z[i] = 0.0f;                                                                        \
    qn_tile_product(p, 1, 1, ta, tb, q, rows *nd, t0, nt, nd, 1, k, keys *nd, s0, ns, nd, 1, 0,    \
                    nd);                                                                           \
    qn_tile_product(z, 1, 1, ta, tb, dy, rows *ne, t0, nt, ne, 1, v, keys *ne, s0, ns, ne, 1, 0,   \
                    ne);                                                                           \
    for (int i = 0; i < 4; i++) {                                                                  \
        qn_long t = t0 + y0 + i;                                                                   \
        float total = t < nt ? lse[rows + t] : -QN_INF, mean = t < nt ? delta[rows + t] : 0.0f;    \
        for (int j = 0; j < 4; j++) {                                                              \
            qn_long s = s0 + x0 + j;                                                               \
            bool sees = s < ns && total > -QN_INF && (causal == 0 || s <= t + ns - nt);            \
            float e = sees ? qn_expf(p[i * 4 + j] * scale + ADDED - total) : 0.0f;                 \
            p[i * 4 + j] = e;                                                                      \
            z[i * 4 + j] = sees ? e * (z[i * 4 + j] - mean) * scale : 0.0f;                        \
        }                                                                                          \
    }

/* The first groups do 64 keys and 64 W columns of dk and dv each, over the queries that see them,
 * head by head; the others 64 queries and 64 W columns of dq. Each sum has one order. */
#define ATTENTION_GRAD_TILE(W, ADDED)                                                              \
    QN_SHARED float ta[TILE_FLOATS(1)], tb[TILE_FLOATS(W)], pt[64 * TILE_PITCH(1)];                \
    qn_long most = nd > ne ? nd : ne, share = nh / nkv;                                            \
    qn_long blocks = (most + 64 * W - 1) / (64 * W), dq_blocks = (nd + 64 * W - 1) / (64 * W);     \
    qn_long of_keys = blocks * nb * nkv * ((ns + 63) / 64), group = qn_group();                    \
    int y0 = TILE_Y, x0 = TILE_X;                                                                  \
    float a[16 * W];                                                                               \
    for (int i = 0; i < 16 * W; i++)                                                               \
        a[i] = 0.0f;                                                                               \
    if (group < of_keys) {                                                                         \
        float c[16 * W];                                                                           \
        qn_long col0 = group % blocks * (64 * W), kv = group / blocks % (nb * nkv), b = kv / nkv;  \
        qn_long s0 = group / blocks / nb / nkv * 64, keys = kv * ns;                               \
        qn_long from = causal != 0 ? qn_clamp(s0 - ns + nt, 0, nt) / 64 * 64 : 0;                  \
        for (int i = 0; i < 16 * W; i++)                                                           \
            c[i] = 0.0f;                                                                           \
        for (qn_long head = kv % nkv * share; head < (kv % nkv + 1) * share; head++) {             \
            qn_long rows = (b * nh + head) * nt;                                                   \
            for (qn_long t0 = from; t0 < nt; t0 += 64) {                                           \
                ATTENTION_GRAD_PAIR(ADDED)                                                         \
                for (int i = 0; i < 16; i++)                                                       \
                    pt[(y0 + i / 4) * TILE_PITCH(1) + x0 + i % 4] = p[i];                          \
                qn_tile_product_of(c, W, pt, tb, dy, rows *ne, col0, ne, t0, nt, ne);              \
                for (int i = 0; i < 16; i++)                                                       \
                    pt[(y0 + i / 4) * TILE_PITCH(1) + x0 + i % 4] = z[i];                          \
                qn_tile_product_of(a, W, pt, tb, q, rows *nd, col0, nd, t0, nt, nd);               \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < 16 * W; i++) {                                                         \
            qn_long s = s0 + y0 + i / (4 * W);                                                     \
            qn_long col = col0 + i % (4 * W) / 4 * 64 + x0 + i % 4;                                \
            if (s < ns && col < nd)                                                                \
                qn_store(dk, (keys + s) * nd + col, a[i]);                                         \
            if (s < ns && col < ne)                                                                \
                qn_store(dv, (keys + s) * ne + col, c[i]);                                         \
        }                                                                                          \
    } else {                                                                                       \
        group -= of_keys;                                                                          \
        qn_long col0 = group % dq_blocks * (64 * W), row = group / dq_blocks % (nb * nh);          \
        qn_long b = row / nh, head = row % nh, rows = row * nt,                                    \
                keys = (b * nkv + head / share) * ns;                                              \
        qn_long t0 = ((nt + 63) / 64 - 1 - group / dq_blocks / nb / nh) * 64;                      \
        qn_long seen = causal != 0 ? qn_clamp(t0 + 64 + ns - nt, 0, ns) : ns;                      \
        for (qn_long s0 = 0; s0 < seen; s0 += 64) {                                                \
            ATTENTION_GRAD_PAIR(ADDED)                                                             \
            for (int i = 0; i < 16; i++)                                                           \
                pt[(x0 + i % 4) * TILE_PITCH(1) + y0 + i / 4] = z[i];                              \
            qn_tile_product_of(a, W, pt, tb, k, keys *nd, col0, nd, s0, ns, nd);                   \
        }                                                                                          \
        for (int i = 0; i < 16 * W; i++) {                                                         \
            qn_long t = t0 + y0 + i / (4 * W);                                                     \
            qn_long col = col0 + i % (4 * W) / 4 * 64 + x0 + i % 4;                                \
            if (t < nt && col < nd)                                                                \
                qn_store(dq, (rows + t) * nd + col, a[i]);                                         \
        }                                                                                          \
    }

#define ATTENTION_GRAD_TENSORS                                                                     \
    QN_GLOBAL QN_T *dq, QN_GLOBAL QN_T *dk, QN_GLOBAL QN_T *dv, QN_GLOBAL const QN_T *dy,          \
        QN_GLOBAL const QN_T *q, QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,                 \
        QN_GLOBAL const float *lse, QN_GLOBAL const float *delta
#define ATTENTION_GRAD_MASK qn_load(mask, b *m0 + head * m1 + t * m2 + s * m3)

QN_KERNEL attention_grad_tile(ATTENTION_GRAD_TENSORS,
                              ATTENTION_GRAD_ARGS){ ATTENTION_GRAD_TILE(1, 0.0f) }

QN_KERNEL
    attention_grad_tile_mask(ATTENTION_GRAD_TENSORS, QN_GLOBAL const QN_T *mask,
                             ATTENTION_GRAD_ARGS){ ATTENTION_GRAD_TILE(1, ATTENTION_GRAD_MASK) }

QN_KERNEL
    attention_grad_wide(ATTENTION_GRAD_TENSORS, ATTENTION_GRAD_ARGS){ ATTENTION_GRAD_TILE(2, 0.0f) }

QN_KERNEL attention_grad_wide_mask(ATTENTION_GRAD_TENSORS, QN_GLOBAL const QN_T *mask,
                                   ATTENTION_GRAD_ARGS)
{
    ATTENTION_GRAD_TILE(2, ATTENTION_GRAD_MASK)
}
#endif

#ifdef QN_HOST
#include "ops/heads.h"
#include "ops/norm.h"
#include "ops/util.h"

static const QnAttrField attention_grad_fields[] = { QN_HEADS_FIELDS };

static QnStatus attention_grad_infer(QnInfer *c)
{
    QN_TRY(qn_norm_dtypes(c, "attention_grad", 1u << 1 | 1u << 2 | 1u << 3 | 1u << 6));
    QN_TRY(qn_heads_check(c, "attention_grad", 1, 6));
    QnShape y = c->in[1]->shape, row = qn_shape_make(3, c->in[1]->shape.dim);
    y.dim[3] = c->in[3]->shape.dim[3];
    QN_TRY(qn_norm_shape(c, "attention_grad", 0, &y));
    QN_TRY(qn_norm_shape(c, "attention_grad", 4, &row));
    QN_TRY(qn_norm_shape(c, "attention_grad", 5, &row));
    for (int i = 0; i < 3; i++)
        c->out[i] = *c->in[1 + i];
    return QN_OK;
}

static const QnShape *attention_grad_mask(const QnNode *n)
{
    return n->n_in > 6 && n->in[6] ? &n->in[6]->type.shape : NULL;
}

static QnHeads attention_grad_heads(const QnNode *n)
{
    return qn_heads_make(n->attr, &n->in[1]->type.shape, &n->in[2]->type.shape,
                         &n->in[3]->type.shape, attention_grad_mask(n));
}

/* Five products: scores, dy . v, dq, dk, dv. */
static QnCost attention_grad_cost(const QnNode *n)
{
    QnHeads h = attention_grad_heads(n);
    QnCost c = { .flops = qn_heads_pairs(&h) * (double)(6 * h.d + 4 * h.e + 15) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

static QnStatus attention_grad_ref(const QnRefArgs *a)
{
    QnHeads h = attention_grad_heads(a->node);
    const double *dy = a->in[0], *q = a->in[1], *k = a->in[2], *v = a->in[3];
    const double *mask = attention_grad_mask(a->node) ? a->in[6] : NULL;
    for (int i = 0; i < 3; i++)
        memset(a->out[i], 0, (size_t)qn_shape_count(&a->out_type[i]->shape) * sizeof(double));
    for (int64_t row = 0; row < h.b * h.h * h.t; row++) {
        int64_t kv = row / h.t / h.h * h.hkv + row / h.t % h.h / (h.h / h.hkv);
        for (int64_t s = 0; s < h.s && a->in[4][row] > -INFINITY; s++) {
            int64_t key = kv * h.s + s;
            double p = exp(qn_heads_score(&h, q, k, mask, row, s) - a->in[4][row]), dp = 0;
            for (int64_t i = 0; i < h.e; i++)
                dp += dy[row * h.e + i] * v[key * h.e + i];
            double ds = p * (dp - a->in[5][row]) * h.scale;
            for (int64_t i = 0; i < h.d; i++) {
                a->out[0][row * h.d + i] += ds * k[key * h.d + i];
                a->out[1][key * h.d + i] += ds * q[row * h.d + i];
            }
            for (int64_t i = 0; i < h.e; i++)
                a->out[2][key * h.e + i] += p * dy[row * h.e + i];
        }
    }
    return QN_OK;
}

/* Second order and the mask's gradient, in whole matrices of (B,G,H/G,T,S). */
typedef struct Whole {
    QnShape grouped;                      /* (B,G,H/G) */
    QnValue *dy, *q, *k, *v, *p, *z, *ds; /* z = dy v^T - delta, ds = p * z */
    double scale;
} Whole;

/* (B,H,x...) to (B,G,H/G,x...), (B,G,x...) to (B,G,1,x...). */
static QnValue *attention_grad_split(QnGraph *g, const Whole *w, QnValue *x, bool is_query,
                                     int rank)
{
    QnShape s = { .rank = rank + 1,
                  .dim = { w->grouped.dim[0], w->grouped.dim[1],
                           is_query ? w->grouped.dim[2] : 1 } };
    for (int i = 2; i < rank; i++)
        s.dim[i + 1] = x->type.shape.dim[i];
    return qn_reshape(g, x, &s);
}

/* S - T, by which the last key that a query sees lies right of the diagonal. */
static int64_t attention_grad_diagonal(QnGraph *g, QnDim t, QnDim s)
{
    if (t == s || (t >= 0 && s >= 0))
        return s - t;
    qn_fail(QN_EUNSUPPORTED, "attention: with symbolic lengths that differ, a causal attention has "
                             "no second derivative and its mask no gradient; bind them first");
    qn_graph_poison(g);
    return 0;
}

static QnValue *attention_grad_scores(QnGraph *g, QnNode *n, const Whole *w)
{
    const QnHeadsAttr *a = n->attr;
    const QnShape *q = &n->in[1]->type.shape, *k = &n->in[2]->type.shape;
    QnValue *s = qn_mul_scalar(g, qn_matmul(g, w->q, w->k, NULL, false, true), w->scale);
    if (attention_grad_mask(n)) {
        QnShape full = QN_SHAPE(q->dim[0], q->dim[1], q->dim[2], k->dim[2]);
        QnValue *mask = qn_expand(g, qn_cast(g, n->in[6], s->type.dtype), &full);
        s = qn_add(g, s, attention_grad_split(g, w, mask, true, 4));
    }
    if (a->causal) { /* -1e9 above the diagonal */
        QnValue *one = qn_full(g, 1, s->type.dtype, &QN_SHAPE(q->dim[2], k->dim[2]));
        QnValue *low = qn_tril(g, one, attention_grad_diagonal(g, q->dim[2], k->dim[2]));
        s = qn_add(g, s, qn_mul_scalar(g, qn_add_scalar(g, low, -1), 1e9));
    }
    return s;
}

static Whole attention_grad_whole(QnGraph *g, QnNode *n)
{
    const QnShape *q = &n->in[1]->type.shape, *k = &n->in[2]->type.shape;
    const QnHeadsAttr *a = n->attr;
    QnDtype t = qn_norm_stat(n->in[1]->type.dtype);
    Whole w = { .scale = a->scale > 0 ? a->scale : 1 / sqrt((double)q->dim[3]) };
    w.grouped = QN_SHAPE(q->dim[0], k->dim[1], qn_dim_div(g, q->dim[1], QN_MAX(k->dim[1], 1)));
    w.dy = attention_grad_split(g, &w, qn_cast(g, n->in[0], t), true, 4);
    w.q = attention_grad_split(g, &w, qn_cast(g, n->in[1], t), true, 4);
    w.k = attention_grad_split(g, &w, qn_cast(g, n->in[2], t), false, 4);
    w.v = attention_grad_split(g, &w, qn_cast(g, n->in[3], t), false, 4);
    QnShape row = QN_SHAPE(w.grouped.dim[0], w.grouped.dim[1], w.grouped.dim[2], q->dim[2], 1);
    QnValue *lse = qn_reshape(g, qn_cast(g, n->in[4], t), &row);
    QnValue *delta = qn_reshape(g, qn_cast(g, n->in[5], t), &row);
    w.p = qn_exp(g, qn_sub(g, attention_grad_scores(g, n, &w), lse));
    w.z = qn_sub(g, qn_matmul(g, w.dy, w.v, NULL, false, true), delta);
    w.ds = qn_mul(g, w.p, w.z);
    return w;
}

/* Sums heads that share, and takes the input's shape and dtype again. */
static QnValue *attention_grad_join(QnGraph *g, QnValue *x, const QnValue *grouped, QnValue *like)
{
    x = qn_sum_to(g, x, &grouped->type.shape);
    return qn_cast(g, qn_reshape(g, x, &like->type.shape), like->type.dtype);
}

static QnValue *attention_grad_to_mask(QnGraph *g, QnNode *n, QnValue *x)
{
    const QnShape *q = &n->in[1]->type.shape, *k = &n->in[2]->type.shape;
    QnShape full = QN_SHAPE(q->dim[0], q->dim[1], q->dim[2], k->dim[2]);
    x = qn_sum_to(g, qn_reshape(g, x, &full), &n->in[6]->type.shape);
    return qn_cast(g, x, n->in[6]->type.dtype);
}

/* With cotangents a, b, c of dq, dk, dv: e = scale * (a k^T + q b^T), f = e * z + dy c^T,
 * w = e * p, u = f * p are those of ds, p, z and the scores. */
static void attention_grad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    if (qn_graph_check(g) != QN_OK)
        return;
    Whole w = attention_grad_whole(g, n);
    QnDtype t = w.q->type.dtype;
    QnValue *c[3];
    for (int i = 0; i < 3; i++) {
        QnValue *zero = qn_expand(g, qn_scalar_like(g, n->in[1 + i], 0), &n->in[1 + i]->type.shape);
        c[i] = attention_grad_split(g, &w, qn_cast(g, dy[i] ? dy[i] : zero, t), i == 0, 4);
    }
    QnValue *e = qn_add(g, qn_matmul(g, c[0], w.k, NULL, false, true),
                        qn_matmul(g, w.q, c[1], NULL, false, true));
    e = qn_mul_scalar(g, e, w.scale);
    QnValue *f = qn_add(g, qn_mul(g, e, w.z), qn_matmul(g, w.dy, c[2], NULL, false, true));
    QnValue *dz = qn_mul(g, e, w.p), *u = qn_mul(g, f, w.p);
    QnValue *us = qn_mul_scalar(g, u, w.scale), *dss = qn_mul_scalar(g, w.ds, w.scale);
    QnValue *ddy = qn_add(g, qn_matmul(g, dz, w.v, NULL, false, false),
                          qn_matmul(g, w.p, c[2], NULL, false, false));
    QnValue *dq = qn_add(g, qn_matmul(g, us, w.k, NULL, false, false),
                         qn_matmul(g, dss, c[1], NULL, false, false));
    QnValue *dk = qn_add(g, qn_matmul(g, us, w.q, NULL, true, false),
                         qn_matmul(g, dss, c[0], NULL, true, false));
    dx[0] = attention_grad_join(g, ddy, w.dy, n->in[0]);
    dx[1] = attention_grad_join(g, dq, w.q, n->in[1]);
    dx[2] = attention_grad_join(g, dk, w.k, n->in[2]);
    dx[3] = attention_grad_join(g, qn_matmul(g, dz, w.dy, NULL, true, false), w.v, n->in[3]);
    QnValue *dl = qn_neg(g, qn_sum(g, u, QN_AXES(-1), true));
    QnValue *dd = qn_neg(g, qn_sum(g, dz, QN_AXES(-1), true));
    dx[4] = qn_cast(g, qn_reshape(g, dl, &n->in[4]->type.shape), n->in[4]->type.dtype);
    dx[5] = qn_cast(g, qn_reshape(g, dd, &n->in[5]->type.shape), n->in[5]->type.dtype);
    if (attention_grad_mask(n))
        dx[6] = attention_grad_to_mask(g, n, u);
}

static QnStatus attention_grad_call(const QnNode *n, QnDeviceCall *c)
{
    QnHeads h = attention_grad_heads(n);
    if (n->in[4]->type.dtype != QN_DTYPE_F32 || n->in[5]->type.dtype != QN_DTYPE_F32)
        return qn_fail(QN_EUNSUPPORTED, "attention_grad: device text takes f32 lse and delta");
    static const char *const kernels[][2] = { { "attention_grad_tile", "attention_grad_tile_mask" },
                                              { "attention_grad_wide",
                                                "attention_grad_wide_mask" } };
    int64_t most = QN_MAX(h.d, h.e), width = most <= 64 ? 64 : 128;
    int64_t of_keys = h.b * h.hkv * ((h.s + 63) / 64) * ((most + width - 1) / width);
    int64_t of_queries = h.b * h.h * ((h.t + 63) / 64) * ((h.d + width - 1) / width);
    *c = (QnDeviceCall){ .kernel = kernels[width > 64][attention_grad_mask(n) != NULL],
                         .n_groups = of_keys + of_queries,
                         .group_size = QN_GROUP };
    qn_heads_args(&h, c);
    return QN_OK;
}

/* lse above all scores, so that p stays below 1. */
static const QnSample attention_grad_samples[] = {
    { .in = { { 4, { 2, 2, 5, 4 } },
              { 4, { 2, 2, 5, 4 } },
              { 4, { 2, 2, 5, 4 } },
              { 4, { 2, 2, 5, 4 } },
              { 3, { 2, 2, 5 }, .lo = 1, .hi = 2, .wide = true },
              { 3, { 2, 2, 5 }, .wide = true } },
      .n_in = 6,
      .attr = &(QnHeadsAttr){ true, 0 } },
    { .in = { { 4, { 1, 4, 3, 5 } },
              { 4, { 1, 4, 3, 6 } },
              { 4, { 1, 2, 7, 6 } },
              { 4, { 1, 2, 7, 5 } },
              { 3, { 1, 4, 3 }, .lo = 1, .hi = 2 },
              { 3, { 1, 4, 3 } },
              { 2, { 3, 7 } } },
      .n_in = 7,
      .attr = &(QnHeadsAttr){ false, 0.7 } },
    { .in = { { 4, { 1, 2, 3, 4 } },
              { 4, { 1, 2, 3, 4 } },
              { 4, { 1, 1, 130, 4 } },
              { 4, { 1, 1, 130, 4 } },
              { 3, { 1, 2, 3 }, .lo = 4, .hi = 5, .wide = true },
              { 3, { 1, 2, 3 }, .wide = true },
              { 4, { 1, 2, 1, 130 } } },
      .n_in = 7,
      .attr = &(QnHeadsAttr){ true, 0 } },
};

/* Outputs: dq, dk, dv. mask may be NULL. */
QN_API QnNode *qn_attention_grad(QnGraph *g, QnValue *dy, QnValue *q, QnValue *k, QnValue *v,
                                 QnValue *lse, QnValue *delta, QnValue *mask, bool causal,
                                 double scale)
{
    return qn_emit(g, &qn_op_attention_grad, &(QnHeadsAttr){ causal, scale },
                   (QnValue *[]){ dy, q, k, v, lse, delta, mask }, mask ? 7 : 6);
}

/* The mask's gradient, in whole matrices, for an attention_grad node that has one. */
QN_API QnValue *qn_attention_mask_grad(QnGraph *g, QnNode *n)
{
    return n ? attention_grad_to_mask(g, n, attention_grad_whole(g, n).ds) : qn_graph_poison(g);
}

const QnOp qn_op_attention_grad = {
    .name = "attention_grad",
    .version = 1,
    .doc = "gradient of attention: dq, dk, dv",
    .n_in = 6,
    .n_in_max = 7,
    .n_out = 3,
    QN_ATTRS(QnHeadsAttr, attention_grad_fields),
    .infer = attention_grad_infer,
    .cost = attention_grad_cost,
    .ref = attention_grad_ref,
    .grad = attention_grad_grad,
    .device = QN_TEXT(attention_grad),
    .call = attention_grad_call,
    QN_SAMPLES(attention_grad_samples),
};
#endif
