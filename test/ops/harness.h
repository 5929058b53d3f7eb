/* What the operator harness's tests share: a sample of an operator made into a graph of one node
 * with filled inputs, and comparisons that name operator, sample and element. */
#ifndef QN_TEST_OPS_HARNESS_H
#define QN_TEST_OPS_HARNESS_H

#include "test.h"

#include "base/rng.h"
#include "ir/eval.h"
#include "ops/ops.h"
#include "ops/util.h"

#include <math.h>

#define QN_X(name) &qn_op_##name,
static const QnOp *const all_ops[] = { QN_OP_LIST(QN_X) };
#undef QN_X

#define EACH_OP(op)        for (int op##_i = 0; op##_i < QN_COUNT(all_ops); op##_i++)
#define EACH_SAMPLE(op, k) for (int k = 0; k < (op)->n_samples; k++)

/* How a variant of a sample differs from it beside its shapes (ops/variants.h). */
typedef struct CaseVary {
    int64_t from, to; /* a dim that is another, also in attributes that are shapes */
    bool flip;        /* axes are counted from the other end */
    bool special;     /* inputs hold special values */
} CaseVary;

/* One sample as a graph: inputs x0.., one node. Absent inputs are NULL; a sample says so by
 * QN_DTYPE_COUNT. */
typedef struct Case {
    const QnOp *op;
    const QnSample *sample;
    int number; /* of the sample */
    QnGraph *g;
    QnNode *node;
    QnValue *in[QN_SAMPLE_IN];
    double *x[QN_SAMPLE_IN];
    CaseVary vary;
    double slack;   /* tolerances are so many times the operator's; 0: once */
    QnSample *made; /* a variant of a sample, which goes with the case; else NULL */
    char name[128];
} Case;

static inline int64_t value_count(const QnValue *v)
{
    return qn_shape_count(&v->type.shape);
}

