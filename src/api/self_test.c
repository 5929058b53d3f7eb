#include "api/self_test.h"

#include "ir/eval.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include <math.h>
#include <string.h>

#define BOUND 1e-4 /* far above rounding in f32, far below what a wrong kernel gives */

/* ---- the cases ------------------------------------------------------------------------------- */

static QnValue *real(QnGraph *g, const char *name, QnShape shape)
{
    return qn_input(g, name, QN_DTYPE_F32, &shape);
}

static QnValue *map(QnGraph *g)
{
    QnValue *x = real(g, "x", QN_SHAPE(37, 65)), *y = real(g, "y", QN_SHAPE(37, 65));
    return qn_add(g, qn_mul(g, qn_silu(g, x), y), qn_exp(g, y));
}

static QnValue *sum(QnGraph *g)
{
    return qn_sum(g, real(g, "x", QN_SHAPE(19, 1031)), QN_INTS(1), false);
}

static QnValue *softmax(QnGraph *g)
{
    return qn_softmax(g, real(g, "x", QN_SHAPE(33, 517)), 1);
}

static QnValue *layer_norm(QnGraph *g)
{
    QnValue *x = real(g, "x", QN_SHAPE(21, 96));
    return qn_layer_norm(g, x, real(g, "scale", QN_SHAPE(96)), real(g, "bias", QN_SHAPE(96)), 1,
                         1e-5);
}

static QnValue *matmul(QnGraph *g)
{
    QnValue *x = real(g, "x", QN_SHAPE(45, 130)), *w = real(g, "w", QN_SHAPE(70, 130));
    return qn_matmul(g, x, w, real(g, "bias", QN_SHAPE(70)), false, true);
}

static QnValue *conv(QnGraph *g)
{
    QnValue *x = real(g, "x", QN_SHAPE(2, 5, 17, 15)), *w = real(g, "w", QN_SHAPE(8, 5, 3, 3));
    return qn_conv(g, x, w, real(g, "bias", QN_SHAPE(8)),
                   &(QnConvAttr){ .strides = { 2, { 2, 2 } }, .pads = { 4, { 1, 1, 1, 1 } } });
}

static QnValue *max_pool(QnGraph *g)
{
    return qn_max_pool(g, real(g, "x", QN_SHAPE(2, 3, 16, 18)),
                       &(QnPoolAttr){ .kernel = { 2, { 3, 3 } }, .strides = { 2, { 2, 2 } } });
}

static QnValue *embedding(QnGraph *g)
{
    return qn_embedding(g, real(g, "table", QN_SHAPE(50, 24)),
                        qn_input(g, "ids", QN_DTYPE_I64, &QN_SHAPE(40)));
}

static QnValue *transpose(QnGraph *g)
{
    return qn_transpose(g, real(g, "x", QN_SHAPE(6, 35, 41)), QN_INTS(2, 0, 1));
}

static QnValue *cross_entropy(QnGraph *g)
{
    QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(31));
    return qn_cross_entropy(g, real(g, "x", QN_SHAPE(31, 50)), labels, 0.1, -100,
                            QN_REDUCTION_MEAN);
}

/* Of softmax(silu(x w)), squared. */
static QnValue *gradient(QnGraph *g)
{
    QnValue *x = real(g, "x", QN_SHAPE(37, 65)), *w = real(g, "w", QN_SHAPE(65, 41)), *dw = NULL;
    QnValue *y = qn_softmax(g, qn_silu(g, qn_matmul(g, x, w, NULL, false, false)), 1);
    return qn_grad(g, qn_mul(g, y, y), &w, 1, &dw) == QN_OK ? dw : NULL;
}

static const struct Case {
    const char *name;
    QnValue *(*build)(QnGraph *g);
} cases[] = {
    { "map", map },
    { "sum", sum },
    { "softmax", softmax },
    { "layer_norm", layer_norm },
    { "matmul", matmul },
    { "conv", conv },
    { "max_pool", max_pool },
    { "embedding", embedding },
    { "transpose", transpose },
    { "cross_entropy", cross_entropy },
    { "gradient", gradient },
};

/* ---- one of them ----------------------------------------------------------------------------- */

typedef struct Run {
    QnGraph *oracle, *graph; /* as built; through the device's passes */
    QnEval *eval;
    QnPlan *plan;
    QnValue *want; /* in the oracle */
    double error;
    bool on_host;
    const char *kernel; /* of the last step */
} Run;

static QnStatus build(const struct Case *c, QnGraph **g, QnValue **y)
{
    *g = qn_graph_new();
    if (!*g)
        return QN_ENOMEM;
    *y = c->build(*g);
    QN_TRY(*y ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_graph_output(*g, "y", *y));
    return qn_graph_check(*g);
}

