#include "plan/count.h"

#include "base/str.h"
#include "pass/pipeline.h"
#include "plan/backward.h"
#include "plan/order.h"
#include "plan/reorder.h"
#include "plan/step.h"
#include "plan/work.h"
#include "rt/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void qn_count_fini(QnCount *c)
{
    qn_free(c->work);
    *c = (QnCount){ 0 };
}

static bool same_work(const QnWork *a, const QnWork *b)
{
    return a->kind == b->kind && a->op == b->op && a->kernel == b->kernel && a->flops == b->flops &&
           a->read == b->read && a->written == b->written && a->m == b->m && a->n == b->n &&
           a->groups == b->groups;
}

static QnStatus add_work(QnCount *c, const QnWork *w)
{
    for (int64_t i = 0; i < c->n_work; i++) {
        if (same_work(&c->work[i], w)) {
            c->work[i].count += w->count;
            return QN_OK;
        }
    }
    QN_TRY(QN_GROW(c->work, c->cap_work, c->n_work));
    c->work[c->n_work++] = *w;
    return QN_OK;
}

/* ---- one graph ---- */

/* What the graph in 16 bits lacks of mixed precision: the optimizer works in 32 bits, and where it
 * has stepped (or, in inference, at each use) a weight is made 16 bits wide. */
static QnStatus mix_work(const QnPlanStep *s, const QnCountRequest *r, QnWork *w, QnCount *out)
{
    const QnValue *weight = NULL;
    if (w->kind == QN_WORK_UPDATE) {
        w->read *= 2;
        w->written *= 2;
        weight = s->node->in[0];
    } else if (!r->train && (s->node->op == &qn_op_matmul || s->node->op == &qn_op_conv)) {
        weight = s->node->in[1]->node->op == &qn_op_state ? s->node->in[1] : NULL;
    }
    if (!weight)
        return QN_OK;
    double n = (double)qn_shape_count(&weight->type.shape);
    return add_work(out, &(QnWork){ .kind = QN_WORK_MOVE,
                                    .op = "cast",
                                    .flops = n,
                                    .read = 4 * n,
                                    .written = 2 * n,
                                    .count = 1 });
}

static void count_memory(QnPlanMemory m, const QnCountRequest *r, const QnStep *step, QnCount *out)
{
    double width = r->low == 2 ? 2 : 4, held = out->params - step->idle; /* held by the graph */
    double copies = r->low == 1 ? 2 * (held - step->frozen) : 0; /* 16-bit ones of the weights */
    out->weights = width * out->params;
    if (r->low == 1)
        out->weights -= 2 * step->frozen; /* of which there is just one */
    if (r->weight_bits > 0)
        out->weights -= out->matrices * (2 - r->weight_bits / 8);
    out->gradients = r->train ? width * out->trained : 0;
    out->optimizer = r->generate ? 0 : QN_MAX(0, (double)m.state_bytes - (r->low ? 2 : 4) * held);
    out->activations = (double)m.arena_bytes;
    if (r->low == 1) {
        out->optimizer *= 2;
        out->activations += copies - (r->train ? 2 * (held - step->frozen) : 0);
    } else {
        out->activations -= out->gradients;
    }
    out->activations = QN_MAX(0, out->activations);
}

/* Bytes of what earlier steps have left. */
static double cache_bytes(const QnGraph *g, double bits)
{
    double bytes = 0;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op != &qn_op_state || !qn_cache_is_kept(((const QnStateAttr *)n->attr)->name))
            continue;
        const QnType *t = &n->out[0].type;
        bytes += bits > 0 ? bits / 8 * (double)qn_shape_count(&t->shape) : (double)qn_type_bytes(t);
    }
    return bytes;
}

