/* Variants of an operator's samples: the same operator and attributes on other shapes, derived and
 * not written down. A dim becomes another wherever the sample has it, so that what belongs together
 * stays together: 0, 1, odd, and long enough for several work groups; one more axis in front; axes
 * counted from the other end; for maps, operands broadcast along some axes, and special values.
 * What an operator refuses is none of its variants. */
#ifndef QN_TEST_OPS_VARIANTS_H
#define QN_TEST_OPS_VARIANTS_H

#include "ops/harness.h"

enum { LONG_DIM = 1031, LONG_MAP = 70001, MAX_VARIANTS = 48, MAX_CASE_ELEMENTS = 400000 };
static const double max_case_flops = 2e7;

typedef struct Variant {
    QnSample s;
    int64_t from, to; /* the dim that becomes another, also in attributes that are shapes */
    bool flip;        /* axes are counted from the other end */
    bool special;     /* inputs hold special values */
    char what[48];
} Variant;

typedef struct Variants {
    Variant v[MAX_VARIANTS];
    int n;
} Variants;

static inline Variant *variant_new(Variants *all, const QnSample *s)
{
    assert_true(all->n < MAX_VARIANTS);
    Variant *v = &all->v[all->n++];
    *v = (Variant){ .s = *s };
    return v;
}

/* Indices that reach to the ends of an axis still do. */
static inline void range_follows(QnSampleIn *in, int64_t from, int64_t to)
{
    if (in->dtype != QN_DTYPE_I32 && in->dtype != QN_DTYPE_I64)
        return;
    in->hi = in->hi == (double)(from - 1) ? (double)(to - 1) : in->hi;
    in->lo = in->lo == (double)-from ? (double)-to : in->lo;
}

static inline void vary_dim(Variants *all, const QnSample *s, int64_t from, int64_t to)
{
    Variant *v = variant_new(all, s);
    v->from = from;
    v->to = to;
    snprintf(v->what, sizeof v->what, "%lld for %lld", (long long)to, (long long)from);
    for (int i = 0; i < s->n_in; i++) {
        QnSampleIn *in = &v->s.in[i];
        for (int d = 0; d < in->rank; d++)
            in->dim[d] = in->dim[d] == from ? to : in->dim[d];
        range_follows(in, from, to);
    }
}

/* The different dims above 1, in the order in which they stand. */
static inline int dims_of(const QnSample *s, int64_t dims[QN_MAX_RANK])
{
    int n = 0;
    for (int i = 0; i < s->n_in; i++) {
        for (int d = 0; d < s->in[i].rank; d++) {
            bool seen = s->in[i].dim[d] < 2 || n == QN_MAX_RANK;
            for (int k = 0; k < n; k++)
                seen |= dims[k] == s->in[i].dim[d];
            if (!seen)
                dims[n++] = s->in[i].dim[d];
        }
    }
    return n;
}

static inline void vary_shapes(Variants *all, const QnSample *s)
{
    int64_t dims[QN_MAX_RANK];
    int n = QN_MIN(dims_of(s, dims), 6);
    for (int k = 0; k < n; k++) {
        vary_dim(all, s, dims[k], 1);
        vary_dim(all, s, dims[k], 0);
        vary_dim(all, s, dims[k], 2 * dims[k] + 1);
        if (k == 0 || k == n - 1)
            vary_dim(all, s, dims[k], LONG_DIM);
    }
}

static inline void vary_rank(Variants *all, const QnSample *s)
{
    Variant *v = variant_new(all, s);
    snprintf(v->what, sizeof v->what, "an axis in front");
    for (int i = 0; i < s->n_in; i++) {
        QnSampleIn *in = &v->s.in[i];
        if (in->rank == 0 || in->rank == QN_MAX_RANK)
            continue;
        memmove(in->dim + 1, in->dim, (size_t)in->rank++ * sizeof in->dim[0]);
        in->dim[0] = 3;
    }
}

static inline void vary_axes(Variants *all, const QnOp *op, const QnSample *s)
{
    for (int i = 0; i < op->n_fields; i++) {
        if (strcmp(op->fields[i].name, "axis") && strcmp(op->fields[i].name, "axes"))
            continue;
        Variant *v = variant_new(all, s);
        v->flip = true;
        snprintf(v->what, sizeof v->what, "axes from the other end");
        return;
    }
}

static inline void set_shape(QnSampleIn *in, int rank, const int64_t *dim)
{
    in->rank = rank;
    memcpy(in->dim, dim, (size_t)rank * sizeof *dim);
}

