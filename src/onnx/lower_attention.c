/* Attention: our operator where only its result is asked for, else scores, mask, softmax and
 * product one after the other, so that what lies between can be had. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <math.h>

typedef struct Form {
    int64_t b, hq, hkv, t, s, past; /* s: keys, those of the cache too */
    QnDtype dtype;
    bool flat; /* (B,T,H*D) in and out */
    double scale, softcap;
    int64_t left, right; /* window about a query; -1: all */
    bool causal;
    QnValue *q, *k, *v; /* (B,Hq,T,D), (B,Hkv,S,D), (B,Hkv,S,E) */
    QnValue *bias;      /* added to the scores; NULL: none */
} Form;

/* ---- operands -------------------------------------------------------------------------------- */

/* Input i as (B,H,T,D). */
static QnStatus heads_of(QnOnnxNode *n, int i, int64_t heads, QnValue **out)
{
    const QnType *t = qn_onnx_type(n, i);
    if (!t || (t->shape.rank != 3 && t->shape.rank != 4))
        return qn_fail(QN_ESHAPE, "input %d must be a tensor of rank 3 or 4", i);
    const QnShape s = t->shape;
    *out = qn_onnx_in(n, i);
    if (s.rank == 4)
        return QN_OK;
    if (heads < 1 || s.dim[2] % heads)
        return qn_fail(QN_ESHAPE, "input %d has rows of %lld numbers for %lld heads", i,
                       (long long)s.dim[2], (long long)heads);
    *out = qn_reshape(n->g, *out, &QN_SHAPE(s.dim[0], s.dim[1], heads, s.dim[2] / heads));
    *out = qn_swap_axes(n->g, *out, 1, 2);
    return QN_OK;
}

/* Keys or values with those of the cache before them, which are output `present` too. */
static QnStatus with_cache(QnOnnxNode *n, int past, int present, QnValue **v)
{
    if (qn_onnx_has(n, past))
        *v = qn_concat(n->g, (QnValue *[]){ qn_onnx_in(n, past), *v }, 2, 2);
    return present < n->n_out && n->out_used[present] ? qn_onnx_out(n, present, *v) : QN_OK;
}

static QnStatus read_form(QnOnnxNode *n, Form *f)
{
    const QnType *past = qn_onnx_type(n, 4);
    if (qn_onnx_has(n, 4) != qn_onnx_has(n, 5))
        return qn_fail(QN_EFORMAT, "past_key and past_value must be given together");
    if (past && past->shape.rank != 4)
        return qn_fail(QN_ESHAPE, "input 4 must be a tensor of rank 4");
    QN_TRY(heads_of(n, 0, qn_onnx_int(n, "q_num_heads", 0), &f->q));
    QN_TRY(heads_of(n, 1, qn_onnx_int(n, "kv_num_heads", 0), &f->k));
    QN_TRY(heads_of(n, 2, qn_onnx_int(n, "kv_num_heads", 0), &f->v));
    f->flat = qn_onnx_rank(n, 0) == 3;
    QN_TRY(with_cache(n, 4, 1, &f->k));
    QN_TRY(with_cache(n, 5, 2, &f->v));
    QN_TRY(qn_graph_check(n->g));
    const QnShape *q = &f->q->type.shape, *k = &f->k->type.shape, *v = &f->v->type.shape;
    f->dtype = f->q->type.dtype;
    f->b = q->dim[0];
    f->hq = q->dim[1];
    f->hkv = k->dim[1];
    f->t = q->dim[2];
    f->s = k->dim[2];
    f->past = past ? past->shape.dim[2] : 0;
    if (k->dim[0] != f->b || v->dim[0] != f->b || v->dim[1] != f->hkv || v->dim[2] != f->s ||
        k->dim[3] != q->dim[3] || f->hkv < 1 || f->hq % f->hkv)
        return qn_fail(QN_ESHAPE, "queries, keys and values do not fit together");
    f->k = qn_cast(n->g, f->k, f->dtype);
    f->v = qn_cast(n->g, f->v, f->dtype);
    f->scale = qn_onnx_float(n, "scale", 1 / sqrt((double)q->dim[3]));
    f->softcap = qn_onnx_float(n, "softcap", 0);
    f->causal = qn_onnx_int(n, "is_causal", 0) != 0;
    f->left = qn_onnx_int(n, "left_window_size", -1);
    f->right = qn_onnx_int(n, "right_window_size", -1);
    return QN_OK;
}

