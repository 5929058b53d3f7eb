/* Gradients against central differences in float64, first and second order. */
#include "ops/harness.h"

#include "pass/grad.h"

enum {
    ELEMENTS = 48,   /* checked of one input; all of them if there are no more */
    ELEMENTS2 = 12,  /* second order */
    LEAST = 2400,    /* checks of first order in all */
    LEAST_OPS2 = 60, /* operators with second-order checks */
};

static const double step = 1e-6, abs_tol = 1e-5, rel_tol = 1e-3;

static bool has_gradient(const QnOp *op, const QnSample *s)
{
    return !(op->traits & QN_NO_GRAD) && !(s->flags & QN_SAMPLE_NO_GRAD);
}

static bool has_floats(const QnSample *s)
{
    for (int i = 0; i < s->n_in; i++) {
        if (qn_dtype_is_float(s->in[i].dtype))
            return true;
    }
    return false;
}

/* A sample, its gradient graph and what the chain needs: loss = sum over outputs of out * weight.
 */
typedef struct Checked {
    Case c;
    QnEval *e;
    double *weight[QN_MAX_OUT]; /* NULL: the output is no float */
    QnValue *weight_value[QN_MAX_OUT];
    QnValue *x[QN_SAMPLE_IN], *dx[QN_SAMPLE_IN]; /* float inputs and their gradients */
    int which[QN_SAMPLE_IN];                     /* their input numbers */
    int n;
} Checked;

static void set(QnEval *e, const QnValue *v, const double *x)
{
    assert_ok(qn_eval_set(e, v, x));
}

static const double *get(Checked *t, const QnValue *v)
{
    const double *p = NULL;
    if (qn_eval_get(t->e, v, &p))
        fail_msg("%s: %s", t->c.name, qn_error_last()->text);
    return p;
}

static double *draw(QnRng *rng, int64_t n)
{
    double *w = new_doubles(n);
    for (int64_t i = 0; i < n; i++)
        w[i] = 0.5 + (double)qn_rng_uniform(rng); /* away from zero, so that nothing hides */
    return w;
}

static QnValue *weighted_sum(QnGraph *g, QnValue *v, const char *name, QnValue **weight)
{
    *weight = qn_input(g, name, QN_DTYPE_F64, &v->type.shape);
    return qn_sum(g, qn_mul(g, qn_cast(g, v, QN_DTYPE_F64), *weight), QN_ALL_AXES, false);
}

static QnValue *add_loss(QnGraph *g, QnValue *loss, QnValue *term)
{
    return loss ? qn_add(g, loss, term) : term;
}

/* The gradient pass replaces composites, so the node is looked at before it runs. */
static void checked_open(Checked *t, const QnOp *op, int k)
{
    memset(t, 0, sizeof *t);
    case_open(&t->c, op, k, QN_DTYPE_F64);
    Case *c = &t->c;
    QnRng rng;
    QnValue *loss = NULL;
    qn_rng_init(&rng, 2, (uint64_t)k);
    for (int i = 0; i < c->node->n_out; i++) {
        char name[16];
        QnValue *y = &c->node->out[i];
        snprintf(name, sizeof name, "w%d", i);
        if (!qn_dtype_is_float(y->type.dtype))
            continue;
        t->weight[i] = draw(&rng, value_count(y));
        loss = add_loss(c->g, loss, weighted_sum(c->g, y, name, &t->weight_value[i]));
    }
    for (int i = 0; i < c->sample->n_in; i++) {
        if (c->in[i] && qn_dtype_is_float(c->in[i]->type.dtype)) {
            t->which[t->n] = i;
            t->x[t->n++] = c->in[i];
        }
    }
    if (!loss || !t->n)
        fail_msg("%s: nothing to differentiate: mark it QN_NO_GRAD", c->name);
    if (qn_grad(c->g, loss, t->x, t->n, t->dx))
        fail_msg("%s: %s", c->name, qn_error_last()->text);
    t->e = qn_eval_new(c->g, false);
    assert_non_null(t->e);
}

static void checked_start(Checked *t)
{
    Case *c = &t->c;
    for (int i = 0; i < c->sample->n_in; i++) {
        if (c->in[i])
            set(t->e, c->in[i], c->x[i]);
    }
    for (int i = 0; i < QN_MAX_OUT; i++) {
        if (t->weight[i])
            set(t->e, t->weight_value[i], t->weight[i]);
    }
}

static void checked_close(Checked *t)
{
    qn_eval_free(t->e);
    for (int i = 0; i < QN_MAX_OUT; i++)
        qn_free(t->weight[i]);
    case_close(&t->c);
}

/* Which elements to look at: all, or `most` random ones. */
static int64_t choose(QnRng *rng, int64_t n, int most, int64_t *out)
{
    for (int64_t i = 0; i < QN_MIN(n, most); i++)
        out[i] = n <= most ? i : (int64_t)qn_rng_below(rng, (uint64_t)n);
    return QN_MIN(n, most);
}

static int bad; /* samples with a wrong gradient: all are shown before the test fails */

static bool is_close(const Checked *t, int input, int64_t element, double got, double want,
                     const char *order)
{
    if (fabs(got - want) <= abs_tol + rel_tol * fabs(want))
        return true;
    print_message("%s: %s gradient of input %d, element %lld: %.9g, central difference %.9g\n",
                  t->c.name, order, input, (long long)element, got, want);
    bad++;
    return false;
}

/* Output differences are weighted one by one: a sum first would lose small ones beside large ones.
 */
