/* Running a plan: step after step, then the assigns that had to wait; or, on devices that can, all
 * of it replayed as one graph. */
#include "base/clock.h"
#include "rt/plan_impl.h"

#include <stdio.h>
#include <string.h>

static bool is_finite_bits(QnDtype dtype, const void *p, int64_t i)
{
    switch (dtype) {
    case QN_DTYPE_F32: return (((const uint32_t *)p)[i] & 0x7f800000u) != 0x7f800000u;
    case QN_DTYPE_F16: return (((const uint16_t *)p)[i] & 0x7c00u) != 0x7c00u;
    case QN_DTYPE_BF16: return (((const uint16_t *)p)[i] & 0x7f80u) != 0x7f80u;
    case QN_DTYPE_F64:
        return (((const uint64_t *)p)[i] & UINT64_C(0x7ff0000000000000)) !=
               UINT64_C(0x7ff0000000000000);
    default: return true;
    }
}

/* The elements of output k where the host can read them; *copy is the caller's to qn_free. */
static QnStatus on_host(QnDevice *d, const QnPlanRun *s, int k, const void **p, void **copy)
{
    size_t bytes = (size_t)qn_type_bytes(&s->prepared.node->out[k].type);
    *copy = NULL;
    *p = s->out[k];
    if (d->backend->is_host)
        return QN_OK;
    *copy = qn_alloc(bytes + 1);
    if (!*copy)
        return QN_ENOMEM;
    *p = *copy;
    return d->backend->read(d, *copy, s->out[k], bytes);
}

static QnStatus check_finite(QnDevice *d, const QnPlanRun *s)
{
    const QnNode *n = s->prepared.node;
    QnStatus st = QN_OK;
    for (int k = 0; st == QN_OK && k < n->n_out; k++) {
        const QnType *t = &n->out[k].type;
        int64_t count = qn_dtype_is_float(t->dtype) ? qn_shape_count(&t->shape) : 0;
        const void *p;
        void *copy;
        if (!count)
            continue;
        st = on_host(d, s, k, &p, &copy);
        for (int64_t i = 0; st == QN_OK && i < count; i++) {
            char text[QN_TYPE_TEXT_BYTES];
            if (!is_finite_bits(t->dtype, p, i))
                st = qn_fail(QN_ENUMERIC,
                             "output %d, %s, is not finite at element %lld (all steps before "
                             "were finite)",
                             k, qn_type_text(t, text), (long long)i);
        }
        qn_free(copy);
    }
    return st;
}

static void poison_outputs(const QnPlan *p, const QnPlanRun *s)
{
    const QnNode *n = s->prepared.node;
    for (int i = 0; i < n->n_out; i++) {
        const QnBlock *k = &p->blocks.blocks[p->blocks.of[n->out[i].id]];
        if (k->place == QN_PLACE_ARENA && k->first == n->id)
            memset(s->out[i], 0xff, (size_t)k->bytes); /* NaN in every float type */
    }
    if (s->workspace)
        memset(s->workspace, 0xff, s->prepared.workspace_bytes);
}

static void poison_dead(const QnPlan *p, int64_t at)
{
    for (int64_t i = 0; i < p->blocks.n; i++) {
        const QnBlock *k = &p->blocks.blocks[i];
        if (k->place == QN_PLACE_ARENA && k->last == at)
            memset(p->base + k->offset, 0xff, (size_t)k->bytes);
    }
}

static int64_t profile_ns(const QnPlan *p)
{
    return p->options.profile_cpu ? qn_clock_cpu_ns() : p->options.profile ? qn_clock_ns() : 0;
}

