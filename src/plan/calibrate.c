#include "plan/calibrate.h"

#include "base/clock.h"
#include "base/str.h"
#include "ops/ops.h"
#include "plan/calib_impl.h"
#include "plan/calib_nets.h"
#include "plan/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 40, NETS = 64 };

typedef struct NetTime {
    double kernels_s, gap_s; /* of a step: all its kernels, and the rest */
    int64_t n_steps;         /* kernels */
} NetTime;

typedef struct Run {
    QnDevice *device;
    const QnCalibrateOptions *o;
    QnCalib *calib;
    QnCalibSample *samples;
    int64_t n, cap;
    NetTime nets[NETS];
    int n_nets;
} Run;

/* ---- one plan ---- */

/* An input does not keep its content over a run. */
typedef struct Input {
    void *to, *from;
    size_t bytes;
} Input;

enum { INPUTS = 8 };

typedef struct Job {
    QnStep step;
    QnStore *store;
    QnPlan *plan;
    Input inputs[INPUTS];
    int n_inputs;
    bool cpu; /* one thread: processor time is measured, to which others add nothing */
} Job;

static void job_fini(Job *j)
{
    for (int i = 0; i < j->n_inputs; i++)
        qn_free(j->inputs[i].from);
    qn_plan_free(j->plan);
    qn_store_free(j->store);
    qn_step_fini(&j->step);
}

/* Content that is in range whatever it means; a rate of 0 leaves the weights as they are. */
static QnStatus make_inputs(Job *j)
{
    QN_GRAPH_EACH(j->step.graph, n)
    {
        QnType type;
        const char *name = n->op == &qn_op_input ? qn_node_label(n) : NULL;
        void *to = name ? qn_plan_input(j->plan, name, &type) : NULL;
        uint32_t seed = 99;
        if (!to || j->n_inputs == INPUTS)
            continue;
        Input *in = &j->inputs[j->n_inputs];
        *in = (Input){ .to = to, .bytes = (size_t)qn_type_bytes(&type) };
        in->from = qn_alloc(in->bytes);
        if (!in->from)
            return QN_ENOMEM;
        j->n_inputs++;
        float *x = in->from;
        bool random = type.dtype == QN_DTYPE_F32 && type.shape.rank > 0;
        for (size_t i = 0; random && i < in->bytes / sizeof *x; i++) {
            seed = seed * 1664525u + 1013904223u;
            x[i] = (float)(seed >> 8) * 0x1p-23f - 1;
        }
    }
    return QN_OK;
}

/* Adds the time of a run. */
static QnStatus run_once(const Job *j, int64_t *ns)
{
    for (int i = 0; i < j->n_inputs; i++)
        memcpy(j->inputs[i].to, j->inputs[i].from, j->inputs[i].bytes);
    int64_t start = j->cpu ? qn_clock_cpu_ns() : qn_clock_ns();
    QN_TRY(qn_plan_run(j->plan));
    *ns += (j->cpu ? qn_clock_cpu_ns() : qn_clock_ns()) - start;
    return QN_OK;
}

/* Takes the step over. */
static QnStatus job_init(Job *j, const Run *r, QnStep step)
{
    *j = (Job){ .step = step, .cpu = r->device->env.n_threads == 1 };
    QnPipelineOptions passes = qn_device_passes(r->device);
    QnPlanOptions o = { .choices = r->o->choices, .profile = !j->cpu, .profile_cpu = j->cpu };
    passes.off = step.off;
    QnStatus st = qn_pipeline_run(step.graph, &passes);
    QN_TRY_DONE(st);
    j->store = qn_store_new(r->device);
    if (!j->store)
        QN_TRY_DONE(QN_ENOMEM);
    QN_TRY_DONE(qn_store_add(j->store, step.graph));
    QN_TRY_DONE(qn_store_alloc(j->store));
    QN_TRY_DONE(qn_store_fill(j->store, 1));
    QN_TRY_DONE(qn_plan_new(step.graph, r->device, j->store, &o, &j->plan));
    QN_TRY_DONE(make_inputs(j));
done:
    if (st != QN_OK)
        job_fini(j);
    return st;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n ? x[n / 2] : 0;
}

