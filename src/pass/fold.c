/* Constants are computed at compile time, by the operators' own references; and identities of
 * arithmetic. Results keep IEEE meaning, NaN and infinities included, but for the sign of zero:
 * x + 0 is x though -0 + 0 is 0, as kernels do not keep it either. */
#include "ir/eval.h"
#include "ops/ops.h"
#include "pass/rewrite.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_MOST = 4096, MAX_INPUT = 65536 };

/* ---- constants ---- */

static bool is_constant(const QnValue *v)
{
    return v && (v->node->op == &qn_op_constant || v->node->op == &qn_op_full) &&
           qn_shape_is_concrete(&v->type.shape) && qn_shape_count(&v->type.shape) <= MAX_INPUT;
}

static bool is_foldable(const QnNode *n, const QnPipelineOptions *o)
{
    int64_t elements = 0, most = o->fold_most ? o->fold_most : DEFAULT_MOST;
    if (n->op->traits & (QN_LEAF | QN_EFFECT | QN_NO_FOLD | QN_RANDOM))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] && !is_constant(n->in[i]))
            return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        int64_t count = qn_shape_count(&n->out[i].type.shape);
        if (count < 0 || count > most)
            return false;
        elements += count;
    }
    return n->n_in > 0 && elements <= most;
}

/* Elements of a constant; false: they do not fit doubles. */
static bool read_constant(const QnValue *v, bool bits, double *out)
{
    int64_t n = qn_shape_count(&v->type.shape);
    bool is_bits = qn_eval_is_bits(v->node, &v->type, -1);
    if (qn_eval_node(v->node, NULL, &out, true) != QN_OK)
        return false;
    for (int64_t i = 0; qn_dtype_is_wide(v->type.dtype) && is_bits != bits && i < n; i++) {
        double x;
        if (is_bits) {
            qn_dtype_to_f64(v->type.dtype, &out[i], &x, 1);
            out[i] = x;
        }
        if (!(fabs(out[i]) <= 0x1p53))
            return false;
        if (bits) {
            int64_t whole = (int64_t)out[i];
            memcpy(&out[i], &whole, sizeof whole);
        }
    }
    return true;
}

/* A `full` where all elements are alike, else a constant. */
static QnValue *emit_constant(QnGraph *g, const QnType *t, const void *data)
{
    size_t item = qn_dtype_bytes(t->dtype);
    int64_t n = qn_shape_count(&t->shape);
    bool alike = n > 0;
    for (int64_t i = 1; alike && i < n; i++)
        alike = !memcmp(data, (const char *)data + (size_t)i * item, item);
    if (alike) {
        double x;
        qn_dtype_to_f64(t->dtype, data, &x, 1);
        if (!qn_dtype_is_wide(t->dtype) || fabs(x) < 0x1p53)
            return qn_full(g, x, t->dtype, &t->shape);
    }
    return qn_constant(g, t->dtype, &t->shape, data);
}

static QnStatus evaluate(QnGraph *g, QnNode *n, QnArena *tmp, bool *ok)
{
    double **in = qn_arena_array(tmp, (size_t)n->n_in + 1, sizeof *in), *out[QN_MAX_OUT];
    if (!in)
        return QN_ENOMEM;
    for (int i = 0; i < n->n_in; i++) {
        const QnValue *v = n->in[i];
        if (!v)
            continue;
        in[i] = qn_arena_array(tmp, (size_t)qn_shape_count(&v->type.shape) + 1, sizeof **in);
        if (!in[i])
            return QN_ENOMEM;
        if (!read_constant(v, qn_eval_is_bits(n, &v->type, i), in[i]))
            return QN_OK;
    }
    for (int i = 0; i < n->n_out; i++) {
        out[i] = qn_arena_array(tmp, (size_t)qn_shape_count(&n->out[i].type.shape) + 1, 8);
        if (!out[i])
            return QN_ENOMEM;
    }
    if (qn_eval_node(n, (const double *const *)in, out, true) != QN_OK)
        return QN_OK; /* it will fail where it runs, and say so */
    for (int i = 0; i < n->n_out; i++) {
        const QnType *t = &n->out[i].type;
        int64_t count = qn_shape_count(&t->shape);
        void *narrow = out[i];
        if (!qn_eval_is_bits(n, t, -1)) {
            narrow = qn_arena_array(tmp, (size_t)count + 1, 8);
            if (!narrow)
                return QN_ENOMEM;
            for (int64_t k = 0; qn_dtype_is_wide(t->dtype) && k < count; k++) {
                if (!(fabs(out[i][k]) <= 0x1p53))
                    return QN_OK;
            }
            qn_dtype_from_f64(t->dtype, out[i], narrow, count);
        }
        qn_value_replace(&n->out[i], emit_constant(g, t, narrow));
    }
    *ok = true;
    return QN_OK;
}

