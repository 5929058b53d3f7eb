/* quern_bench_gpu [DEVICE] [--seconds S]
 *
 * What a device does, in one call: the host's work for a launch, copies, memory-bound and
 * compute-bound kernels beside the device's own copy, and training steps. DEVICE is as in --device
 * ("opencl:0", "cuda:0"); on "null" everything runs to its end and times mean nothing. Prints a
 * short table. */
#include "base/clock.h"
#include "base/str.h"
#include "nn/optim.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Bench {
    QnDevice *device;
    double seconds; /* for each row */
    double copy;    /* bytes a second, read and written, of the device's own copies */
} Bench;

static QnStatus wait_for(QnDevice *d)
{
    return d->backend->sync ? d->backend->sync(d) : QN_OK;
}

static void row(const char *what, double per_second, const char *unit, double ns, const char *more)
{
    char rate[QN_STR_NUMBER], time[QN_STR_NUMBER];
    printf("%-34s %14s %12s  %s\n", what,
           per_second > 0 ? qn_str_unit(rate, per_second, unit) : "-",
           qn_str_duration(time, (int64_t)ns), more);
}

/* ---- plans ---- */

/* Best time of one run, all of it; *host: of the calls alone, before the device is done. */
static QnStatus time_plan(const Bench *b, QnPlan *p, double *ns, double *host)
{
    int64_t end = qn_clock_ns() + (int64_t)(b->seconds * 1e9);
    *ns = *host = 1e30;
    for (int i = 0; i < 3; i++) /* what is compiled, loaded and captured first */
        QN_TRY(qn_plan_run(p));
    QN_TRY(wait_for(b->device));
    for (int i = 0; i < 5 || (qn_clock_ns() < end && i < 10000); i++) {
        int64_t t = qn_clock_ns();
        QN_TRY(qn_plan_run(p));
        *host = QN_MIN(*host, (double)(qn_clock_ns() - t));
        QN_TRY(wait_for(b->device));
        *ns = QN_MIN(*ns, (double)(qn_clock_ns() - t));
    }
    return QN_OK;
}

typedef struct Made {
    QnGraph *g;
    QnStore *store;
    QnPlan *plan;
} Made;

static void made_free(Made *m)
{
    qn_plan_free(m->plan);
    qn_store_free(m->store);
    qn_graph_free(m->g);
}

/* Passes, states, plan; inputs are zeros. */
static QnStatus made_finish(const Bench *b, Made *m, bool no_capture)
{
    QnPipelineOptions o = qn_device_passes(b->device);
    QnPlanOptions how = { .no_capture = no_capture };
    QN_TRY(qn_pipeline_run(m->g, &o));
    m->store = qn_store_new(b->device);
    QN_TRY(m->store ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_store_add(m->store, m->g));
    QN_TRY(qn_store_alloc(m->store));
    QN_TRY(qn_store_fill(m->store, 1));
    QN_TRY(qn_plan_new(m->g, b->device, m->store, &how, &m->plan));
    QN_GRAPH_EACH(m->g, n)
    {
        if (!(n->op->traits & QN_INPUT))
            continue;
        size_t bytes = (size_t)qn_type_bytes(&n->out[0].type);
        void *zeros = qn_alloc(bytes + 1);
        QnStatus st = zeros ? qn_plan_write(m->plan, qn_node_label(n), zeros, bytes) : QN_ENOMEM;
        qn_free(zeros);
        QN_TRY(st);
    }
    return QN_OK;
}

/* ---- rows ---- */

