/* LinearAttention: a state of outer products of keys and values, read by queries, a step of the
 * sequence at a time. Arithmetic in f32 or wider. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <math.h>

enum { STEPS_MOST = QN_MAX_IN }; /* joined by one node */

typedef struct Linear {
    QnGraph *g;
    int64_t batch, steps, heads, group, dk,
        dv;                            /* `group` queries share a head of keys and values */
    QnValue *q, *k, *v, *decay, *beta; /* (batch,steps,…); decay and beta may be NULL */
    int64_t decays, betas;             /* numbers of a step */
    bool is_delta;
    QnDtype as;
} Linear;

/* Input i as (batch,steps,n) in the type of the arithmetic; *n from its shape. */
static QnStatus packed(QnOnnxNode *n, const Linear *l, int i, QnValue **out, int64_t *count)
{
    const QnType *t = qn_onnx_type(n, i);
    if (!t || t->shape.rank != 3 || t->shape.dim[0] != l->batch || t->shape.dim[1] != l->steps)
        return qn_fail(QN_ESHAPE, "input %d must be (batch,steps,numbers), as the query", i);
    *count = t->shape.dim[2];
    *out = qn_cast(n->g, qn_onnx_in(n, i), l->as);
    return QN_OK;
}

static QnStatus read_heads(QnOnnxNode *n, Linear *l)
{
    const QnType *t = qn_onnx_type(n, 0);
    int64_t q_heads = qn_onnx_int(n, "q_num_heads", 0), q = 0, k = 0, v = 0;
    if (!t || t->shape.rank != 3 || !qn_dtype_is_float(t->dtype))
        return qn_fail(QN_ESHAPE, "input 0, the query, must be floats (batch,steps,numbers)");
    *l = (Linear){ .g = n->g, .batch = t->shape.dim[0], .steps = t->shape.dim[1] };
    l->heads = qn_onnx_int(n, "kv_num_heads", 0);
    l->as = qn_dtype_is_storage(t->dtype) ? QN_DTYPE_F32 : t->dtype;
    if (l->steps < 1 || l->steps > STEPS_MOST)
        return qn_onnx_refuse(n, "%lld steps; 1 to %d are supported", (long long)l->steps,
                              STEPS_MOST);
    QN_TRY(packed(n, l, 0, &l->q, &q));
    QN_TRY(packed(n, l, 1, &l->k, &k));
    QN_TRY(packed(n, l, 2, &l->v, &v));
    if (l->heads < 1 || q_heads < 1 || q_heads % l->heads || k % l->heads || v % l->heads ||
        q % q_heads || q / q_heads != k / l->heads || q == 0)
        return qn_fail(QN_ESHAPE, "%lld heads of queries, %lld of keys do not divide %lld, %lld",
                       (long long)q_heads, (long long)l->heads, (long long)q, (long long)k);
    l->group = q_heads / l->heads;
    l->dk = k / l->heads;
    l->dv = v / l->heads;
    return QN_OK;
}

static QnStatus read_rule(QnOnnxNode *n, Linear *l)
{
    bool plain = qn_onnx_is(n, "update_rule", "linear", "gated_delta");
    bool gated = qn_onnx_is(n, "update_rule", "gated", "gated_delta");
    bool delta = qn_onnx_is(n, "update_rule", "delta", "gated_delta");
    bool both = qn_onnx_is(n, "update_rule", "gated_delta", "gated_delta");
    if (!plain && !gated && !delta && !both)
        return qn_onnx_refuse(n, "an update_rule that is none of ONNX's four");
    l->is_delta = delta || both;
    if (gated || both) {
        QN_TRY(packed(n, l, 4, &l->decay, &l->decays));
        if (l->decays != l->heads && l->decays != l->heads * l->dk)
            return qn_fail(QN_ESHAPE, "%lld decays for %lld heads of %lld", (long long)l->decays,
                           (long long)l->heads, (long long)l->dk);
        l->decay = qn_exp(l->g, l->decay);
    }
    if (l->is_delta) {
        QN_TRY(packed(n, l, 5, &l->beta, &l->betas));
        if (l->betas != l->heads && l->betas != 1)
            return qn_fail(QN_ESHAPE, "%lld rates of update for %lld heads", (long long)l->betas,
                           (long long)l->heads);
    }
    return QN_OK;
}

/* Step t of a packed tensor, as (batch,heads,rows,columns). */
static QnValue *step_of(const Linear *l, QnValue *x, int64_t t, int64_t heads, int64_t rows,
                        int64_t columns)
{
    QnValue *one = qn_slice_axis(l->g, x, 1, t, t + 1);
    return qn_reshape(l->g, one, &QN_SHAPE(l->batch, heads, rows, columns));
}

/* The state after step t. */
static QnValue *update(const Linear *l, QnValue *s, int64_t t)
{
    QnGraph *g = l->g;
    QnValue *k = step_of(l, l->k, t, l->heads, l->dk, 1);
    QnValue *v = step_of(l, l->v, t, l->heads, 1, l->dv);
    if (l->decay)
        s = qn_mul(g, s, step_of(l, l->decay, t, l->heads, l->decays / l->heads, 1));
    if (l->is_delta) {
        QnValue *known = qn_matmul(g, k, s, NULL, true, false); /* what the state says of k */
        v = qn_mul(g, qn_sub(g, v, known), step_of(l, l->beta, t, l->betas, 1, 1));
    }
    return qn_add(g, s, qn_mul(g, k, v));
}

static QnStatus import_linear_attention(QnOnnxNode *n)
{
    Linear l = { 0 };
    QN_TRY(read_heads(n, &l));
    QN_TRY(read_rule(n, &l));
    QnGraph *g = n->g;
    QnDtype given = qn_onnx_type(n, 0)->dtype;
    QnShape shape = QN_SHAPE(l.batch, l.heads, l.dk, l.dv);
    const QnType *past = qn_onnx_type(n, 3);
    if (past && !qn_shape_is_equal(&past->shape, &shape))
        return qn_fail(QN_ESHAPE, "past_state must be (batch,heads,%lld,%lld)", (long long)l.dk,
                       (long long)l.dv);
    double scale = qn_onnx_float(n, "scale", 0);
    l.q = qn_mul_scalar(g, l.q, scale == 0 ? 1 / sqrt((double)l.dk) : scale);
    QnValue *s = past ? qn_cast(g, qn_onnx_in(n, 3), l.as) : qn_full(g, 0, l.as, &shape);
    QnDtype state = past ? past->dtype : given;
    QnValue **y = qn_arena_array(n->arena, (size_t)l.steps, sizeof(QnValue *));
    if (!y)
        return QN_ENOMEM;
    for (int64_t t = 0; t < l.steps; t++) {
        s = update(&l, s, t);
        QnValue *read =
            qn_matmul(g, step_of(&l, l.q, t, l.heads, l.group, l.dk), s, NULL, false, false);
        y[t] = qn_reshape(g, read, &QN_SHAPE(l.batch, 1, l.heads * l.group * l.dv));
    }
    QN_TRY(qn_onnx_out0(n, qn_cast(g, qn_concat(g, y, (int)l.steps, 1), given)));
    return qn_onnx_out(n, 1, qn_cast(g, s, state));
}

const QnOnnxMap qn_onnx_linear_attention[] = {
    { "LinearAttention", NULL, 27, 0, import_linear_attention, NULL },
    { 0 },
};