/* ---- mask ------------------------------------------------------------------------------------ */

static QnValue *both(QnGraph *g, QnValue *a, QnValue *b)
{
    return a ? qn_logical_and(g, a, b) : b;
}

/* Which pairs of query and key see each other by position, (T,S) or (B,1,T,S); NULL: all. Query i
 * stands at i + offset among the keys. */
static QnValue *seen(QnOnnxNode *n, const Form *f, bool causal)
{
    QnGraph *g = n->g;
    bool has_lengths = qn_onnx_has(n, 6);
    QnValue *ok = NULL, *len = NULL;
    QnValue *i = qn_reshape(g, qn_arange(g, 0, 1, f->t, QN_DTYPE_F32), &QN_SHAPE(f->t, 1));
    QnValue *j = qn_arange(g, 0, 1, f->s, QN_DTYPE_F32);
    if (has_lengths) {
        len = qn_cast(g, qn_onnx_in(n, 6), QN_DTYPE_F32);
        len = qn_reshape(g, len, &QN_SHAPE(f->b, 1, 1, 1));
        ok = qn_less(g, j, len);
    }
    if (!causal && f->left < 0 && f->right < 0)
        return ok;
    QnValue *at = has_lengths ? qn_add(g, i, qn_add_scalar(g, len, -(double)f->t))
                              : qn_add_scalar(g, i, (double)f->past);
    if (causal)
        ok = both(g, ok, qn_less_equal(g, j, at));
    if (f->left >= 0)
        ok = both(g, ok, qn_greater_equal(g, j, qn_add_scalar(g, at, -(double)f->left)));
    if (f->right >= 0)
        ok = both(g, ok, qn_less_equal(g, j, qn_add_scalar(g, at, (double)f->right)));
    return ok;
}

/* The mask of the file as numbers to be added, -inf for keys that it leaves out at the end. */
static QnStatus given_mask(QnOnnxNode *n, const Form *f, QnValue **out)
{
    const QnType *t = qn_onnx_type(n, 3);
    *out = NULL;
    if (!qn_onnx_has(n, 3))
        return QN_OK;
    if (!t || t->shape.rank < 1 || t->shape.rank > 4)
        return qn_fail(QN_ESHAPE, "input 3 must be a tensor of rank 1 to 4");
    int rank = t->shape.rank;
    int64_t more = f->s - t->shape.dim[rank - 1];
    QnDtype dtype = t->dtype;
    QnValue *m = qn_onnx_in(n, 3), *like = qn_scalar_like(n->g, f->q, 0);
    if (dtype == QN_DTYPE_BOOL)
        m = qn_where(n->g, m, like, qn_scalar_like(n->g, f->q, -INFINITY));
    else
        m = qn_cast(n->g, m, f->dtype);
    if (more < 0)
        return qn_fail(QN_ESHAPE, "the mask is for %lld keys more than there are",
                       (long long)-more);
    if (more > 0 && t->shape.dim[rank - 1] != 1) {
        QnPadAttr pad = { .before.n = rank, .after.n = rank, .value = -INFINITY };
        pad.after.v[rank - 1] = more;
        m = qn_pad(n->g, m, &pad);
    }
    *out = m;
    return qn_graph_check(n->g);
}

