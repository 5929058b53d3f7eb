/* Scaled dot-product attention:
 *   p = softmax over s of (scale * q . k + mask), y = sum over s of p * v
 * q (B,H,T,D), k (B,G,S,D), v (B,G,S,E), y (B,H,T,E); head h reads head h / (H/G) of k and v. The
 * mask (optional) is added and broadcasts to (B,H,T,S). causal lets query t see keys up to
 * t + S - T, so that with a cache of keys the last query sees all. lse (B,H,T) is the logarithm of
 * the softmax's denominator, f32 or wider, from which the gradient recomputes p. A query that sees
 * nothing gives 0. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
#include "ops/tile.h"

#define ATTENTION_ARGS                                                                             \
    qn_long nb, qn_long nh, qn_long nkv, qn_long nt, qn_long ns, qn_long nd, qn_long ne,           \
        qn_long m0, qn_long m1, qn_long m2, qn_long m3, qn_long causal, float scale

/* One work group 64 queries and 64 W columns of y, over blocks of 64 keys as far as they are seen:
 * scores in registers, a running maximum of each row (top; keep is what the sums so far shrink by),
 * and p * v through shared memory. The last queries, which see most, come first. */
#define ATTENTION_TILE(W, ADDED)                                                                   \
    QN_SHARED float ta[TILE_FLOATS(1)], tb[TILE_FLOATS(W)], p[64 * TILE_PITCH(1)];                 \
    QN_SHARED float top[64], keep[64];                                                             \
    qn_long blocks = (ne + 64 * W - 1) / (64 * W), tiles = (nt + 63) / 64, group = qn_group();     \
    qn_long col0 = group % blocks * (64 * W), head = group / blocks % nh;                          \
    qn_long b = group / blocks / nh % nb, t0 = (tiles - 1 - group / blocks / nh / nb) * 64;        \
    qn_long rows = (b * nh + head) * nt, keys = (b * nkv + head / (nh / nkv)) * ns;                \
    qn_long seen = causal != 0 ? qn_clamp(t0 + 64 + ns - nt, 0, ns) : ns;                          \
    int lid = qn_lid(), y0 = TILE_Y, x0 = TILE_X;                                                  \
    float acc[16 * W], l[4];                                                                       \
    for (int i = 0; i < 16 * W; i++)                                                               \
        acc[i] = 0.0f;                                                                             \
    for (int i = 0; i < 4; i++)                                                                    \
        l[i] = 0.0f;                                                                               \
    if (lid < 64)                                                                                  \
        top[lid] = -QN_INF;                                                                        \
    for (qn_long s0 = 0; s0 < seen; s0 += 64) {                                                    \
        float z[16];                                                                               \
        for (int i = 0; i < 16; i++)                                                               \
            z[i] = 0.0f;                                                                           \
        qn_tile_product(z, 1, 1, ta, tb, q, rows *nd, t0, nt, nd, 1, k, keys *nd, s0, ns, nd, 1,   \
                        0, nd);                                                                    \
        for (int i = 0; i < 4; i++) {                                                              \
            float most = -QN_INF;                                                                  \
            qn_long t = t0 + y0 + i;                                                               \
            for (int j = 0; j < 4; j++) {                                                          \
                qn_long s = s0 + x0 + j;                                                           \
                bool sees = t < nt && s < ns && (causal == 0 || s <= t + ns - nt);                 \
                float score = sees ? z[i * 4 + j] * scale + ADDED : -QN_INF;                       \
                z[i * 4 + j] = score;                                                              \
                most = qn_maxf(most, score);                                                       \
            }                                                                                      \
            ta[(y0 + i) * 17 + lid % 16] = most;                                                   \
        }                                                                                          \
        QN_SYNC();                                                                                 \
        if (lid < 64) {                                                                            \
            float most = top[lid];                                                                 \
            for (int j = 0; j < 16; j++)                                                           \
                most = qn_maxf(most, ta[lid * 17 + j]);                                            \
            keep[lid] = most == -QN_INF ? 1.0f : qn_expf(top[lid] - most);                         \
            top[lid] = most;                                                                       \
        }                                                                                          \
        QN_SYNC();                                                                                 \
        for (int i = 0; i < 4; i++) {                                                              \
            float most = top[y0 + i], shrink = keep[y0 + i];                                       \
            l[i] *= shrink;                                                                        \
            for (int j = 0; j < 4; j++) {                                                          \
                float e = z[i * 4 + j] == -QN_INF ? 0.0f : qn_expf(z[i * 4 + j] - most);           \
                p[(x0 + j) * TILE_PITCH(1) + y0 + i] = e;                                          \
                l[i] += e;                                                                         \
            }                                                                                      \
            for (int j = 0; j < 4 * W; j++)                                                        \
                acc[i * 4 * W + j] *= shrink;                                                      \
        }                                                                                          \
        qn_tile_product_of(acc, W, p, tb, v, keys *ne, col0, ne, s0, ns, ne);                      \
    }                                                                                              \
    for (int i = 0; i < 4; i++)                                                                    \
        ta[(y0 + i) * 17 + lid % 16] = l[i];                                                       \
    QN_SYNC();                                                                                     \
    for (int i = 0; i < 4; i++) {                                                                  \
        qn_long t = t0 + y0 + i;                                                                   \
        float sum = 0.0f;                                                                          \
        for (int j = 0; j < 16; j++)                                                               \
            sum += ta[(y0 + i) * 17 + j];                                                          \
        float r = sum > 0.0f ? 1.0f / sum : 0.0f;                                                  \
        for (int j = 0; j < 4 * W; j++) {                                                          \
            qn_long col = col0 + j / 4 * 64 + x0 + j % 4;                                          \
            if (t < nt && col < ne)                                                                \
                qn_store(y, (rows + t) * ne + col, acc[i * 4 * W + j] * r);                        \
        }                                                                                          \
        if (t < nt && col0 == 0 && lid % 16 == 0)                                                  \
            lse[rows + t] = sum > 0.0f ? top[y0 + i] + qn_logf(sum) : -QN_INF;                     \
    }