/* halves: all floats of the plan stand for half as many bytes. */
static QnStatus count_plan(const QnPlan *p, const QnCountRequest *r, const QnStep *step,
                           const int64_t *order, QnCount *out)
{
    QnPlanMemory m = qn_plan_memory(p);
    const bool *moved = qn_reorder_moved(step->graph);
    QnBackward back = { 0 };
    if (r->unfused)
        QN_TRY(qn_backward_find(step->graph, &back));
    if (!moved)
        return QN_ENOMEM;
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, order[i]);
        QnWork w = qn_work_of(&s, r);
        bool none = moved[s.node->id] || qn_work_is_part_of_norm(s.node);
        if (back.kernel) {
            none |= back.kernel[s.node->id] != s.node;
            w.read = w.kind == QN_WORK_MOVE && back.read[s.node->id] > 0 ? back.read[s.node->id]
                                                                         : w.read;
        }
        if (!r->here && w.kind == QN_WORK_MOVE && none)
            continue;
        if (step->halves) {
            w.read /= 2;
            w.written /= 2;
        }
        if (r->low == 1)
            QN_TRY(mix_work(&s, r, &w, out));
        if (w.flops + w.read + w.written > 0)
            QN_TRY(add_work(out, &w));
    }
    if (step->halves) {
        m.state_bytes /= 2;
        m.arena_bytes /= 2;
    }
    count_memory(m, r, step, out);
    return QN_OK;
}

/* Passes that have no place on a device without memory, those that eager frameworks lack, and those
 * that the step says are left out. */
static QnStatus run_passes(const QnStep *step, const QnCountRequest *r, QnDevice *d, QnOrder *order)
{
    char off[512];
    if (r->here) {
        QnPipelineOptions here = qn_device_passes(r->here);
        here.off = step->off;
        here.memory_budget_bytes = r->recompute;
        QN_TRY(qn_pipeline_run(step->graph, &here));
        return qn_order_init(order, step->graph);
    }
    QnPipelineOptions o = { .level = QN_O2,
                            .off = off,
                            .memory_budget_bytes = r->recompute, /* a byte: all that can be */
                            .keep = qn_device_has_kernel,
                            .keep_ctx = d };
    snprintf(off, sizeof off, "layout,fuse_conv,schedule%s%s%s%s", r->recompute ? "" : ",recompute",
             r->unfused ? ",fold_scale,fuse,fuse_sum" : "", step->off ? "," : "",
             step->off ? step->off : "");
    QN_TRY(qn_pipeline_run(step->graph, &o));
    QN_TRY(qn_order_init(order, step->graph));
    return qn_str_is_listed(step->off, "schedule") ? QN_OK : qn_pass_schedule(step->graph, &o);
}

static QnStatus count_once(const QnModel *m, const QnCountRequest *r, QnDevice *d, int64_t layers,
                           QnCount *out)
{
    QnStep step = { 0 };
    QnStore *store = NULL;
    QnPlan *plan = NULL;
    QnOrder order = { 0 };
    int64_t *steps = NULL;
    *out = (QnCount){ 0 };
    QnStatus st = qn_step_build(m, r, layers, &step);
    QN_TRY_DONE(st);
    out->params = step.params;
    out->macs = step.macs;
    out->matrices = step.matrices;
    out->tables = step.tables;
    out->trained = step.trained > 0 ? step.trained : step.params;
    out->cache = cache_bytes(step.graph, r->cache_bits);
    QN_TRY_DONE(run_passes(&step, r, d, &order));
    store = qn_store_new(d);
    if (!store)
        QN_TRY_DONE(QN_ENOMEM);
    QN_TRY_DONE(qn_store_add(store, step.graph));
    QN_TRY_DONE(qn_store_alloc(store));
    QN_TRY_DONE(qn_plan_new(step.graph, d, store, NULL, &plan));
    QN_TRY_DONE(qn_order_steps(&order, plan, &steps));
    QN_TRY_DONE(count_plan(plan, r, &step, steps, out));
done:
    qn_free(steps);
    qn_order_fini(&order);
    qn_plan_free(plan);
    qn_store_free(store);
    qn_step_fini(&step);
    if (st != QN_OK)
        qn_count_fini(out);
    return st;
}

/* ---- equal layers: what one more adds, times how many there are ---- */

static double extend(double few, double more, double times)
{
    return QN_MAX(0, few + (more - few) * times);
}

