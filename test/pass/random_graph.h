/* Random valid graphs over all operators, from their samples. The same seed gives the same graph.
 */
#ifndef QN_TEST_PASS_RANDOM_GRAPH_H
#define QN_TEST_PASS_RANDOM_GRAPH_H

#include "test.h"
#include "base/mem.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "ops/util.h"
#include "pass/grad.h"

#include <math.h>

enum { MAX_LEAF = 160, MAX_POOL = 200, MAX_ELEMENTS = 1500 };

typedef struct Leaf {
    char name[24];
    double *values;
    int64_t n;
    QnDtype dtype;
} Leaf;

typedef struct Case {
    uint64_t rng, seed;
    QnGraph *g;
    Leaf leaf[MAX_LEAF];
    int n_leaf;
    QnValue *pool[MAX_POOL];
    int n_pool;
    QnDtype real; /* what samples call f32 */
    bool has_gradients;
} Case;

static inline uint64_t rnd(Case *c)
{
    c->rng += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = c->rng;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline int below(Case *c, int n)
{
    return (int)(rnd(c) % (uint64_t)n);
}

static inline bool chance(Case *c, int percent)
{
    return below(c, 100) < percent;
}

static inline double uniform(Case *c, double lo, double hi)
{
    return lo + (hi - lo) * (double)(rnd(c) >> 11) * 0x1p-53;
}

static inline void add_to_pool(Case *c, QnValue *v)
{
    if (c->n_pool < MAX_POOL && qn_shape_count(&v->type.shape) <= MAX_ELEMENTS)
        c->pool[c->n_pool++] = v;
}

/* ---- leaves ---- */

static inline void fill_values(Case *c, const QnSampleIn *in, double lo, double hi, QnDtype dtype,
                               double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!qn_dtype_is_float(dtype)) {
            x[i] = floor(uniform(c, lo, hi + 1));
            x[i] = fmin(x[i], hi);
        } else if (in->distinct) {
            x[i] = lo + (hi - lo) * ((double)((i * 7919 + 13) % n) + 0.5) / (double)n;
        } else {
            x[i] = uniform(c, lo, hi);
            double kink = in->kink != 0 ? in->kink : 1e300;
            double off = x[i] - kink * round(x[i] / kink);
            if (in->keep_off > 0 && fabs(off) < in->keep_off)
                x[i] += off < 0 ? -in->keep_off : in->keep_off;
        }
        uint64_t cell; /* as the device will see it */
        qn_dtype_from_f64(dtype, &x[i], &cell, 1);
        qn_dtype_to_f64(dtype, &cell, &x[i], 1);
    }
}