#define ATTENTION_MASK qn_load(mask, b *m0 + head * m1 + t * m2 + s * m3)

QN_KERNEL attention_tile(QN_GLOBAL QN_T *y, QN_GLOBAL float *lse, QN_GLOBAL const QN_T *q,
                         QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,
                         ATTENTION_ARGS){ ATTENTION_TILE(1, 0.0f) }

QN_KERNEL attention_tile_mask(QN_GLOBAL QN_T *y, QN_GLOBAL float *lse, QN_GLOBAL const QN_T *q,
                              QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,
                              QN_GLOBAL const QN_T *mask,
                              ATTENTION_ARGS){ ATTENTION_TILE(1, ATTENTION_MASK) }

QN_KERNEL attention_wide(QN_GLOBAL QN_T *y, QN_GLOBAL float *lse, QN_GLOBAL const QN_T *q,
                         QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,
                         ATTENTION_ARGS){ ATTENTION_TILE(2, 0.0f) }

QN_KERNEL attention_wide_mask(QN_GLOBAL QN_T *y, QN_GLOBAL float *lse, QN_GLOBAL const QN_T *q,
                              QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,
                              QN_GLOBAL const QN_T *mask,
                              ATTENTION_ARGS){ ATTENTION_TILE(2, ATTENTION_MASK) }

/* For a few queries (one, where a model answers token by token): one work group a query. Keys come
 * in chunks of the group's size: each item scores one, the softmax is kept running (maximum m,
 * denominator l), and items then add up columns of y. */