static inline double *new_doubles(int64_t n)
{
    double *p = qn_alloc_array((size_t)n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

static inline QnShape sample_shape(const QnSampleIn *in)
{
    return qn_shape_make(in->rank, in->dim);
}

static inline double sample_draw(const QnSample *s, const QnSampleIn *in, QnDtype dtype, QnRng *rng)
{
    double lo = in->lo, hi = in->hi;
    if (lo == 0 && hi == 0) {
        lo = s->lo;
        hi = s->hi;
    }
    if (lo == 0 && hi == 0) {
        lo = dtype == QN_DTYPE_BOOL || qn_dtype_is_unsigned(dtype) ? 0 : -1;
        hi = 1;
    }
    if (!qn_dtype_is_float(dtype))
        return lo + (double)qn_rng_below(rng, (uint64_t)(hi - lo) + 1);
    double x = lo;
    for (int tries = 0; tries < 1000; tries++) {
        x = lo + (hi - lo) * (double)qn_rng_uniform(rng);
        double near = in->kink == 0 ? 0 : in->kink * rint(x / in->kink);
        if (fabs(x - near) >= in->keep_off)
            break;
    }
    return x;
}

/* Values a fixed step apart in random order, so that all differ by 1e-2. */
static inline void fill_distinct(const QnSample *s, const QnSampleIn *in, double *x, int64_t n,
                                 QnRng *rng)
{
    double lo = in->lo, hi = in->hi;
    if (lo == 0 && hi == 0) {
        lo = s->lo == 0 && s->hi == 0 ? -1 : s->lo;
        hi = s->lo == 0 && s->hi == 0 ? 1 : s->hi;
    }
    double step = n ? fmax((hi - lo) / (double)n, 0.0125) : 0;
    int64_t *order = qn_alloc_array((size_t)n + 1, sizeof *order);
    assert_non_null(order);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    qn_rng_shuffle(rng, order, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = lo + step * ((double)order[i] + 0.1 * (double)qn_rng_uniform(rng));
    qn_free(order);
}

enum { N_SPECIAL = 16 };
static const double special_values[N_SPECIAL] = { 0,
                                                  -0.0,
                                                  1,
                                                  -1,
                                                  INFINITY,
                                                  -INFINITY,
                                                  NAN,
                                                  0x1.fffffep127,
                                                  -0x1.fffffep127,
                                                  0x1p-126,
                                                  -0x1p-126,
                                                  0x1p-149,
                                                  0.5,
                                                  -2,
                                                  3,
                                                  -0x1p-140 };

/* All pairs of them for the first two inputs. */
static inline void fill_special(double *x, int64_t n, int input)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = input == 0 ? i : input == 1 ? i / N_SPECIAL : i / N_SPECIAL + 5 * i;
        x[i] = special_values[at % N_SPECIAL];
    }
}

/* Elements of input k, rounded to its dtype: what every implementation then starts from. */
static inline void fill_input(Case *c, int k, QnRng *rng)
{
    const QnSampleIn *in = &c->sample->in[k];
    QnDtype dtype = c->in[k]->type.dtype;
    int64_t n = value_count(c->in[k]);
    c->x[k] = new_doubles(n);
    if (c->vary.special)
        fill_special(c->x[k], n, k);
    else if (in->distinct && qn_dtype_is_float(dtype))
        fill_distinct(c->sample, in, c->x[k], n, rng);
    else
        for (int64_t i = 0; i < n; i++)
            c->x[k][i] = sample_draw(c->sample, in, dtype, rng);
    for (int64_t i = 0; i < n; i++) {
        uint64_t cell;
        qn_dtype_from_f64(dtype, &c->x[k][i], &cell, 1);
        qn_dtype_to_f64(dtype, &cell, &c->x[k][i], 1);
    }
}

static inline void case_close(Case *c)
{
    for (int k = 0; k < QN_SAMPLE_IN; k++)
        qn_free(c->x[k]);
    qn_graph_free(c->g);
    qn_free(c->made);
    *c = (Case){ 0 };
}

static inline QnDim varied_dim(void *ctx, QnDim d)
{
    const CaseVary *v = ctx;
    return v->from != v->to && d == v->from ? v->to : d;
}

/* The dtype of an input where f32 inputs are in the dtype `f`. */
static inline QnDtype sample_dtype(const QnSampleIn *in, QnDtype f)
{
    bool narrow = f == QN_DTYPE_F16 || f == QN_DTYPE_BF16;
    return in->dtype != QN_DTYPE_F32 || (in->wide && narrow) ? in->dtype : f;
}

static inline void flip_axis(int64_t *axis, int rank)
{
    *axis += *axis < 0 ? rank : -rank;
}

/* Counts the axes that attributes name from the other end. */
static inline void flip_axes(const QnOp *op, char *attr, int rank)
{
    for (int i = 0; i < op->n_fields; i++) {
        void *at = attr + op->fields[i].offset;
        if (op->fields[i].kind == QN_ATTR_INT && !strcmp(op->fields[i].name, "axis"))
            flip_axis(at, rank);
        QnInts *list = at;
        for (int k = 0; op->fields[i].kind == QN_ATTR_INTS && k < list->n; k++) {
            if (!strcmp(op->fields[i].name, "axes"))
                flip_axis(&list->v[k], rank);
        }
    }
}

/* The sample's attributes, varied; bodies of fused groups name dtypes, which follow `f` as inputs
 * do. */
static inline const void *case_attr(Case *c, QnDtype f)
{
    const QnOp *op = c->op;
    bool body = false, varies = c->vary.from != c->vary.to || c->vary.flip;
    for (int i = 0; i < op->n_fields; i++)
        body |= op->fields[i].kind == QN_ATTR_BODY;
    if (!op->n_fields || !(body || varies) || (body && !c->sample->attr))
        return c->sample->attr;
    char *attr = qn_arena_alloc(c->g->arena, op->attr_bytes);
    assert_non_null(attr);
    if (c->sample->attr)
        attr = qn_attr_copy(c->g->arena, op, c->sample->attr, varied_dim, &c->vary);
    else
        qn_attr_defaults(op, attr);
    assert_non_null(attr);
    if (c->vary.flip)
        flip_axes(op, attr, c->sample->in[0].rank);
    for (int i = 0; i < op->n_fields; i++) {
        if (op->fields[i].kind != QN_ATTR_BODY)
            continue;
        const QnBody *b = *(const QnBody **)(void *)(attr + op->fields[i].offset);
        for (int k = 0; k < b->n_instr; k++) {
            QnBodyInstr *x = (QnBodyInstr *)(uintptr_t)&b->instr[k]; /* our copy */
            x->dtype = x->dtype == QN_DTYPE_F32 ? f : x->dtype;
        }
    }
    return attr;
}

/* Emits c->sample, an operator's own or a variant, with its f32 inputs in the dtype `f`. false: the
 * operator refuses it (the cause is the last error); c is then closed. */
static inline bool case_emit(Case *c, QnDtype f)
{
    c->g = qn_graph_new();
    assert_non_null(c->g);
    for (int i = 0; i < c->sample->n_in; i++) {
        const QnSampleIn *in = &c->sample->in[i];
        char name[16];
        if (in->dtype == QN_DTYPE_COUNT)
            continue;
        snprintf(name, sizeof name, "x%d", i);
        QnShape shape = sample_shape(in);
        c->in[i] = qn_input(c->g, name, sample_dtype(in, f), &shape);
    }
    c->node = qn_emit(c->g, c->op, case_attr(c, f), c->in, c->sample->n_in);
    if (!c->node) {
        QnError why = c->g->error;
        case_close(c);
        qn_error_adopt(&why);
    }
    return c->node != NULL;
}

static inline void case_fill(Case *c)
{
    QnRng rng;
    qn_rng_init(&rng, 1, (uint64_t)c->number);
    for (int i = 0; i < c->sample->n_in; i++) {
        if (c->in[i])
            fill_input(c, i, &rng);
    }
}

/* Sample k of op. */
static inline bool case_try(Case *c, const QnOp *op, int k, QnDtype f)
{
    *c = (Case){ .op = op, .sample = &op->samples[k], .number = k };
    snprintf(c->name, sizeof c->name, "%s, sample %d, %s", op->name, k, qn_dtype_name(f));
    if (!case_emit(c, f))
        return false;
    case_fill(c);
    return true;
}

static inline void case_open(Case *c, const QnOp *op, int k, QnDtype f)
{
    if (!case_try(c, op, k, f))
        fail_msg("%s, sample %d, %s: %s", op->name, k, qn_dtype_name(f), qn_error_last()->text);
}

/* Operators without a value of their own (input, state) have only types to check. */
static inline bool op_has_value(const QnOp *op)
{
    return op->map || op->ref || op->lower;
}

/* out[i] is allocated here, freed by free_outputs. */
static inline void case_outputs(const Case *c, double *out[QN_MAX_OUT])
{
    for (int i = 0; i < QN_MAX_OUT; i++)
        out[i] = i < c->node->n_out ? new_doubles(value_count(&c->node->out[i])) : NULL;
}

static inline void free_outputs(double *out[QN_MAX_OUT])
{
    for (int i = 0; i < QN_MAX_OUT; i++)
        qn_free(out[i]);
}

static inline void case_run(const Case *c, double *out[QN_MAX_OUT])
{
    QnStatus st = qn_eval_node(c->node, (const double *const *)c->x, out, false);
    if (st)
        fail_msg("%s: %s", c->name, qn_error_last()->text);
}

/* The default tolerance of a dtype, or the operator's own. */
static inline double case_tol(const Case *c, QnDtype dtype)
{
    const QnTol *t = &c->op->tol;
    double slack = c->slack > 0 ? c->slack : 1;
    switch (dtype) {
    case QN_DTYPE_F32: return slack * (t->f32 > 0 ? t->f32 : 1e-5);
    case QN_DTYPE_F16: return t->f16 > 0 ? t->f16 : 2e-3;
    case QN_DTYPE_BF16: return t->bf16 > 0 ? t->bf16 : 2e-2;
    case QN_DTYPE_F64: return t->f64 > 0 ? t->f64 : 1e-9;
    default: return 0; /* integers and bools are exact */
    }
}

/* Index of the first element out of tolerance, -1 if all are within. Infinite where the dtype's
 * largest number is passed. */
static inline int64_t first_difference(const double *got, const double *want, int64_t n, double tol)
{
    for (int64_t i = 0; i < n; i++) {
        bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
        if (!same && !(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i]))))
            return i;
    }
    return -1;
}

static inline void round_to_dtype(QnDtype dtype, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t cell;
        qn_dtype_from_f64(dtype, &x[i], &cell, 1);
        qn_dtype_to_f64(dtype, &cell, &x[i], 1);
    }
}

#endif