static uint64_t step_ns(const QnPlan *p, int64_t i)
{
    return qn_plan_step(p, i).ns;
}

/* What a run takes when nothing else disturbs it: a tenth are faster. */
static double quiet(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n ? x[n / 10] : 0;
}

/* Runs for about `seconds`, a few times at least. s[i] is the time of step i, *gap_s what a run
 * takes besides its steps. */
static QnStatus job_time(const Job *j, double seconds, double *s, double *gap_s)
{
    int64_t n = qn_plan_n_steps(j->plan), first = 0, one = 0;
    double(*runs)[RUNS] = qn_alloc_array((size_t)n + 1, sizeof *runs), gap[RUNS];
    uint64_t *before = qn_alloc_array((size_t)n + 1, sizeof *before);
    QnStatus st = runs && before ? run_once(j, &first) : QN_ENOMEM; /* touches the memory */
    if (st == QN_OK)
        st = run_once(j, &one);
    double each = fmax(1e-9 * (double)QN_MIN(first, one), 1e-7);
    int n_runs = (int)fmax(3, fmin(RUNS, seconds / each));
    int times = (int)fmax(1, fmin(1000, seconds / n_runs / each));
    for (int c = 0; st == QN_OK && c < n_runs; c++) {
        int64_t ns = 0;
        for (int64_t i = 0; i < n; i++)
            before[i] = step_ns(j->plan, i);
        for (int k = 0; st == QN_OK && k < times; k++)
            st = run_once(j, &ns);
        gap[c] = 1e-9 * (double)ns / times;
        for (int64_t i = 0; i < n; i++) {
            runs[i][c] = 1e-9 * (double)(step_ns(j->plan, i) - before[i]) / times;
            gap[c] -= runs[i][c];
        }
    }
    for (int64_t i = 0; st == QN_OK && i < n; i++)
        s[i] = quiet(runs[i], n_runs);
    *gap_s = st == QN_OK ? fmax(0, quiet(gap, n_runs)) : 0;
    qn_free(runs);
    qn_free(before);
    return st;
}

/* ---- the nets ---- */

static QnStatus take_samples(Run *r, const Job *j, const QnCountRequest *request, const double *s,
                             int net)
{
    for (int64_t i = 0; i < qn_plan_n_steps(j->plan); i++) {
        QnPlanStep step = qn_plan_step(j->plan, i);
        QnWork w = qn_work_of(&step, request);
        if (!(w.flops + w.read + w.written > 0))
            continue;
        QN_TRY(QN_GROW(r->samples, r->cap, r->n));
        r->samples[r->n++] = (QnCalibSample){ w, s[i], net };
    }
    return QN_OK;
}

static QnStatus measure_net(Run *r, const QnModel *m, QnCountRequest request, double seconds)
{
    QnStep step;
    Job j;
    request.here = r->device;
    request.choices = r->o->choices;
    QN_TRY(qn_step_build(m, &request, 0, &step));
    QN_TRY(job_init(&j, r, step));
    int64_t n = qn_plan_n_steps(j.plan);
    double *s = qn_alloc_array((size_t)n + 1, sizeof *s);
    NetTime *t = &r->nets[r->n_nets];
    *t = (NetTime){ .n_steps = n };
    QnStatus st = s ? job_time(&j, seconds, s, &t->gap_s) : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < n; i++)
        t->kernels_s += s[i];
    if (st == QN_OK)
        st = take_samples(r, &j, &request, s, r->n_nets);
    r->n_nets += st == QN_OK;
    qn_free(s);
    job_fini(&j);
    return st;
}

static void tell(const Run *r, double part, const char *what)
{
    if (r->o->progress)
        r->o->progress(r->o->ctx, part, what);
}

/* With one thread the time that others take is not counted, here neither. */
static int64_t budget_ns(const Run *r)
{
    return r->device->env.n_threads == 1 ? qn_clock_cpu_ns() : qn_clock_ns();
}

/* Half of the time of each goes to making its plan, so only a part of what is left is measured in.
 */