#define ATTENTION_ROW(ADDED)                                                                       \
    QN_SHARED float part[256], p[256];                                                             \
    qn_long row = qn_group(), t = row % nt, head = row / nt % nh, b = row / nt / nh;               \
    qn_long kv = b * nkv + head / (nh / nkv), seen = causal != 0 ? t + ns - nt + 1 : ns;           \
    int lid = qn_lid(), size = qn_group_size();                                                    \
    float m = -QN_INF, l = 0.0f, acc = 0.0f;                                                       \
    seen = seen < 0 ? 0 : seen > ns ? ns : seen;                                                   \
    for (qn_long first = 0; first < seen; first += size) {                                         \
        qn_long s = first + lid;                                                                   \
        float score = -QN_INF;                                                                     \
        if (s < seen) {                                                                            \
            score = 0.0f;                                                                          \
            for (qn_long i = 0; i < nd; i++)                                                       \
                score += qn_load(q, row * nd + i) * qn_load(k, (kv * ns + s) * nd + i);            \
            score = score * scale + ADDED;                                                         \
        }                                                                                          \
        part[lid] = score;                                                                         \
        QN_SYNC();                                                                                 \
        for (int h = size / 2; h > 0; h /= 2) {                                                    \
            if (lid < h)                                                                           \
                part[lid] = qn_maxf(part[lid], part[lid + h]);                                     \
            QN_SYNC();                                                                             \
        }                                                                                          \
        float top = qn_maxf(m, part[0]), keep = top == -QN_INF ? 1.0f : qn_expf(m - top);          \
        QN_SYNC();                                                                                 \
        p[lid] = part[lid] = top == -QN_INF ? 0.0f : qn_expf(score - top);                         \
        QN_SYNC();                                                                                 \
        for (int h = size / 2; h > 0; h /= 2) {                                                    \
            if (lid < h)                                                                           \
                part[lid] += part[lid + h];                                                        \
            QN_SYNC();                                                                             \
        }                                                                                          \
        l = l * keep + part[0];                                                                    \
        m = top;                                                                                   \
        acc *= keep;                                                                               \
        for (int j = 0; j < size && first + j < seen && lid < ne; j++)                             \
            acc += p[j] * qn_load(v, (kv * ns + first + j) * ne + lid);                            \
        QN_SYNC();                                                                                 \
    }                                                                                              \
    if (lid < ne)                                                                                  \
        qn_store(y, row *ne + lid, l > 0.0f ? acc / l : 0.0f);                                     \
    if (lid == 0)                                                                                  \
        lse[row] = l > 0.0f ? m + qn_logf(l) : -QN_INF;

QN_KERNEL attention_row(QN_GLOBAL QN_T *y, QN_GLOBAL float *lse, QN_GLOBAL const QN_T *q,
                        QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,
                        ATTENTION_ARGS){ ATTENTION_ROW(0.0f) }

QN_KERNEL attention_row_mask(QN_GLOBAL QN_T *y, QN_GLOBAL float *lse, QN_GLOBAL const QN_T *q,
                             QN_GLOBAL const QN_T *k, QN_GLOBAL const QN_T *v,
                             QN_GLOBAL const QN_T *mask, ATTENTION_ARGS)
{
    ATTENTION_ROW(ATTENTION_MASK)
}
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/heads.h"
#include "ops/norm.h"
#include "ops/util.h"

static const QnAttrField attention_fields[] = { QN_HEADS_FIELDS };

static QnStatus attention_infer(QnInfer *c)
{
    QN_TRY(qn_norm_dtypes(c, "attention", ~0u));
    QN_TRY(qn_heads_check(c, "attention", 0, 3));
    const QnShape *q = &c->in[0]->shape;
    c->out[0] = *c->in[0];
    c->out[0].shape.dim[3] = c->in[2]->shape.dim[3];
    c->out[1] = (QnType){ .dtype = qn_norm_stat(c->in[0]->dtype),
                          .shape = QN_SHAPE(q->dim[0], q->dim[1], q->dim[2]) };
    return QN_OK;
}

static const QnShape *attention_mask(const QnNode *n)
{
    return n->n_in > 3 && n->in[3] ? &n->in[3]->type.shape : NULL;
}

static QnHeads attention_heads(const QnNode *n)
{
    return qn_heads_make(n->attr, &n->in[0]->type.shape, &n->in[1]->type.shape,
                         &n->in[2]->type.shape, attention_mask(n));
}