static QnStatus compile(Run *r, QnDevice *d)
{
    QnPipelineOptions passes = qn_device_passes(d);
    QN_TRY(qn_pipeline_run(r->graph, &passes));
    QN_TRY(qn_plan_new(r->graph, d, NULL, NULL, &r->plan));
    for (int64_t i = 0; i < qn_plan_n_steps(r->plan); i++) {
        const QnKernel *k = qn_plan_step(r->plan, i).kernel;
        r->kernel = k->name;
        r->on_host |= (k->flags & QN_KERNEL_WAITS) != 0;
    }
    r->eval = qn_eval_new(r->oracle, false);
    return r->eval ? QN_OK : QN_ENOMEM;
}

/* Numbers from -1 to 1, or from 0 to 49, which all tables have. */
static QnStatus feed_one(Run *r, const QnNode *n, int seed)
{
    const QnType *t = &n->out[0].type;
    int64_t count = qn_shape_count(&t->shape);
    double *wide = qn_alloc_array((size_t)count, sizeof *wide);
    void *narrow = qn_alloc((size_t)qn_type_bytes(t));
    QnStatus st = wide && narrow ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    for (int64_t i = 0; i < count; i++) {
        int64_t k = (i * 37 + seed * 11) % 101;
        wide[i] = t->dtype == QN_DTYPE_I64 ? (double)(k % 50) : (float)k / 50.5f - 1.0f;
    }
    qn_dtype_from_f64(t->dtype, wide, narrow, count);
    QN_TRY_DONE(qn_eval_set(r->eval, &n->out[0], wide));
    QN_TRY_DONE(qn_plan_write(r->plan, qn_node_label(n), narrow, (size_t)qn_type_bytes(t)));
done:
    qn_free(wide);
    qn_free(narrow);
    return st;
}

static QnStatus feed(Run *r)
{
    int seed = 0;
    QN_GRAPH_EACH(r->oracle, n)
    {
        if (n->op->traits & QN_INPUT)
            QN_TRY(feed_one(r, n, ++seed));
    }
    return QN_OK;
}

static QnStatus compare(Run *r)
{
    int64_t n = qn_shape_count(&r->want->type.shape);
    float *got = qn_alloc_array((size_t)n, sizeof *got);
    const double *want;
    QnStatus st = got ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    QN_TRY_DONE(qn_eval_get(r->eval, r->want, &want));
    QN_TRY_DONE(qn_plan_read(r->plan, "y", got, (size_t)n * sizeof *got));
    for (int64_t i = 0; i < n; i++) {
        double e = fabs((double)got[i] - want[i]) / (1 + fabs(want[i]));
        r->error = isnan(e) ? INFINITY : fmax(r->error, e);
    }
done:
    qn_free(got);
    return st;
}

static QnStatus run_case(const struct Case *c, QnDevice *d, Run *r)
{
    QnValue *y;
    QN_TRY(build(c, &r->oracle, &r->want));
    QN_TRY(build(c, &r->graph, &y));
    QN_TRY(compile(r, d));
    QN_TRY(feed(r));
    QN_TRY(qn_plan_run(r->plan));
    return compare(r);
}

static void run_fini(Run *r)
{
    qn_eval_free(r->eval);
    qn_plan_free(r->plan);
    qn_graph_free(r->graph);
    qn_graph_free(r->oracle);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void add(QnSelfTest *t, const char *name, const Run *r, QnStatus st)
{
    t->n_cases++;
    if (r->on_host)
        qn_str_printf(&t->on_host, "%s%s", t->on_host.n ? ", " : "", name);
    if (st == QN_OK && r->error > t->worst) {
        t->worst = r->error;
        t->worst_case = name;
    }
    if (st == QN_OK && r->error <= BOUND)
        return;
    t->n_bad++;
    if (st != QN_OK)
        qn_str_printf(&t->bad, "%s%s: %s", t->bad.n ? "; " : "", name, qn_error_last()->text);
    else
        qn_str_printf(&t->bad, "%s%s: %.2g off by %s", t->bad.n ? "; " : "", name, r->error,
                      r->kernel);
}

QnStatus qn_self_test(QnDevice *d, QnSelfTest *out)
{
    *out = (QnSelfTest){ .worst_case = cases[0].name };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        Run r = { 0 };
        QnStatus st = run_case(&cases[i], d, &r);
        add(out, cases[i].name, &r, st);
        run_fini(&r);
    }
    return out->bad.st != QN_OK ? out->bad.st : out->on_host.st;
}

void qn_self_test_fini(QnSelfTest *t)
{
    qn_str_fini(&t->bad);
    qn_str_fini(&t->on_host);
}