static QnStatus measure_nets(Run *r, int64_t start)
{
    const QnModel *m;
    QnCountRequest request;
    int n = 0;
    while (n < NETS && qn_calib_net(n, &m, &request))
        n++;
    for (int i = 0; i < n; i++) {
        qn_calib_net(i, &m, &request);
        double used = 1e-9 * (double)(budget_ns(r) - start), left = 0.97 * r->o->seconds - used;
        if (left < 0.2 && i >= 3)
            break;
        tell(r, used / r->o->seconds, m->name);
        QN_TRY(measure_net(r, m, request, fmax(0.05, 0.6 * left / (n - i))));
    }
    return QN_OK;
}

QnStatus qn_calibrate_step(QnDevice *device, const QnChoices *choices, const QnModel *m,
                           const QnCountRequest *request, double seconds, double *step_s)
{
    QnCalibrateOptions o = { .choices = choices };
    Run *r = qn_alloc(sizeof *r);
    if (!r)
        return QN_ENOMEM;
    *r = (Run){ .device = device, .o = &o };
    QnStatus st = measure_net(r, m, *request, seconds);
    *step_s = r->nets[0].kernels_s + r->nets[0].gap_s;
    qn_free(r->samples);
    qn_free(r);
    return st;
}

/* ---- curves: single operators over sizes ---- */

static QnStatus measure_graph(Run *r, QnGraph *g, const char *op, double size, double seconds)
{
    Job j;
    double s[8], gap;
    QnStatus st = qn_graph_check(g);
    if (st != QN_OK) {
        qn_graph_free(g);
        return st;
    }
    QN_TRY(job_init(&j, r, (QnStep){ .graph = g }));
    st = qn_plan_n_steps(j.plan) <= QN_COUNT(s) ? job_time(&j, seconds, s, &gap) : QN_EINTERNAL;
    for (int64_t i = 0; st == QN_OK && i < qn_plan_n_steps(j.plan); i++) {
        QnPlanStep step = qn_plan_step(j.plan, i);
        if (strcmp(step.node->op->name, op) != 0 || r->calib->n_points == QN_CALIB_POINTS)
            continue;
        QnCalibPoint *p = &r->calib->points[r->calib->n_points++];
        *p = (QnCalibPoint){ .size = size,
                             .flops = step.cost.flops,
                             .bytes = step.cost.bytes_read + step.cost.bytes_written,
                             .seconds = s[i] };
        snprintf(p->op, sizeof p->op, "%s", op);
    }
    if (st == QN_OK)
        st = take_samples(r, &j, &(QnCountRequest){ .here = r->device, .choices = r->o->choices },
                          s, -2);
    job_fini(&j);
    return st;
}

static QnStatus measure_product(Run *r, int64_t n, double seconds)
{
    QnGraph *g = qn_graph_new();
    if (!g)
        return QN_ENOMEM;
    QnValue *a = qn_input(g, "a", QN_DTYPE_F32, &QN_SHAPE(n, n)),
            *b = qn_input(g, "b", QN_DTYPE_F32, &QN_SHAPE(n, n));
    qn_graph_output(g, "y", qn_matmul(g, a, b, NULL, false, false));
    return measure_graph(r, g, "matmul", (double)n, seconds);
}

static QnStatus measure_conv(Run *r, int64_t c, double seconds)
{
    QnGraph *g = qn_graph_new();
    if (!g)
        return QN_ENOMEM;
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, c, 28, 28)),
            *w = qn_input(g, "w", QN_DTYPE_F32, &QN_SHAPE(c, c, 3, 3));
    QnConvAttr attr = { .pads = { 4, { 1, 1, 1, 1 } } };
    qn_graph_output(g, "y", qn_conv(g, x, w, NULL, &attr));
    return measure_graph(r, g, "conv", (double)c, seconds);
}

static QnStatus measure_add(Run *r, int64_t bytes, double seconds)
{
    QnGraph *g = qn_graph_new();
    if (!g)
        return QN_ENOMEM;
    QnValue *a = qn_input(g, "a", QN_DTYPE_F32, &QN_SHAPE(bytes / 12)),
            *b = qn_input(g, "b", QN_DTYPE_F32, &QN_SHAPE(bytes / 12));
    qn_graph_output(g, "y", qn_add(g, a, b));
    return measure_graph(r, g, "add", (double)bytes, seconds);
}

