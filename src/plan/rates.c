#include "plan/rates.h"

#include "base/clock.h"
#include "ir/graph.h"
#include "ops/ops.h"
#include "rt/plan.h"

#include <math.h>
#include <string.h>

enum { BYTES = 32 << 20, TIMES = 4 };

static QnStatus wait(QnDevice *d)
{
    return d->backend->sync ? d->backend->sync(d) : QN_OK;
}

/* ---- copies ---- */

typedef struct Copies {
    QnDevice *d;
    char *a, *b, *host, *pinned; /* pinned: NULL without a second queue */
    void *event;
} Copies;

static QnStatus copy_within(Copies *c)
{
    QN_TRY(c->d->backend->copy(c->d, c->b, c->a, BYTES));
    return wait(c->d);
}

static QnStatus copy_to(Copies *c)
{
    const QnBackend *b = c->d->backend;
    if (!c->pinned) {
        QN_TRY(b->write(c->d, c->a, c->host, BYTES));
        return wait(c->d);
    }
    QN_TRY(b->copy_ahead(c->d, c->a, c->pinned, BYTES));
    QN_TRY(b->event_record(c->d, QN_QUEUE_COPY, c->event));
    return b->event_wait(c->d, c->event);
}

static QnStatus copy_from(Copies *c)
{
    return c->d->backend->read(c->d, c->host, c->a, BYTES);
}

/* The best of some, after one that touches what is new. */
static QnStatus measure(Copies *c, QnStatus (*copy)(Copies *c), double bytes, double *rate)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < TIMES + 1; i++) {
        int64_t t = qn_clock_ns();
        QN_TRY(copy(c));
        t = qn_clock_ns() - t;
        best = i ? QN_MIN(best, QN_MAX(t, 1)) : best;
    }
    *rate = bytes / (1e-9 * (double)best);
    return QN_OK;
}

static QnStatus acquire(Copies *c)
{
    const QnBackend *b = c->d->backend;
    c->a = b->alloc(c->d, BYTES); /* of its own memory, whatever is left of it for plans */
    c->b = b->alloc(c->d, BYTES);
    c->host = qn_alloc(BYTES);
    if (!c->a || !c->b)
        return qn_fail(QN_ENOMEM, "no %d bytes of the device to measure with", 2 * BYTES);
    if (!c->host)
        return QN_ENOMEM;
    memset(c->host, 1, BYTES);
    if (!b->copy_ahead)
        return QN_OK;
    QN_TRY(b->event_new(c->d, &c->event));
    c->pinned = b->host_alloc(c->d, BYTES);
    return c->pinned ? QN_OK : QN_ENOMEM;
}

static QnStatus measure_copies(QnDevice *d, QnDeviceRates *out)
{
    Copies c = { .d = d };
    QnStatus st = acquire(&c);
    if (st == QN_OK)
        st = measure(&c, copy_to, BYTES, &out->to);
    if (st == QN_OK)
        st = measure(&c, copy_within, 2.0 * BYTES, &out->copy);
    if (st == QN_OK)
        st = measure(&c, copy_from, BYTES, &out->from);
    if (c.pinned)
        d->backend->host_free(d, c.pinned, BYTES);
    if (c.event)
        d->backend->event_free(d, c.event);
    if (c.a)
        d->backend->free(d, c.a, BYTES);
    if (c.b)
        d->backend->free(d, c.b, BYTES);
    qn_free(c.host);
    return st;
}

/* ---- products ---- */

static QnStatus time_product(QnDevice *d, int64_t n, int64_t *ns, const char **kernel)
{
    QnGraph *g = qn_graph_new();
    QnPlan *p = NULL;
    size_t bytes = (size_t)(n * n) * sizeof(float);
    float *x = qn_alloc(bytes);
    QnStatus st = g && x ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    QnValue *a = qn_input(g, "a", QN_DTYPE_F32, &QN_SHAPE(n, n));
    QnValue *b = qn_input(g, "b", QN_DTYPE_F32, &QN_SHAPE(n, n));
    QN_TRY_DONE(qn_graph_output(g, "y", qn_matmul(g, a, b, NULL, false, false)));
    QN_TRY_DONE(qn_graph_check(g));
    QN_TRY_DONE(qn_plan_new(g, d, NULL, &(QnPlanOptions){ .no_capture = true }, &p));
    *kernel = qn_plan_step(p, 0).kernel->name;
    for (int64_t i = 0; i < n * n; i++)
        x[i] = (float)(i % 13) / 13;
    *ns = INT64_MAX;
    for (int i = 0; i < TIMES; i++) {
        QN_TRY_DONE(qn_plan_write(p, "a", x, bytes));
        QN_TRY_DONE(qn_plan_write(p, "b", x, bytes));
        QN_TRY_DONE(wait(d));
        int64_t t = qn_clock_ns();
        QN_TRY_DONE(qn_plan_run(p));
        QN_TRY_DONE(wait(d));
        *ns = QN_MIN(*ns, QN_MAX(qn_clock_ns() - t, 1));
    }
done:
    qn_plan_free(p);
    qn_graph_free(g);
    qn_free(x);
    return st;
}

/* Twice the size until it takes long enough to be told from what surrounds it. */
static QnStatus measure_product(QnDevice *d, QnDeviceRates *out)
{
    enum { LEAST_NS = 4000000, MOST = 4096 };
    int64_t ns = 0;
    for (int64_t n = 256; n <= MOST && ns < LEAST_NS; n *= 2) {
        QN_TRY(time_product(d, n, &ns, &out->multiplies));
        double rate = 2.0 * (double)n * (double)n * (double)n / (1e-9 * (double)ns);
        out->multiply = fmax(out->multiply, rate);
    }
    return QN_OK;
}

QnStatus qn_device_measure(QnDevice *d, QnDeviceRates *out)
{
    size_t peak = d->peak_bytes, limit = d->limit_bytes;
    *out = (QnDeviceRates){ 0 };
    d->limit_bytes = 0; /* it is the device's own memory that is measured, and no plan's */
    QnStatus st = measure_copies(d, out);
    if (st == QN_OK)
        st = measure_product(d, out);
    d->limit_bytes = limit;
    d->peak_bytes = peak;
    return st;
}