/* Two products and a softmax over the pairs that see each other. */
static QnCost attention_cost(const QnNode *n)
{
    QnHeads h = attention_heads(n);
    QnCost c = { .flops = qn_heads_pairs(&h) * (double)(2 * h.d + 2 * h.e + 14),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) +
                                  (double)qn_type_bytes(&n->out[1].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    return c;
}

static QnStatus attention_ref(const QnRefArgs *a)
{
    QnHeads h = attention_heads(a->node);
    const double *mask = attention_mask(a->node) ? a->in[3] : NULL;
    for (int64_t row = 0; row < h.b * h.h * h.t; row++) {
        int64_t kv = row / h.t / h.h * h.hkv + row / h.t % h.h / (h.h / h.hkv);
        double top = -INFINITY, sum = 0, *y = a->out[0] + row * h.e;
        for (int64_t s = 0; s < h.s; s++)
            top = fmax(top, qn_heads_score(&h, a->in[0], a->in[1], mask, row, s));
        memset(y, 0, (size_t)h.e * sizeof *y);
        for (int64_t s = 0; s < h.s && top > -INFINITY; s++) {
            double p = exp(qn_heads_score(&h, a->in[0], a->in[1], mask, row, s) - top);
            sum += p;
            for (int64_t i = 0; i < h.e; i++)
                y[i] += p * a->in[2][(kv * h.s + s) * h.e + i];
        }
        for (int64_t i = 0; i < h.e && sum > 0; i++)
            y[i] /= sum;
        a->out[1][row] = sum > 0 ? top + log(sum) : -INFINITY;
    }
    return QN_OK;
}

/* delta = sum of dy * y, less what comes through lse; the rest is attention_grad's. */
static void attention_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnHeadsAttr *a = n->attr;
    QnValue *y = &n->out[0], *lse = &n->out[1], *d = dy[0], *delta = NULL;
    QnDtype t = lse->type.dtype;
    if (d)
        delta = qn_sum(g, qn_mul(g, qn_cast(g, d, t), qn_cast(g, y, t)), QN_AXES(3), false);
    else
        d = qn_expand(g, qn_scalar_like(g, y, 0), &y->type.shape);
    if (dy[1])
        delta = delta ? qn_sub(g, delta, dy[1]) : qn_neg(g, dy[1]);
    QnValue *mask = n->n_in > 3 ? n->in[3] : NULL;
    QnNode *b = qn_attention_grad(g, d, n->in[0], n->in[1], n->in[2], lse, delta, mask, a->causal,
                                  a->scale);
    for (int i = 0; i < 3; i++)
        dx[i] = qn_node_out(g, b, i);
    if (mask)
        dx[3] = qn_attention_mask_grad(g, b);
}

static QnStatus attention_call(const QnNode *n, QnDeviceCall *c)
{
    static const char *const kernels[][2] = { { "attention_row", "attention_row_mask" },
                                              { "attention_tile", "attention_tile_mask" },
                                              { "attention_wide", "attention_wide_mask" } };
    enum { FEW = 8 }; /* queries, of which a block of 64 would be mostly empty */
    QnHeads h = attention_heads(n);
    int wide = h.t <= FEW && h.e <= QN_GROUP ? 0 : h.e <= 64 ? 1 : 2;
    *c = (QnDeviceCall){ .kernel = kernels[wide][attention_mask(n) != NULL],
                         .n_groups = h.b * h.h * h.t,
                         .group_size = QN_GROUP };
    if (wide)
        c->n_groups = h.b * h.h * ((h.t + 63) / 64) * ((h.e + 64 * wide - 1) / (64 * wide));
    qn_heads_args(&h, c);
    return QN_OK;
}

static const QnSample attention_samples[] = {
    { .in = { { 4, { 2, 2, 5, 4 } }, { 4, { 2, 2, 5, 4 } }, { 4, { 2, 2, 5, 4 } } },
      .n_in = 3,
      .attr = &(QnHeadsAttr){ true, 0 } },
    { .in = { { 4, { 1, 4, 3, 6 } },
              { 4, { 1, 2, 7, 6 } },
              { 4, { 1, 2, 7, 5 } },
              { 2, { 3, 7 } } },
      .n_in = 4,
      .attr = &(QnHeadsAttr){ false, 0.7 } },
    { .in = { { 4, { 1, 2, 3, 4 } },
              { 4, { 1, 1, 130, 4 } },
              { 4, { 1, 1, 130, 4 } },
              { 4, { 1, 2, 1, 130 } } },
      .n_in = 4,
      .attr = &(QnHeadsAttr){ true, 0 } },
};

/* The node: outputs y and lse. mask may be NULL; scale 0 stands for 1 / sqrt(D). */
QN_API QnNode *qn_attention_node(QnGraph *g, QnValue *q, QnValue *k, QnValue *v, QnValue *mask,
                                 bool causal, double scale)
{
    return qn_emit(g, &qn_op_attention, &(QnHeadsAttr){ causal, scale },
                   (QnValue *[]){ q, k, v, mask }, mask ? 4 : 3);
}