static QnStatus measure_curves(Run *r)
{
    double share = 0.15 * r->o->seconds / 16;
    tell(r, 0, "products");
    for (int64_t n = 32; n <= 1024; n *= 2)
        QN_TRY(measure_product(r, n, share));
    tell(r, 0.08, "convolutions");
    for (int64_t c = 16; c <= 256; c *= 2)
        QN_TRY(measure_conv(r, c, share));
    tell(r, 0.16, "memory");
    for (int64_t bytes = 48 << 10; bytes <= 192 << 20; bytes *= 8)
        QN_TRY(measure_add(r, bytes, share));
    return QN_OK;
}

static void set_peaks(QnCalib *c)
{
    double most = 0;
    for (int i = 0; i < c->n_points; i++) {
        const QnCalibPoint *p = &c->points[i];
        c->peak_flops = fmax(c->peak_flops, p->flops / p->seconds);
        if (!strcmp(p->op, "add") && p->size > most) { /* the largest is beyond every cache */
            most = p->size;
            c->bandwidth = p->bytes / p->seconds;
        }
    }
}

/* ---- how far off the fit is, on nets that it has not seen ---- */

static double predict(const Run *r, const QnCalib *c, int net)
{
    double s = c->step_s;
    for (int64_t i = 0; i < r->n; i++)
        if (r->samples[i].net == net)
            s += qn_calib_work(c, &r->samples[i].work).seconds;
    return s;
}

static void set_overhead(const Run *r, QnCalib *c)
{
    double gap[NETS];
    for (int i = 0; i < r->n_nets; i++)
        gap[i] = r->nets[i].gap_s / (double)QN_MAX(1, r->nets[i].n_steps);
    c->node_s = median(gap, r->n_nets);
}

static QnStatus set_spread(const Run *r, QnCalib *c)
{
    QnCalib *other = qn_alloc(sizeof *other);
    double errors[NETS];
    QnStatus st = other ? QN_OK : QN_ENOMEM;
    for (int i = 0; st == QN_OK && i < r->n_nets; i++) {
        *other = *c;
        st = qn_calib_fit(other, r->samples, r->n, i);
        errors[i] = fabs(log(predict(r, other, i) / (r->nets[i].kernels_s + r->nets[i].gap_s)));
    }
    qn_free(other);
    c->median = st == QN_OK ? median(errors, r->n_nets) : 0;
    c->spread = st == QN_OK ? errors[QN_MIN(r->n_nets - 1, (int)(0.8 * r->n_nets))] : 0;
    c->n_steps = r->n_nets;
    return st;
}

QnStatus qn_calibrate(QnDevice *device, const QnCalibrateOptions *o, QnCalib *out)
{
    Run *r = qn_alloc(sizeof *r);
    if (!r)
        return QN_ENOMEM;
    *r = (Run){ .device = device, .o = o, .calib = out };
    *out = (QnCalib){ .device = device };
    QnStatus st = device->backend->is_host && !device->backend->only_counts
                      ? QN_OK
                      : qn_fail(QN_EUNSUPPORTED, "only a device of the host can be measured");
    int64_t start = qn_clock_ns(), budget = budget_ns(r);
    double joules = qn_calib_joules();
    qn_calib_describe(device, out);
    if (st == QN_OK)
        st = measure_curves(r);
    if (st == QN_OK)
        st = measure_nets(r, budget);
    double spent = qn_calib_joules() - joules, seconds = 1e-9 * (double)(qn_clock_ns() - start);
    out->watts = spent > 0 ? spent / seconds : 0;
    tell(r, 0.97, "fit");
    set_peaks(out);
    set_overhead(r, out);
    if (st == QN_OK)
        st = qn_calib_fit(out, r->samples, r->n, -1);
    if (st == QN_OK)
        st = set_spread(r, out);
    if (st == QN_OK)
        st = qn_calib_jpeg(out);
    tell(r, 1, "done");
    qn_free(r->samples);
    qn_free(r);
    return st;
}