/* All operands of one shape but `odd` (-1: none). */
static inline void vary_map(Variants *all, const QnSample *s, int rank, const int64_t *dim, int odd,
                            int odd_rank, const int64_t *odd_dim)
{
    Variant *v = variant_new(all, s);
    for (int i = 0; i < s->n_in; i++)
        set_shape(&v->s.in[i], i == odd ? odd_rank : rank, i == odd ? odd_dim : dim);
    snprintf(v->what, sizeof v->what, "rank %d, operand %d of rank %d", rank, odd, odd_rank);
}

static inline void vary_maps(Variants *all, const QnSample *s)
{
    static const int64_t many[] = { LONG_MAP }, deep[] = { 2, 1, 3, 1, 5, 7 },
                         three[] = { 3, 5, 7 };
    static const int64_t row[] = { 7 }, column[] = { 3, 1, 1 }, middle[] = { 1, 5, 1 };
    static const int64_t plane[] = { 3, 1, 7 }, wide[] = { 37, 41 }, last[] = { 41 };
    vary_map(all, s, 1, many, -1, 0, NULL);
    vary_map(all, s, 6, deep, -1, 0, NULL);
    vary_map(all, s, 0, many, -1, 0, NULL);
    for (int i = 0; i < s->n_in && s->n_in > 1; i++) {
        vary_map(all, s, 3, three, i, 0, row);
        vary_map(all, s, 3, three, i, 1, row);
        vary_map(all, s, 3, three, i, 3, column);
        vary_map(all, s, 3, three, i, 3, middle);
        vary_map(all, s, 3, three, i, 3, plane);
        vary_map(all, s, 2, wide, i, 1, last);
    }
    Variant *v = variant_new(all, s);
    static const int64_t pairs[] = { N_SPECIAL, N_SPECIAL };
    v->special = true;
    snprintf(v->what, sizeof v->what, "special values");
    for (int i = 0; i < s->n_in; i++)
        set_shape(&v->s.in[i], 2, pairs);
}

/* Those of sample k; none is the sample itself. */
static inline void variants_of(Variants *all, const QnOp *op, int k)
{
    const QnSample *s = &op->samples[k];
    all->n = 0;
    vary_shapes(all, s);
    vary_rank(all, s);
    vary_axes(all, op, s);
    if (op->map && k == 0)
        vary_maps(all, s);
}

/* Rounding errors of a sum grow with the square root of its terms, which samples keep below 130 and
 * tolerances in f32 are for. */
static inline double slack_of(const QnNode *n)
{
    double terms = qn_cost_of(n).flops / 2, count = 0;
    for (int i = 0; i < n->n_out; i++)
        count += (double)value_count(&n->out[i]);
    return count > 0 ? fmax(1, sqrt(terms / count / 130)) : 1;
}

/* lerp's difference of the largest floats is infinite in f32 and not in f64. What gelu_tanh makes
 * of -inf hangs on whether the device's tanh reaches -1: 0 times infinity, or a small number times
 * it. */
static inline bool has_special_values(const QnOp *op)
{
    return op != &qn_op_lerp && op != &qn_op_gelu_tanh;
}

/* false: the operator refuses it, or it would take too long. */
static inline bool case_vary(Case *c, const QnOp *op, int k, const Variants *all, int v, QnDtype f)
{
    const Variant *x = &all->v[v];
    if (x->special && (!qn_dtype_is_float(f) || !has_special_values(op)))
        return false;
    QnSample *own = qn_alloc(sizeof *own);
    assert_non_null(own);
    *own = x->s;
    *c = (Case){ .op = op, .sample = own, .made = own, .number = k + 100 * (v + 1) };
    c->vary = (CaseVary){ x->from, x->to, x->flip, x->special };
    snprintf(c->name, sizeof c->name, "%s, sample %d (%s), %s", op->name, k, x->what,
             qn_dtype_name(f));
    if (!case_emit(c, f))
        return false;
    bool fits = qn_cost_of(c->node).flops <= max_case_flops;
    for (int i = 0; i < c->node->n_in + c->node->n_out; i++) {
        const QnValue *y = i < c->node->n_in ? c->node->in[i] : &c->node->out[i - c->node->n_in];
        fits &= !y || value_count(y) <= MAX_CASE_ELEMENTS;
    }
    bool heads = op == &qn_op_attention || op == &qn_op_attention_grad;
    fits &= !heads || own->in[0].dim[own->in[0].rank - 1] > 0; /* their scale is 1/sqrt(0) */
    for (int i = 0; i < own->n_in; i++)                        /* indices into nothing */
        fits &= !c->in[i] || own->in[i].hi >= own->in[i].lo || value_count(c->in[i]) == 0;
    c->slack = slack_of(c->node);
    if (fits)
        case_fill(c);
    else
        case_close(c);
    return fits;
}

#endif