/* y alone. */
QN_API QnValue *qn_attention(QnGraph *g, QnValue *q, QnValue *k, QnValue *v, QnValue *mask,
                             bool causal, double scale)
{
    return qn_node_out(g, qn_attention_node(g, q, k, v, mask, causal, scale), 0);
}

/* 0 where query t sees key s, minus infinity elsewhere: (T,S). */
static const char *attention_put_causal(QnOnnxPut *p, QnDtype dtype, int64_t t, int64_t s)
{
    QnTensor *m = qn_arena_alloc(p->arena, sizeof *m);
    float *v = qn_arena_array(p->arena, (size_t)(t * s) + 1, sizeof *v);
    char *data = qn_arena_array(p->arena, (size_t)(t * s) + 1, qn_dtype_bytes(dtype));
    if (!m || !v || !data) {
        qn_put_fail(p, QN_ENOMEM);
        return "";
    }
    for (int64_t i = 0; i < t * s; i++)
        v[i] = i % s <= i / s + s - t ? 0 : -INFINITY;
    qn_dtype_from_f32(dtype, v, data, t * s);
    *m = (QnTensor){ .type = { .dtype = dtype, .shape = QN_SHAPE(t, s) }, .data = data };
    return qn_put_tensor(p, qn_put_fresh(p, "causal_mask"), m);
}

/* softmax(q k' scale + mask) v, in nodes that every opset has. */
static QnStatus attention_put(QnOnnxPut *p, const QnNode *n)
{
    static const int64_t perm[] = { 0, 1, 3, 2 };
    const QnHeadsAttr *a = n->attr;
    const QnShape *q = &n->in[0]->type.shape, *k = &n->in[1]->type.shape;
    QnDtype dtype = n->in[0]->type.dtype;
    if (q->dim[1] != k->dim[1])
        return qn_fail(QN_EUNSUPPORTED, "attention with fewer heads of keys than of queries");
    if (a->causal && (q->dim[2] < 0 || k->dim[2] < 0))
        return qn_fail(QN_EUNSUPPORTED, "causal attention over a symbolic number of tokens");
    double scale = a->scale > 0 ? a->scale : 1 / sqrt((double)q->dim[3]);
    const char *key = qn_put_value(p, n->in[1]), *turned = qn_put_fresh(p, "keys");
    qn_put_attr_ints(p, qn_put_node(p, "Transpose", &key, 1, &turned, 1), "perm", perm, 4);
    const char *in[2] = { qn_put_value(p, n->in[0]), turned };
    in[0] = qn_put_1(p, "MatMul", in, 2);
    in[1] = qn_put_number(p, dtype, scale);
    in[0] = qn_put_1(p, "Mul", in, 2);
    if (a->causal) {
        in[1] = attention_put_causal(p, dtype, q->dim[2], k->dim[2]);
        in[0] = qn_put_1(p, "Add", in, 2);
    }
    if (attention_mask(n)) {
        in[1] = qn_put_value(p, n->in[3]);
        in[0] = qn_put_1(p, "Add", in, 2);
    }
    const char *weights = qn_put_fresh(p, "weights");
    qn_put_attr_int(p, qn_put_node(p, "Softmax", in, 1, &weights, 1), "axis", -1);
    qn_put_as(p, &n->out[0], "MatMul", (const char *[]){ weights, qn_put_value(p, n->in[2]) }, 2);
    return qn_put_status(p);
}

const QnOp qn_op_attention = {
    .name = "attention",
    .version = 1,
    .doc = "scaled dot-product attention",
    .n_in = 3,
    .n_in_max = 4,
    .n_out = 2,
    QN_ATTRS(QnHeadsAttr, attention_fields),
    .infer = attention_infer,
    .cost = attention_cost,
    .ref = attention_ref,
    .grad = attention_grad,
    .device = QN_TEXT(attention),
    .call = attention_call,
    .onnx_put = attention_put,
    .onnx_writes = "Add,MatMul,Mul,Softmax,Transpose",
    QN_SAMPLES(attention_samples),
};
#endif