/* few: of two layers, more: of three. */
static QnStatus extend_layers(const QnCount *few, const QnCount *more, int64_t layers, QnCount *out)
{
    double times = (double)(layers - 2);
    *out = (QnCount){ .params = extend(few->params, more->params, times),
                      .macs = extend(few->macs, more->macs, times),
                      .matrices = extend(few->matrices, more->matrices, times),
                      .tables = few->tables,
                      .trained = extend(few->trained, more->trained, times),
                      .cache = extend(few->cache, more->cache, times),
                      .weights = extend(few->weights, more->weights, times),
                      .gradients = extend(few->gradients, more->gradients, times),
                      .optimizer = extend(few->optimizer, more->optimizer, times),
                      .activations = extend(few->activations, more->activations, times) };
    for (int64_t i = 0; i < few->n_work; i++) {
        QnWork w = few->work[i];
        w.count *= 1 - times;
        QN_TRY(add_work(out, &w));
    }
    for (int64_t i = 0; i < more->n_work; i++) {
        QnWork w = more->work[i];
        w.count *= times;
        QN_TRY(add_work(out, &w));
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < out->n_work; i++)
        if (out->work[i].count > 0)
            out->work[kept++] = out->work[i];
    out->n_work = kept;
    return QN_OK;
}

static QnStatus count_layers(const QnModel *m, const QnCountRequest *r, QnDevice *d, int64_t layers,
                             QnCount *out)
{
    QnCount few = { 0 }, more = { 0 };
    QnStatus st = count_once(m, r, d, 2, &few);
    QN_TRY_DONE(st);
    QN_TRY_DONE(count_once(m, r, d, 3, &more));
    QN_TRY_DONE(extend_layers(&few, &more, layers, out));
done:
    qn_count_fini(&few);
    qn_count_fini(&more);
    if (st != QN_OK)
        qn_count_fini(out);
    return st;
}

static QnStatus add_launches(const QnFamily *f, const QnCountRequest *r, QnCount *out)
{
    int64_t each = r->train ? f->train_launches : f->infer_launches;
    QnWork w = { .kind = QN_WORK_MOVE,
                 .count = (double)f->launches + (double)each * (double)r->batch };
    return w.count > 0 ? add_work(out, &w) : QN_OK;
}

static QnStatus check_request(const QnModel *m, const QnCountRequest *r)
{
    if (r->batch < 1 || r->batch > 1 << 24)
        return qn_fail(QN_EARG, "%s: a batch of %lld; expected 1 to 16,777,216", m->name,
                       (long long)r->batch);
    if (r->generate && (r->train || !m->family->generate))
        return qn_fail(QN_EUNSUPPORTED, "%s: %s", m->name,
                       r->train ? "nothing is trained while it generates"
                                : "it does not generate token by token");
    if (r->context < 0 || r->context > 1 << 24)
        return qn_fail(QN_EARG, "%s: a context of %lld tokens; expected 0 to 16,777,216", m->name,
                       (long long)r->context);
    bool bits = r->weight_bits != 0 || r->cache_bits != 0;
    if (bits && (r->low != 2 || !(r->weight_bits >= 0 && r->weight_bits <= 16) ||
                 !(r->cache_bits >= 0 && r->cache_bits <= 16)))
        return qn_fail(QN_EARG,
                       "%s: weights of %g bits and a cache of %g; expected up to 16, beside "
                       "numbers of 16 bits",
                       m->name, r->weight_bits, r->cache_bits);
    return QN_OK;
}

/* The work, not the memory. */
static void repeat(QnCount *c, int64_t times)
{
    if (times < 2)
        return;
    for (int64_t i = 0; i < c->n_work; i++)
        c->work[i].count *= (double)times;
    c->macs *= (double)times;
}

QnStatus qn_count_model(const QnModel *m, const QnCountRequest *r, QnDevice *null_device,
                        QnCount *out)
{
    int64_t layers = m->family->layers ? m->size[m->family->layers - 1] : 0;
    *out = (QnCount){ 0 };
    QN_TRY(check_request(m, r));
    if (layers > 4)
        QN_TRY(count_layers(m, r, null_device, layers, out));
    else
        QN_TRY(count_once(m, r, null_device, 0, out));
    repeat(out, m->family->parts);
    QN_TRY(add_launches(m->family, r, out));
    out->examples = (double)r->batch;
    int64_t length = qn_step_input(m, r).sequence;
    bool own = m->family->items && length == m->family->sequence;
    out->tokens = out->examples * (double)(own ? m->family->items : length);
    out->tokens *= m->family->pairs ? 2 : 1;
    for (int64_t i = 0; i < out->n_work; i++) {
        const QnWork *w = &out->work[i];
        out->flops += w->flops * w->count;
        out->bytes += (w->read + w->written) * w->count;
    }
    return QN_OK;
}
