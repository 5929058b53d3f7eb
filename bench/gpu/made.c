/* From a graph to runs of its plan. */
#include "gpu.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "ops/ops.h"
#include "pass/pipeline.h"

#include <math.h>
#include <string.h>

enum { MAX_RUNS = 10000 };

QnStatus bench_wait(Bench *b)
{
    const QnBackend *k = b->device->backend;
    return k->sync ? k->sync(b->device) : QN_OK;
}

QnStatus made_begin(Made *m)
{
    *m = (Made){ .g = qn_graph_new(), .begin_ns = qn_clock_ns() };
    return m->g ? QN_OK : QN_ENOMEM;
}

void made_free(Made *m)
{
    qn_plan_free(m->plan);
    qn_store_free(m->store);
    qn_graph_free(m->g);
    *m = (Made){ 0 };
}

QnValue *made_data(Made *m, const char *name, QnDtype dtype, const QnShape *s, double lo, double hi)
{
    QnStateAttr a = { .name = name, .dtype = dtype, .init = QN_INIT_UNIFORM, .a = lo, .b = hi };
    a.dims.n = s->rank;
    memcpy(a.dims.d, s->dim, (size_t)s->rank * sizeof a.dims.d[0]);
    if (!qn_dtype_is_float(dtype) && m->n_whole < MAX_WHOLE) {
        a.init = QN_INIT_ZEROS;
        m->whole[m->n_whole++] = (Whole){ name, lo, hi };
    }
    return qn_state(m->g, &a);
}

static QnStatus fill_whole(Bench *b, Made *m, const Whole *r)
{
    const QnSlot *slot = qn_store_find(m->store, r->name);
    if (!slot) /* nothing reads it */
        return QN_OK;
    const QnType *t = qn_slot_type(slot);
    int64_t n = qn_shape_count(&t->shape);
    size_t bytes = (size_t)qn_type_bytes(t);
    double *x = qn_alloc_array((size_t)n + 1, sizeof *x);
    void *raw = qn_alloc(bytes + 1);
    QnRng rng;
    QnStatus st = x && raw ? QN_OK : QN_ENOMEM;
    qn_rng_init(&rng, 5, 0);
    for (int64_t i = 0; st == QN_OK && i < n; i++)
        x[i] = r->lo + (double)qn_rng_below(&rng, (uint64_t)(r->hi - r->lo) + 1);
    if (st == QN_OK && !b->device->backend->only_counts) {
        qn_dtype_from_f64(t->dtype, x, raw, n);
        st = qn_store_write(m->store, slot, raw);
    }
    qn_free(raw);
    qn_free(x);
    return st;
}

QnStatus made_plan(Bench *b, Made *m, bool no_capture)
{
    QnPipelineOptions o = qn_device_passes(b->device);
    o.keep_inputs = true; /* a sample has values for those too that only a gradient reads */
    QnPlanOptions how = { .no_capture = no_capture };
    QN_TRY(qn_graph_check(m->g));
    QN_TRY(qn_pipeline_run(m->g, &o));
    m->store = qn_store_new(b->device);
    QN_TRY(m->store ? QN_OK : QN_ENOMEM);
    QN_TRY(qn_store_add(m->store, m->g));
    QN_TRY(qn_store_alloc(m->store));
    if (!b->device->backend->only_counts)
        QN_TRY(qn_store_fill(m->store, 1));
    for (int i = 0; i < m->n_whole; i++)
        QN_TRY(fill_whole(b, m, &m->whole[i]));
    return qn_plan_new(m->g, b->device, m->store, &how, &m->plan);
}

QnStatus made_finish(Bench *b, Made *m, bool no_capture)
{
    QN_TRY(made_plan(b, m, no_capture));
    QN_TRY(qn_plan_run(m->plan));
    QN_TRY(bench_wait(b));
    m->first_s = (double)(qn_clock_ns() - m->begin_ns) * 1e-9;
    return QN_OK;
}

QnStatus made_time(Bench *b, Made *m, double seconds, double *ns, double *host)
{
    *ns = *host = INFINITY;
    int warm_up = b->o.quick ? 1 : 2, least = b->o.quick ? 2 : 3;
    for (int i = 0; i < warm_up; i++) /* the second run is captured */
        QN_TRY(qn_plan_run(m->plan));
    QN_TRY(bench_wait(b));
    int64_t end = qn_clock_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < least || (qn_clock_ns() < end && i < MAX_RUNS); i++) {
        int64_t t = qn_clock_ns();
        QN_TRY(qn_plan_run(m->plan));
        *host = fmin(*host, (double)(qn_clock_ns() - t));
        QN_TRY(bench_wait(b));
        *ns = fmin(*ns, (double)(qn_clock_ns() - t));
    }
    return QN_OK;
}

const char *made_how(const Made *m)
{
    const char *reason = "";
    return qn_plan_is_captured(m->plan, &reason) ? "as one graph"
           : reason && reason[0]                 ? reason
                                                 : "one by one";
}

bool made_is_product(const char *op)
{
    return !strncmp(op, "matmul", 6) || !strncmp(op, "conv", 4) || !strncmp(op, "attention", 9);
}

QnCost made_cost(const Made *m, bool products)
{
    QnCost all = { 0 };
    for (int64_t i = 0; i < qn_plan_n_steps(m->plan); i++) {
        QnPlanStep s = qn_plan_step(m->plan, i);
        if (products && !made_is_product(s.node->op->name))
            continue;
        all.flops += s.cost.flops;
        all.bytes_read += s.cost.bytes_read;
        all.bytes_written += s.cost.bytes_written;
    }
    return all;
}