static QnStatus make_bias(QnOnnxNode *n, Form *f, bool causal)
{
    QN_TRY(given_mask(n, f, &f->bias));
    QnValue *ok = seen(n, f, causal);
    if (ok) {
        QnValue *base = f->bias ? f->bias : qn_scalar_like(n->g, f->q, 0);
        f->bias = qn_where(n->g, ok, base, qn_scalar_like(n->g, f->q, -INFINITY));
    }
    return qn_graph_check(n->g);
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* x (B,Hq,…) as (B,Hkv,Hq/Hkv,…), so that heads that share keys broadcast, and back. */
static QnValue *grouped(QnGraph *g, const Form *f, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    return qn_reshape(g, x, &QN_SHAPE(f->b, f->hkv, f->hq / f->hkv, s->dim[2], s->dim[3]));
}

static QnValue *flat_heads(QnGraph *g, const Form *f, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    return qn_reshape(g, x, &QN_SHAPE(f->b, f->hq, s->dim[3], s->dim[4]));
}

/* Rows whose every key is masked have probabilities 0. */
static QnValue *probabilities(QnOnnxNode *n, const Form *f, QnValue *scores)
{
    QnGraph *g = n->g;
    QnDtype wide;
    if (qn_onnx_dtype(qn_onnx_int(n, "softmax_precision", 0), &wide) && qn_dtype_is_float(wide) &&
        qn_dtype_bytes(wide) > qn_dtype_bytes(f->dtype))
        scores = qn_cast(g, scores, wide);
    QnValue *p = qn_cast(g, qn_softmax(g, scores, -1), f->dtype);
    if (!f->bias)
        return p;
    QnValue *top = qn_reduce_max(g, f->bias, QN_INTS(-1), true);
    QnValue *none = qn_equal(g, top, qn_scalar_like(g, top, -INFINITY));
    return qn_where(g, none, qn_scalar_like(g, p, 0), p);
}

static QnStatus in_steps(QnOnnxNode *n, Form *f, QnValue **y)
{
    QnGraph *g = n->g;
    int64_t mode = qn_onnx_int(n, "qk_matmul_output_mode", 0);
    QN_TRY(make_bias(n, f, f->causal));
    QnValue *q = grouped(g, f, f->q), *k = qn_unsqueeze(g, f->k, 2), *v = qn_unsqueeze(g, f->v, 2);
    double root = sqrt(fabs(f->scale)); /* on both sides, so that 16-bit scores do not overflow */
    q = qn_mul_scalar(g, q, f->scale < 0 ? -root : root);
    QnValue *s = flat_heads(g, f, qn_matmul(g, q, qn_mul_scalar(g, k, root), NULL, false, true));
    QnValue *stage[4] = { s };
    if (f->softcap > 0)
        s = qn_mul_scalar(g, qn_tanh(g, qn_mul_scalar(g, s, 1 / f->softcap)), f->softcap);
    stage[1] = s;
    s = f->bias ? qn_add(g, s, f->bias) : s;
    stage[2] = s;
    stage[3] = probabilities(n, f, s);
    *y = flat_heads(g, f, qn_matmul(g, grouped(g, f, stage[3]), v, NULL, false, false));
    if (n->n_out < 4 || !n->out_used[3])
        return QN_OK;
    if (mode < 0 || mode > 3)
        return qn_fail(QN_EFORMAT, "attribute 'qk_matmul_output_mode' is %lld", (long long)mode);
    return qn_onnx_out(n, 3, stage[mode]);
}

static QnStatus import_attention(QnOnnxNode *n)
{
    Form f = { 0 };
    QnValue *y;
    QN_TRY(read_form(n, &f));
    bool whole = f.softcap <= 0 && f.scale > 0 && (n->n_out < 4 || !n->out_used[3]);
    if (whole) {
        /* our operator aligns queries with the last keys */
        bool causal = f.causal && f.s - f.past == f.t && !qn_onnx_has(n, 6);
        QN_TRY(make_bias(n, &f, f.causal && !causal));
        y = qn_attention(n->g, f.q, f.k, f.v, f.bias, causal, f.scale);
    } else {
        QN_TRY(in_steps(n, &f, &y));
    }
    QN_TRY(qn_graph_check(n->g));
    if (f.flat) {
        int64_t e = f.v->type.shape.dim[3];
        y = qn_reshape(n->g, qn_swap_axes(n->g, y, 1, 2), &QN_SHAPE(f.b, f.t, f.hq * e));
    }
    return qn_onnx_out0(n, y);
}

const QnOnnxMap qn_onnx_attention[] = {
    { "Attention", NULL, 23, 0, import_attention, NULL },
    { 0 },
};