static QnStatus run_step(QnPlan *p, QnPlanRun *s)
{
    const QnKernel *k = s->prepared.kernel;
    int64_t t = profile_ns(p);
    QnStatus st = k->run(&s->prepared, s->in, s->out, s->workspace);
    if (st == QN_OK && p->options.profile && p->device->backend->sync)
        st = p->device->backend->sync(p->device);
    if (st == QN_OK && p->options.check_finite && !p->device->backend->only_counts)
        st = check_finite(p->device, s);
    if (st != QN_OK) {
        const QnNode *n = s->prepared.node;
        return qn_fail_prefix("node %s (%s)", n->name ? n->name : n->op->name, k->name);
    }
    if (p->options.profile || p->options.profile_cpu) {
        s->ns += (uint64_t)(profile_ns(p) - t);
        s->runs++;
    }
    return QN_OK;
}

static QnStatus run_batch(QnPlan *p, const QnBatch *b)
{
    const QnNode *n = p->steps[b->first].prepared.node;
    if (p->device->backend->batch_run(p->device, b->launch) == QN_OK)
        return QN_OK;
    return qn_fail_prefix("node %s and %lld after it", n->name ? n->name : n->op->name,
                          (long long)b->n - 1);
}

static QnStatus run_all(QnPlan *p)
{
    bool poison = p->options.poison && p->device->backend->is_host;
    bool batches = !p->options.profile && !p->options.profile_cpu && !p->options.check_finite;
    for (int64_t i = 0; i < p->n_steps; i++) {
        QnPlanRun *s = &p->steps[i];
        const QnBatch *batch = batches ? qn_batch_at(p, i) : NULL;
        if (batch) {
            QN_TRY(run_batch(p, batch));
            i += batch->n - 1;
            continue;
        }
        if (poison)
            poison_outputs(p, s);
        QN_TRY(run_step(p, s));
        if (poison)
            poison_dead(p, s->prepared.node->id);
    }
    for (int64_t i = 0; i < p->n_copies; i++) {
        const QnPlanCopy *c = &p->copies[i];
        if (c->src != c->dst)
            QN_TRY(p->device->backend->copy(p->device, c->dst, c->src, c->bytes));
    }
    return QN_OK;
}

/* ---- the whole run as one graph of the device ---- */

static bool wants_capture(QnPlan *p)
{
    QnPlanCapture *c = &p->capture;
    bool never = !p->device->backend->capture_begin || p->options.profile ||
                 p->options.no_capture || p->options.check_finite;
    if (never || c->is_tried || c->n_runs++ == 0)
        return false;
    c->is_tried = true;
    for (int64_t i = 0; i < p->n_steps; i++) {
        const QnKernel *k = p->steps[i].prepared.kernel;
        const QnNode *n = p->steps[i].prepared.node;
        if (k->flags & QN_KERNEL_WAITS) {
            snprintf(c->reason, sizeof c->reason, "node %s runs by %s, which waits for the device",
                     n->name ? n->name : n->op->name, k->name);
            return false;
        }
    }
    return true;
}

/* Failing costs time alone: steps are then launched one by one. */
static void capture(QnPlan *p)
{
    const QnBackend *b = p->device->backend;
    QnPlanCapture *c = &p->capture;
    void *graph = NULL;
    QnStatus st = b->capture_begin(p->device);
    if (st == QN_OK) {
        st = run_all(p);
        if (st != QN_OK)
            snprintf(c->reason, sizeof c->reason, "%s", qn_error_last()->text);
        QnStatus end = b->capture_end(p->device, &graph);
        st = st != QN_OK ? st : end;
    }
    if (st == QN_OK) {
        c->graph = graph;
        return;
    }
    if (graph)
        b->capture_free(p->device, graph);
    if (!c->reason[0])
        snprintf(c->reason, sizeof c->reason, "%s", qn_error_last()->text);
    qn_error_clear();
}

QnStatus qn_plan_run(QnPlan *p)
{
    if (wants_capture(p))
        capture(p);
    return p->capture.graph ? p->device->backend->replay(p->device, p->capture.graph) : run_all(p);
}

QnStatus qn_plan_run_checked(QnPlan *p)
{
    bool before = p->options.check_finite;
    p->options.check_finite = true;
    QnStatus st = run_all(p);
    p->options.check_finite = before;
    return st;
}