/* A chain of kernels with next to nothing to do, each of its own. */
static QnStatus chain(Bench *b, Made *m, bool no_capture)
{
    enum { N = 200 };
    double ns, host;
    char more[128];
    const char *reason = "";
    QnValue *x = qn_input(m->g, "x", QN_DTYPE_F32, &QN_SHAPE(64, 64));
    for (int i = 0; i < N; i++)
        x = qn_transpose(m->g, qn_exp(m->g, x), QN_INTS(1, 0));
    QN_TRY(qn_graph_output(m->g, "y", x));
    QN_TRY(made_finish(b, m, no_capture));
    QN_TRY(time_plan(b, m->plan, &ns, &host));
    int64_t n = qn_plan_n_steps(m->plan);
    bool captured = qn_plan_is_captured(m->plan, &reason);
    snprintf(more, sizeof more, "%lld launches, host work %.2f us each; %s", (long long)n,
             host / 1e3 / (double)n,
             captured    ? "as one graph"
             : reason[0] ? reason
                         : "one by one");
    row("small kernels", 0, "", ns / (double)n, more);
    return QN_OK;
}

static QnStatus launches(Bench *b, Made *m)
{
    return chain(b, m, true);
}

static QnStatus replays(Bench *b, Made *m)
{
    return b->device->backend->capture_begin ? chain(b, m, false) : QN_OK;
}

static QnStatus copies(Bench *b, Made *m)
{
    enum { BYTES = 64 << 20 };
    const QnBackend *k = b->device->backend;
    void *p = qn_device_alloc(b->device, BYTES), *q = qn_device_alloc(b->device, BYTES);
    char *host = qn_alloc(BYTES);
    QnStatus st = p && q && host ? QN_OK : QN_ENOMEM;
    (void)m;
    for (int how = 0; st == QN_OK && how < 3; how++) {
        static const char *const names[] = { "host to device", "device to host", "device copy" };
        int64_t best = INT64_MAX;
        for (int i = 0; st == QN_OK && i < 5; i++) {
            int64_t t = qn_clock_ns();
            st = how == 0   ? k->write(b->device, p, host, BYTES)
                 : how == 1 ? k->read(b->device, host, p, BYTES)
                            : k->copy(b->device, q, p, BYTES);
            if (st == QN_OK)
                st = wait_for(b->device);
            best = QN_MIN(best, qn_clock_ns() - t);
        }
        double rate = (how == 2 ? 2.0 : 1.0) * BYTES / ((double)best * 1e-9);
        b->copy = how == 2 ? rate : b->copy;
        row(names[how], rate, "B/s", (double)best, "64 MiB");
    }
    qn_free(host);
    qn_device_free(b->device, q, BYTES);
    qn_device_free(b->device, p, BYTES);
    return st;
}

static QnStatus one_kernel(Bench *b, Made *m, const char *what, QnValue *y)
{
    double ns, host;
    char more[128];
    QN_TRY(qn_graph_output(m->g, "y", y));
    QN_TRY(made_finish(b, m, false));
    QN_TRY(time_plan(b, m->plan, &ns, &host));
    QnCost cost = { 0 };
    for (int64_t i = 0; i < qn_plan_n_steps(m->plan); i++) {
        QnCost c = qn_plan_step(m->plan, i).cost;
        cost.flops += c.flops;
        cost.bytes_read += c.bytes_read;
        cost.bytes_written += c.bytes_written;
    }
    double bytes = (cost.bytes_read + cost.bytes_written) / (ns * 1e-9);
    bool bound = cost.flops / ns > 10 * bytes * 1e-9; /* by arithmetic */
    const char *kernel = qn_plan_step(m->plan, 0).kernel->name;
    if (bound)
        snprintf(more, sizeof more, "%s", kernel);
    else
        snprintf(more, sizeof more, "%s, %.0f %% of the device's copy", kernel,
                 bytes / b->copy * 100);
    row(what, bound ? cost.flops / (ns * 1e-9) : bytes, bound ? "FLOP/s" : "B/s", ns, more);
    return QN_OK;
}

static QnStatus add(Bench *b, Made *m)
{
    QnValue *x = qn_input(m->g, "x", QN_DTYPE_F32, &QN_SHAPE(4096, 2048));
    QnValue *z = qn_input(m->g, "z", QN_DTYPE_F32, &QN_SHAPE(4096, 2048));
    return one_kernel(b, m, "add f32[4096,2048]", qn_add(m->g, x, z));
}

