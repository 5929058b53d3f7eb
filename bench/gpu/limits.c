/* What the device does at most: launches, copies, matrix products. */
#include "gpu.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>

/* ---- the host's work ---- */

/* A chain of kernels with next to nothing to do, each of its own. */
static QnStatus chain(Bench *b, Made *m, bool no_capture)
{
    enum { N = 200 };
    QnValue *x = made_data(m, "x", QN_DTYPE_F32, &QN_SHAPE(64, 64), -1, 1);
    for (int i = 0; i < N; i++)
        x = qn_transpose(m->g, qn_exp(m->g, x), QN_INTS(1, 0));
    QN_TRY(qn_graph_output(m->g, "y", x));
    return made_finish(b, m, no_capture);
}

static QnStatus launches(Bench *b, const char *name, bool no_capture)
{
    double ns, host;
    Made m;
    Result r = bench_result("limits", name);
    QnStatus st = made_begin(&m);
    if (st == QN_OK)
        st = chain(b, &m, no_capture);
    if (st == QN_OK)
        st = made_time(b, &m, b->o.seconds, &ns, &host);
    if (st == QN_OK) {
        double n = (double)qn_plan_n_steps(m.plan);
        r.ns = ns / n;
        snprintf(r.note, sizeof r.note, "%.0f launches, host work %.2f us each; %s", n,
                 host / 1e3 / n, made_how(&m));
        snprintf(r.goal, sizeof r.goal, "< 5 us");
        st = bench_report(b, &r);
    }
    made_free(&m);
    return st;
}

/* ---- copies ---- */

static QnStatus copies(Bench *b)
{
    static const char *const names[] = { "host to device", "device to host", "device copy" };
    const size_t bytes = b->o.quick ? 32 << 20 : 256 << 20;
    const QnBackend *k = b->device->backend;
    void *p = qn_device_alloc(b->device, bytes), *q = qn_device_alloc(b->device, bytes);
    char *host = qn_alloc(bytes);
    QnStatus st = p && q && host ? QN_OK : QN_ENOMEM;
    for (int how = 0; st == QN_OK && how < 3; how++) {
        int64_t best = INT64_MAX;
        for (int i = 0; st == QN_OK && i < 5; i++) {
            int64_t t = qn_clock_ns();
            st = how == 0   ? k->write(b->device, p, host, bytes)
                 : how == 1 ? k->read(b->device, host, p, bytes)
                            : k->copy(b->device, q, p, bytes);
            if (st == QN_OK)
                st = bench_wait(b);
            best = QN_MIN(best, qn_clock_ns() - t);
        }
        Result r = bench_result("limits", names[how]);
        r.ns = (double)QN_MAX(best, 1);
        r.unit = "B/s";
        r.rate = (how == 2 ? 2.0 : 1.0) * (double)bytes / (r.ns * 1e-9);
        snprintf(r.note, sizeof r.note, "%zu MiB%s", bytes >> 20,
                 how == 2 ? ", read and written" : "");
        b->copy = how == 2 ? r.rate : b->copy;
        if (st == QN_OK)
            st = bench_report(b, &r);
    }
    qn_free(host);
    if (q)
        qn_device_free(b->device, q, bytes);
    if (p)
        qn_device_free(b->device, p, bytes);
    return st;
}

/* ---- products ---- */

static QnStatus time_product(Bench *b, QnDtype d, int64_t side, double *flops, double *ns,
                             const char **kernel)
{
    double host;
    Made m;
    QnStatus st = made_begin(&m);
    if (st == QN_OK) {
        QnShape s = QN_SHAPE(side, side);
        QnValue *x = made_data(&m, "x", d, &s, -1, 1), *w = made_data(&m, "w", d, &s, -1, 1);
        st = qn_graph_output(m.g, "y", qn_matmul(m.g, x, w, NULL, false, true));
    }
    if (st == QN_OK)
        st = made_finish(b, &m, false);
    if (st == QN_OK)
        st = made_time(b, &m, b->o.seconds, ns, &host);
    if (st == QN_OK) {
        *flops = made_cost(&m, true).flops;
        *kernel = qn_plan_step(m.plan, 0).kernel->name; /* static */
    }
    made_free(&m);
    return st;
}

/* The largest side that takes no more than a fraction of a second. */
static QnStatus products(Bench *b, QnDtype d)
{
    char name[64];
    double flops = 0, ns = 0;
    const char *kernel = "";
    int64_t most = b->o.quick ? 2048 : 8192, side = 256;
    for (;; side *= 2) {
        QN_TRY(time_product(b, d, side, &flops, &ns, &kernel));
        if (side == most || ns * 8 > b->o.seconds * 1e9)
            break;
    }
    snprintf(name, sizeof name, "product %s %lld^3", qn_dtype_name(d), (long long)side);
    Result r = bench_result("limits", name);
    r.ns = ns;
    r.unit = "FLOP/s";
    r.rate = flops / (ns * 1e-9);
    snprintf(r.note, sizeof r.note, "%s", kernel);
    b->product[d != QN_DTYPE_F32] = r.rate;
    return bench_report(b, &r);
}

static QnStatus f32_product(Bench *b)
{
    return products(b, QN_DTYPE_F32);
}

static QnStatus bf16_product(Bench *b)
{
    return products(b, QN_DTYPE_BF16);
}

static QnStatus direct(Bench *b)
{
    return launches(b, "small kernels", true);
}

static QnStatus replayed(Bench *b)
{
    return b->device->backend->capture_begin ? launches(b, "small kernels, replayed", false)
                                             : QN_OK;
}

/* All of them, whatever rows are wanted: shares need them. */
QnStatus bench_limits(Bench *b)
{
    static const struct {
        const char *name;
        QnStatus (*run)(Bench *b);
    } rows[] = { { "small kernels", direct },
                 { "small kernels, replayed", replayed },
                 { "copies", copies },
                 { "product f32", f32_product },
                 { "product bf16", bf16_product } };
    bench_heading("limits");
    for (int i = 0; i < QN_COUNT(rows); i++) {
        if (rows[i].run(b) != QN_OK)
            QN_TRY(bench_report_failure(b, "limits", rows[i].name));
    }
    return QN_OK;
}