static bool fold_constants(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    bool ok = false;
    if (!is_foldable(n, o))
        return false;
    QnArena *tmp = qn_arena_new();
    if (!tmp || evaluate(g, n, tmp, &ok) != QN_OK)
        qn_graph_poison(g);
    qn_arena_free(tmp);
    return ok;
}

/* A constant whose elements are alike is a `full`. */
static bool fold_constant(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    const QnType *t = &n->out[0].type;
    const char *data = qn_constant_data(&n->out[0]);
    size_t item = qn_dtype_bytes(t->dtype);
    int64_t count = qn_shape_count(&t->shape);
    double x;
    for (int64_t i = 1; i < count; i++) {
        if (memcmp(data, data + (size_t)i * item, item))
            return false;
    }
    if (count < 1)
        return false;
    qn_dtype_to_f64(t->dtype, data, &x, 1);
    return (!qn_dtype_is_wide(t->dtype) || fabs(x) < 0x1p53) && !isnan(x) &&
           qn_rewrite_to(g, n, qn_full(g, x, t->dtype, &t->shape));
}

/* ---- identities ---- */

/* y becomes x, repeated where y's shape is larger. */
static bool becomes(QnGraph *g, QnNode *n, QnValue *x)
{
    return qn_rewrite_to(g, n, qn_expand(g, x, &n->out[0].type.shape));
}

/* Of an operand that leaves the other one as it is. */
static bool drop_neutral(QnGraph *g, QnNode *n, double neutral, bool either_side)
{
    if (qn_rewrite_is_full(n->in[1], neutral))
        return becomes(g, n, n->in[0]);
    return either_side && qn_rewrite_is_full(n->in[0], neutral) && becomes(g, n, n->in[1]);
}

static bool fold_mul(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    if (n->out[0].type.dtype == QN_DTYPE_BOOL)
        return false;
    if (drop_neutral(g, n, 1, true))
        return true;
    bool zero = qn_rewrite_is_full(n->in[0], 0) || qn_rewrite_is_full(n->in[1], 0);
    if (!zero || (!o->fast_math && qn_dtype_is_float(n->out[0].type.dtype)))
        return false;
    return qn_rewrite_to(g, n, qn_full(g, 0, n->out[0].type.dtype, &n->out[0].type.shape));
}

static bool fold_add(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    return n->out[0].type.dtype != QN_DTYPE_BOOL && drop_neutral(g, n, 0, true);
}

static bool fold_sub(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    return n->out[0].type.dtype != QN_DTYPE_BOOL && drop_neutral(g, n, 0, false);
}

static bool fold_div(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    return n->out[0].type.dtype != QN_DTYPE_BOOL && drop_neutral(g, n, 1, false);
}

static bool fold_pow(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    if (!qn_dtype_is_float(n->out[0].type.dtype))
        return false;
    if (drop_neutral(g, n, 1, false))
        return true;
    return qn_rewrite_is_full(n->in[1], 2) && becomes(g, n, qn_square(g, n->in[0]));
}

/* neg(neg x), logical_not(logical_not x) */
static bool fold_twice(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    const QnNode *p = n->in[0]->node;
    return p->op == n->op && p->in[0]->type.dtype == n->out[0].type.dtype &&
           qn_rewrite_to(g, n, p->in[0]);
}

static bool fold_neg(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    QnDtype d = n->out[0].type.dtype;
    return d != QN_DTYPE_BOOL && fold_twice(g, n, o); /* integers wrap, the least one too */
}

static bool fold_where(QnGraph *g, QnNode *n, const QnPipelineOptions *o)
{
    (void)o;
    double c;
    if (qn_full_value(n->in[0], &c))
        return becomes(g, n, n->in[c != 0 ? 1 : 2]);
    return n->in[1] == n->in[2] && becomes(g, n, n->in[1]);
}

static const QnRule rules[] = {
    { &qn_op_mul, fold_mul },           { &qn_op_add, fold_add },     { &qn_op_sub, fold_sub },
    { &qn_op_div, fold_div },           { &qn_op_pow, fold_pow },     { &qn_op_neg, fold_neg },
    { &qn_op_logical_not, fold_twice }, { &qn_op_where, fold_where }, { NULL, fold_constants },
    { &qn_op_constant, fold_constant },
};

QnStatus qn_pass_fold(QnGraph *g, const QnPipelineOptions *o)
{
    return qn_rewrite_run(g, rules, QN_COUNT(rules), o);
}