static QnStatus softmax(Bench *b, Made *m)
{
    QnValue *x = qn_input(m->g, "x", QN_DTYPE_F32, &QN_SHAPE(4096, 1024));
    return one_kernel(b, m, "softmax f32[4096,1024]", qn_softmax(m->g, x, 1));
}

static QnStatus matmul(Bench *b, Made *m)
{
    QnValue *x = qn_input(m->g, "x", QN_DTYPE_F32, &QN_SHAPE(512, 512));
    QnValue *z = qn_input(m->g, "z", QN_DTYPE_F32, &QN_SHAPE(512, 512));
    return one_kernel(b, m, "matmul f32[512,512]", qn_matmul(m->g, x, z, NULL, false, false));
}

/* A step of a small GPT: forward, backward, AdamW. */
static QnStatus gpt(Bench *b, Made *m)
{
    enum { BATCH = 4, LENGTH = 64 };
    QnGptSpec spec = { .vocab = 256, .window = LENGTH, .layers = 2, .heads = 4, .width = 128 };
    QnNet *net = qn_net_new(m->g, true);
    double ns, host;
    if (!net)
        return QN_ENOMEM;
    QnValue *x = qn_input(m->g, "x", QN_DTYPE_I64, &QN_SHAPE(BATCH, LENGTH));
    QnValue *y = qn_input(m->g, "y", QN_DTYPE_I64, &QN_SHAPE(BATCH * LENGTH));
    QnValue *scores = qn_reshape(m->g, qn_nn_gpt2(net, x, &spec), &QN_SHAPE(BATCH * LENGTH, 256));
    QnValue *loss = qn_cross_entropy(m->g, scores, y, 0, -100, QN_REDUCTION_MEAN);
    QnOptim o = { .name = "adamw", .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8 };
    QnValue *lr = qn_input(m->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(m->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnStatus st = qn_optim_minimise(net, &o, loss, lr, step, NULL);
    qn_net_free(net);
    QN_TRY(st);
    QN_TRY(qn_graph_output(m->g, "loss", loss));
    QN_TRY(made_finish(b, m, false));
    QN_TRY(time_plan(b, m->plan, &ns, &host));
    const char *reason = "";
    char more[256];
    bool captured = qn_plan_is_captured(m->plan, &reason);
    snprintf(more, sizeof more, "%lld steps, host %.2f us each; %s",
             (long long)qn_plan_n_steps(m->plan), host / 1e3 / (double)qn_plan_n_steps(m->plan),
             captured    ? "as one graph"
             : reason[0] ? reason
                         : "one by one");
    row("GPT, 2 layers of 128: a step", BATCH * LENGTH / (ns * 1e-9), "tokens/s", ns, more);
    return QN_OK;
}

static int fail(const char *what)
{
    fprintf(stderr, "quern_bench_gpu: %s: %s\n", what, qn_error_last()->text);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        QnStatus (*run)(Bench *b, Made *m);
    } rows[] = {
        { "launches", launches }, { "replays", replays }, { "copies", copies }, { "add", add },
        { "softmax", softmax },   { "matmul", matmul },   { "gpt", gpt }
    };
    Bench b = { .seconds = 1 };
    const char *device = "opencl:0";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            b.seconds = atof(argv[++i]);
        else
            device = argv[i];
    }
    if (qn_device_open_named(device, NULL, &b.device) != QN_OK)
        return fail(device);
    printf("%s\n", device);
    for (int i = 0; i < QN_COUNT(rows); i++) {
        Made m = { .g = qn_graph_new() };
        QnStatus st = m.g ? rows[i].run(&b, &m) : QN_ENOMEM;
        made_free(&m);
        if (st != QN_OK)
            return fail(rows[i].name);
        fflush(stdout);
    }
    qn_device_close(b.device);
    return 0;
}