static double central_difference(const Case *c, const Checked *t, int input, int64_t element,
                                 double *up[QN_MAX_OUT], double *down[QN_MAX_OUT])
{
    double *x = &c->x[input][element], kept = *x, sum = 0;
    *x = kept + step;
    double width = *x;
    case_run(c, up);
    *x = kept - step;
    width -= *x; /* 2 step as x could hold it */
    case_run(c, down);
    *x = kept;
    for (int i = 0; i < c->node->n_out; i++) {
        int64_t n = t->weight[i] ? value_count(&c->node->out[i]) : 0;
        for (int64_t j = 0; j < n; j++)
            sum += t->weight[i][j] * (up[i][j] - down[i][j]);
    }
    return sum / width;
}

static int check_first(const QnOp *op, int k)
{
    Checked t;
    Case c; /* the untouched node */
    double *up[QN_MAX_OUT], *down[QN_MAX_OUT];
    QnRng rng;
    int checks = 0;
    checked_open(&t, op, k);
    case_open(&c, op, k, QN_DTYPE_F64);
    case_outputs(&c, up);
    case_outputs(&c, down);
    checked_start(&t);
    qn_rng_init(&rng, 3, (uint64_t)k);
    for (int i = 0; i < t.n; i++) {
        int64_t chosen[ELEMENTS], n = choose(&rng, value_count(t.x[i]), ELEMENTS, chosen);
        const double *dx = get(&t, t.dx[i]);
        for (int64_t j = 0; j < n; j++) {
            double want = central_difference(&c, &t, t.which[i], chosen[j], up, down);
            checks++;
            if (!is_close(&t, t.which[i], chosen[j], dx[chosen[j]], want, "first"))
                break;
        }
    }
    free_outputs(up);
    free_outputs(down);
    case_close(&c);
    checked_close(&t);
    return checks;
}

static void test_first_order(void **state)
{
    bad = 0;
    int checks = 0, samples = 0, skipped = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            const QnSample *s = &all_ops[o]->samples[k];
            if (!has_gradient(all_ops[o], s))
                continue;
            if (!has_floats(s)) {
                skipped++; /* integers only: no gradient to look for */
                continue;
            }
            checks += check_first(all_ops[o], k);
            samples++;
        }
    }
    print_message("%d first-order checks over %d samples; %d samples are of integers\n", checks,
                  samples, skipped);
    assert_int_equal(bad, 0);
    assert_true(checks >= LEAST);
}

/* v . dx as a function of x: its central difference. */
static double central_difference2(Checked *t, int i, int64_t element, double *const v[],
                                  double *const up[])
{
    double *x = t->c.x[t->which[i]], kept = x[element], sum = 0;
    x[element] = kept + step;
    set(t->e, t->x[i], x);
    for (int m = 0; m < t->n; m++)
        memcpy(up[m], get(t, t->dx[m]), (size_t)value_count(t->x[m]) * sizeof(double));
    x[element] = kept - step;
    set(t->e, t->x[i], x);
    for (int m = 0; m < t->n; m++) {
        const double *down = get(t, t->dx[m]);
        for (int64_t q = 0; q < value_count(t->x[m]); q++)
            sum += v[m][q] * (up[m][q] - down[q]);
    }
    x[element] = kept;
    set(t->e, t->x[i], x);
    return sum / (2 * step);
}

static int check_second(const QnOp *op, int k)
{
    Checked t;
    checked_open(&t, op, k);
    QnGraph *g = t.c.g;
    QnValue *loss = NULL, *v[QN_SAMPLE_IN], *d2[QN_SAMPLE_IN];
    double *vx[QN_SAMPLE_IN] = { 0 }, *up[QN_SAMPLE_IN] = { 0 };
    QnRng rng;
    int checks = 0;
    qn_rng_init(&rng, 4, (uint64_t)k);
    for (int i = 0; i < t.n; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        loss = add_loss(g, loss, weighted_sum(g, t.dx[i], name, &v[i]));
        vx[i] = draw(&rng, value_count(t.x[i]));
        up[i] = new_doubles(value_count(t.x[i]));
    }
    if (qn_grad(g, loss, t.x, t.n, d2))
        fail_msg("%s: second order: %s", t.c.name, qn_error_last()->text);
    checked_start(&t);
    for (int i = 0; i < t.n; i++)
        set(t.e, v[i], vx[i]);
    for (int i = 0; i < t.n; i++) {
        int64_t chosen[ELEMENTS2], n = choose(&rng, value_count(t.x[i]), ELEMENTS2, chosen);
        for (int64_t j = 0; j < n; j++) {
            double got = get(&t, d2[i])[chosen[j]];
            checks++;
            if (!is_close(&t, t.which[i], chosen[j], got,
                          central_difference2(&t, i, chosen[j], vx, up), "second"))
                break;
        }
    }
    for (int i = 0; i < t.n; i++) {
        qn_free(vx[i]);
        qn_free(up[i]);
    }
    checked_close(&t);
    return checks;
}

static void test_second_order(void **state)
{
    bad = 0;
    int checks = 0, ops = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        int before = checks;
        for (int k = 0; k < QN_MIN(op->n_samples, 2); k++) {
            if (has_gradient(op, &op->samples[k]) && !(op->samples[k].flags & QN_SAMPLE_NO_GRAD2) &&
                op->samples[k].in[op->samples[k].n_in - 1].dtype == QN_DTYPE_F32)
                checks += check_second(op, k);
        }
        ops += checks > before;
    }
    print_message("%d second-order checks of %d operators\n", checks, ops);
    assert_int_equal(bad, 0);
    assert_true(ops >= LEAST_OPS2);
}