static inline QnValue *add_leaf(Case *c, const QnSampleIn *in, double lo, double hi, QnDtype dtype,
                                bool may_be_constant)
{
    QnShape s = qn_shape_make(in->rank, in->dim);
    int64_t n = qn_shape_count(&s);
    if (c->n_leaf == MAX_LEAF || n < 0 || n > MAX_ELEMENTS)
        return NULL;
    double *x = qn_alloc_array((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    fill_values(c, in, lo, hi, dtype, x, n);
    if (may_be_constant && chance(c, 20)) {
        void *narrow = qn_alloc_array((size_t)n + 1, 8);
        qn_dtype_from_f64(dtype, x, narrow, n);
        QnValue *v = chance(c, 50) && n && (dtype != QN_DTYPE_BOOL || x[0] <= 1)
                         ? qn_full(c->g, x[0], dtype, &s)
                         : qn_constant(c->g, dtype, &s, narrow);
        qn_free(narrow);
        qn_free(x);
        return v;
    }
    Leaf *leaf = &c->leaf[c->n_leaf];
    *leaf = (Leaf){ .values = x, .n = n, .dtype = dtype };
    snprintf(leaf->name, sizeof leaf->name, "v%d", c->n_leaf++);
    if (qn_dtype_is_float(dtype) && chance(c, 30)) {
        QnStateAttr attr = { .name = leaf->name, .dtype = dtype, .dims = { s.rank, { 0 } } };
        memcpy(attr.dims.d, s.dim, sizeof attr.dims.d);
        return qn_state(c->g, &attr);
    }
    return qn_input(c->g, leaf->name, dtype, &s);
}

/* ---- operators by their samples ---- */

static inline QnValue *find_in_pool(Case *c, const QnSampleIn *in, QnDtype dtype)
{
    QnShape s = qn_shape_make(in->rank, in->dim);
    int start = below(c, QN_MAX(c->n_pool, 1));
    for (int i = 0; i < c->n_pool; i++) {
        QnValue *v = c->pool[(start + i) % c->n_pool];
        if (v->type.dtype == dtype && qn_shape_is_equal(&v->type.shape, &s))
            return v;
    }
    return NULL;
}

/* A value squeezed into lo..hi. */
static inline QnValue *squeeze(Case *c, QnValue *v, double lo, double hi)
{
    QnGraph *g = c->g;
    return qn_add(g, qn_mul(g, qn_sigmoid(g, v), qn_scalar_like(g, v, hi - lo)),
                  qn_scalar_like(g, v, lo));
}

static inline QnValue *operand(Case *c, const QnOp *op, const QnSample *s, int k)
{
    const QnSampleIn *in = &s->in[k];
    QnDtype dtype = in->dtype == QN_DTYPE_F32 ? c->real : in->dtype;
    double lo = s->lo, hi = s->hi;
    if (in->lo != 0 || in->hi != 0)
        lo = in->lo, hi = in->hi;
    if (lo == 0 && hi == 0)
        lo = qn_dtype_is_unsigned(dtype) || dtype == QN_DTYPE_BOOL ? 0 : -1, hi = 1;
    bool is_default = lo == -1 && hi == 1;
    bool picky = !qn_dtype_is_float(dtype) || in->distinct || in->kink != 0;
    QnValue *v =
        chance(c, picky && dtype != QN_DTYPE_BOOL ? 0 : 75) ? find_in_pool(c, in, dtype) : NULL;
    if (v && qn_dtype_is_float(dtype) && !qn_dtype_is_storage(dtype) &&
        (!is_default || chance(c, 40)))
        v = squeeze(c, v, lo, hi);
    return v ? v : add_leaf(c, in, lo, hi, dtype, !(op->traits & QN_EFFECT));
}

/* Flips a bool or picks another name in a copy of the attributes. */
static inline void mutate(Case *c, const QnOp *op, void *attr)
{
    const QnAttrField *f = &op->fields[below(c, op->n_fields)];
    char *at = (char *)attr + f->offset;
    int n = 0;
    if (f->kind == QN_ATTR_BOOL)
        *(bool *)at = !*(bool *)at;
    while (f->kind == QN_ATTR_ENUM && f->names[n])
        n++;
    if (n)
        *(int *)(void *)at = below(c, n);
}

static inline bool fits(Case *c, const QnOp *op, const void *attr, QnValue *const *in, int n)
{
    QnInfer info;
    if (qn_graph_infer(c->g, op, attr, in, n, &info) != QN_OK)
        return false;
    for (int i = 0; i < info.n_out; i++) {
        if (qn_shape_count(&info.out[i].shape) > 4 * MAX_ELEMENTS)
            return false;
    }
    return true;
}

/* Whose roundings of 8 bits inside the reference, which runs in f64, does not make. */
static inline bool rounds_inside(const QnOp *op)
{
    return op == &qn_op_matmul_by_f8;
}

static inline void add_sample(Case *c)
{
    int n_ops;
    const QnOp *const *ops = qn_op_all(&n_ops), *op = ops[below(c, n_ops)];
    if ((op->traits & (QN_INPUT | QN_STATE | QN_EFFECT)) || op->n_samples == 0 || rounds_inside(op))
        return;
    const QnSample *s = &op->samples[below(c, op->n_samples)];
    QnValue *in[QN_SAMPLE_IN];
    void *attr = op->attr_bytes ? qn_arena_alloc(c->g->arena, op->attr_bytes) : NULL;
    if (attr)
        qn_attr_defaults(op, attr);
    if (attr && s->attr)
        memcpy(attr, s->attr, op->attr_bytes);
    for (int k = 0; k < s->n_in; k++) {
        if (!(in[k] = operand(c, op, s, k)))
            return;
    }
    if (attr && op->n_fields && chance(c, 25)) {
        void *other = qn_arena_copy(c->g->arena, attr, op->attr_bytes);
        mutate(c, op, other);
        if (fits(c, op, other, in, s->n_in))
            attr = other;
    }
    if (!fits(c, op, attr, in, s->n_in))
        return;
    QnNode *n = qn_emit(c->g, op, attr, in, s->n_in);
    for (int i = 0; n && i < n->n_out; i++)
        add_to_pool(c, &n->out[i]);
}

/* ---- what joins values of any shape ---- */

static inline QnValue *move_around(Case *c, QnValue *v)
{
    const QnShape *s = &v->type.shape;
    QnInts list = { .n = s->rank };
    QnShape to = *s;
    switch (below(c, 5)) {
    case 0: return qn_reshape(c->g, v, &QN_SHAPE(qn_shape_count(s)));
    case 1:
        for (int i = 0; i < s->rank; i++)
            list.v[i] = (i + 1) % s->rank;
        return qn_transpose(c->g, v, list);
    case 2:
        if (s->rank < 2)
            return v;
        list.n = 1;
        list.v[0] = below(c, s->rank);
        return qn_dtype_is_float(v->type.dtype) && !qn_dtype_is_storage(v->type.dtype)
                   ? qn_sum(c->g, v, list, chance(c, 50))
                   : v;
    case 3:
        if (to.rank >= 4 || qn_shape_count(s) > 300)
            return v;
        memmove(to.dim + 1, s->dim, (size_t)s->rank * sizeof(QnDim));
        to.dim[0] = 1 + below(c, 3);
        to.rank++;
        return qn_expand(c->g, v, &to);
    default: return s->rank ? qn_swap_axes(c->g, v, 0, s->rank - 1) : v;
    }
}

static inline void add_unary(Case *c, QnValue *v)
{
    static QnValue *(*const real[])(QnGraph *, QnValue *) = {
        qn_tanh, qn_sigmoid, qn_silu, qn_relu, qn_neg, qn_abs, qn_square, qn_sin, qn_gelu, qn_exp,
    };
    if (qn_dtype_is_float(v->type.dtype) && !qn_dtype_is_storage(v->type.dtype))
        v = real[below(c, QN_COUNT(real))](c->g, v);
    else if (v->type.dtype == QN_DTYPE_BOOL)
        v = qn_logical_not(c->g, v);
    for (int i = 0; i < 3 && chance(c, 40); i++)
        v = move_around(c, v);
    if (chance(c, 15)) {
        static const QnDtype to[] = { QN_DTYPE_F32, QN_DTYPE_BOOL, QN_DTYPE_F16, QN_DTYPE_I32 };
        v = qn_cast(c->g, v, chance(c, 30) ? c->real : to[below(c, QN_COUNT(to))]);
    }
    if (chance(c, 20) && v->type.dtype != c->real)
        v = qn_cast(c->g, v, c->real);
    add_to_pool(c, v);
}

static inline void add_binary(Case *c, QnValue *a, QnValue *b)
{
    static const QnOp *const ops[] = { &qn_op_add,     &qn_op_sub,     &qn_op_mul,
                                       &qn_op_maximum, &qn_op_greater, &qn_op_less_equal };
    const QnOp *op = ops[below(c, QN_COUNT(ops))];
    if (chance(c, 15))
        b = qn_full(c->g, chance(c, 50) ? 1 : 0, a->type.dtype,
                    chance(c, 50) ? &a->type.shape : &(QnShape){ 0 });
    QnValue *in[2] = { a, b };
    if (chance(c, 30))
        in[0] = b, in[1] = a;
    if (fits(c, op, NULL, in, 2))
        add_to_pool(c, qn_emitn(c->g, op, NULL, in, 2));
}

static inline QnValue *any(Case *c)
{
    return c->pool[below(c, c->n_pool)];
}

/* ---- gradients, assigns, outputs ---- */

static inline bool is_assigned(const QnGraph *g, const QnNode *state)
{
    QN_GRAPH_EACH(g, n)
    {
        if ((n->op->traits & QN_EFFECT) && n->in[0] == &state->out[0])
            return true;
    }
    return false;
}

/* The gradient of a sum with respect to the states, on a copy, since some operators have none. */
static inline void add_gradients(Case *c)
{
    QnValue **map, *wrt[4], *dx[4], *loss = NULL;
    int n = 0;
    QnGraph *g = qn_graph_clone(c->g, &map);
    assert_non_null(g);
    for (int i = 0; i < c->n_pool; i++) {
        if (qn_dtype_is_float(c->pool[i]->type.dtype) &&
            !qn_dtype_is_storage(c->pool[i]->type.dtype))
            loss = map[c->pool[i]->id];
    }
    QN_GRAPH_EACH(g, v)
    {
        if ((v->op->traits & (QN_INPUT | QN_STATE)) && n < 4 &&
            qn_dtype_is_float(v->out[0].type.dtype) && !qn_dtype_is_storage(v->out[0].type.dtype))
            wrt[n++] = &v->out[0];
    }
    if (!loss || !n || qn_grad(g, loss, wrt, n, dx) != QN_OK) {
        qn_graph_free(g);
        return;
    }
    for (int i = 0; i < c->n_pool; i++)
        c->pool[i] = qn_value_resolve(map[c->pool[i]->id]);
    qn_graph_sweep(g);
    qn_graph_free(c->g);
    c->g = g;
    c->has_gradients = true;
    for (int i = 0; i < n; i++)
        add_to_pool(c, dx[i]);
    for (int i = 0; i < n; i++) {
        if ((wrt[i]->node->op->traits & QN_STATE) && !is_assigned(g, wrt[i]->node) && chance(c, 70))
            qn_assign(g, wrt[i],
                      qn_sub(g, wrt[i], qn_mul(g, dx[i], qn_scalar_like(g, dx[i], 0.125))));
    }
}

/* A state becomes something made of itself, while later nodes may still read what it was. */
static inline void add_update(Case *c)
{
    for (QnNode *n = c->g->first; n; n = n->next) {
        if (!(n->op->traits & QN_STATE) || is_assigned(c->g, n) || chance(c, 40) ||
            qn_dtype_is_storage(n->out[0].type.dtype))
            continue;
        QnValue *s = &n->out[0], *v = s;
        const QnShape *shape = &s->type.shape;
        switch (below(c, 5)) {
        case 0: v = qn_tanh(c->g, s); break;
        case 1: v = shape->rank ? qn_softmax(c->g, s, 0) : qn_neg(c->g, s); break;
        case 2: v = shape->rank ? qn_cumsum(c->g, s, 0, false, true) : qn_neg(c->g, s); break;
        case 3: v = qn_mul(c->g, s, qn_sum(c->g, s, QN_ALL_AXES, false)); break;
        default:
            v = qn_reshape(c->g, s, &QN_SHAPE(qn_shape_count(shape)));
            v = qn_reshape(c->g, qn_add(c->g, v, v), shape);
        }
        qn_assign(c->g, s, v);
        add_to_pool(c, v);
        add_to_pool(c, s);
        return;
    }
}

static inline void add_assigns(Case *c)
{
    for (QnNode *n = c->g->first, *end = c->g->last; n; n = n == end ? NULL : n->next) {
        bool assigned = is_assigned(c->g, n);
        for (int i = 0; (n->op->traits & QN_STATE) && !assigned && i < c->n_pool; i++) {
            QnValue *v = c->pool[i];
            const QnOp *op = qn_value_is_poison(v) ? NULL : v->node->op;
            if (op && v != &n->out[0] && chance(c, 50) &&
                qn_type_is_equal(&v->type, &n->out[0].type)) {
                qn_assign(c->g, &n->out[0], v);
                break;
            }
        }
    }
}

static inline void add_outputs(Case *c)
{
    int count = 0;
    for (int i = c->n_pool - 1; i >= 0 && count < 6; i--) {
        char name[16];
        snprintf(name, sizeof name, "y%d", count);
        if (i == c->n_pool - 1 || chance(c, 35)) {
            assert_ok(qn_graph_output(c->g, name, c->pool[i]));
            count++;
        }
    }
}

static inline void case_free(Case *c)
{
    for (int i = 0; i < c->n_leaf; i++)
        qn_free(c->leaf[i].values);
    qn_graph_free(c->g);
    free(c);
}

static inline Case *case_new(uint64_t seed)
{
    Case *c = calloc(1, sizeof *c);
    c->seed = c->rng = seed;
    c->g = qn_graph_new();
    int kind = below(c, 100), steps = 2 + below(c, chance(c, 20) ? 50 : 15);
    c->real = kind < 80   ? QN_DTYPE_F32
              : kind < 88 ? QN_DTYPE_F64
              : kind < 94 ? QN_DTYPE_BF16
                          : QN_DTYPE_F16;
    while (c->n_pool == 0)
        add_sample(c);
    for (int i = 0; i < steps; i++) {
        int what = below(c, 11);
        if (what == 10)
            add_update(c);
        else if (what < 5)
            add_sample(c);
        else if (what < 7)
            add_unary(c, any(c));
        else
            add_binary(c, any(c), any(c));
    }
    if (qn_graph_check(c->g) != QN_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, qn_error_last()->text);
    if (chance(c, 40))
        add_gradients(c);
    if (chance(c, 40))
        add_assigns(c);
    add_outputs(c);
    if (qn_graph_verify(c->g) != QN_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, qn_error_last()->text);
    return c;
}

static inline const Leaf *case_leaf(const Case *c, const char *name)
{
    for (int i = 0; i < c->n_leaf; i++) {
        if (!strcmp(c->leaf[i].name, name))
            return &c->leaf[i];
    }
    return NULL;
}

#endif
