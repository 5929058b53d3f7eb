#include "plan/count.h"

#include "base/str.h"
#include "pass/pipeline.h"
#include "plan/models/recurrent.h"
#include "plan/order.h"
#include "plan/step.h"
#include "rt/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void qn_count_fini(QnCount *c)
{
    qn_free(c->work);
    *c = (QnCount){ 0 };
}

/* ---- one node ---- */

static double dim(const QnShape *s, int i)
{
    i = i < 0 ? s->rank + i : i;
    return i >= 0 && i < s->rank ? (double)s->dim[i] : 1;
}

/* A product of which the flops are known: k follows. */
static void set_product(QnWork *w, QnWorkKind kind, double m, double n, double groups)
{
    w->kind = kind;
    w->m = m;
    w->n = n;
    w->groups = QN_MAX(groups, 1);
    w->k = floor(w->flops / (2 * m * n * w->groups)); /* a bias is half of one more */
}

/* A product of all time steps with the weights between them stands for one a step. */
static int64_t steps_of(const QnNode *node)
{
    const QnNode *of = qn_value_resolve(node->in[1])->node;
    return of->op == &qn_op_state ? qn_recurrent_steps(((const QnStateAttr *)of->attr)->name) : 0;
}

static void set_recurrent(QnWork *w, const QnNode *node, int64_t steps)
{
    const QnShape *y = &node->out[0].type.shape;
    double weight = (double)qn_type_bytes(&node->in[1]->type), n = (double)steps;
    w->count = n;
    w->flops /= n;
    w->read = (w->read - weight) / n + weight;
    w->written /= n;
    set_product(w, QN_WORK_RECURRENT, (double)qn_shape_count(y) / dim(y, -1) / n, dim(y, -1), 1);
}

static void set_matmul(QnWork *w, const QnNode *node)
{
    const QnShape *y = &node->out[0].type.shape;
    double all = (double)qn_shape_count(y), n = dim(y, -1), m = dim(y, -2);
    bool one_matrix = node->in[1]->type.shape.rank <= 2; /* rows of all batches together */
    if (one_matrix)
        set_product(w, QN_WORK_GEMM, all / n, n, 1);
    else
        set_product(w, QN_WORK_GEMM, m, n, all / (m * n));
}

static bool is_winograd(const QnNode *node)
{
    const QnConvAttr *a = node->attr;
    const QnShape *w = &(node->op == &qn_op_conv_dw ? &node->out[0] : node->in[1])->type.shape;
    bool small = w->rank == 4 && w->dim[2] == 3 && w->dim[3] == 3 && a->groups <= 1;
    for (int i = 0; i < a->strides.n; i++)
        small &= a->strides.v[i] == 1;
    for (int i = 0; i < a->dilations.n; i++)
        small &= a->dilations.v[i] == 1;
    return small;
}

/* Convolutions and their gradients by what they write: images (rows x channels) or weights. */
static void set_conv(QnWork *w, const QnNode *node, int64_t groups)
{
    const QnShape *y = &node->out[0].type.shape;
    double all = (double)qn_shape_count(y);
    double per_group = node->op == &qn_op_conv_dw ? dim(y, 1) : dim(y, 1) / (double)groups;
    double n = node->op == &qn_op_conv_dw ? dim(y, 0) / (double)groups : per_group;
    double m = all / (n * (double)groups);
    set_product(w, groups > 1 && per_group < 16 ? QN_WORK_DEPTHWISE : QN_WORK_CONV, m, n,
                (double)groups);
    w->winograd = w->kind == QN_WORK_CONV && is_winograd(node);
}

/* Queries x keys x the width of a head, for each head of each example: what does not fuse attention
 * writes that many scores. */
static void set_attention(QnWork *w, const QnNode *node)
{
    int q = node->op == &qn_op_attention_grad; /* after dy */
    const QnShape *query = &node->in[q]->type.shape, *key = &node->in[q + 1]->type.shape;
    w->kind = QN_WORK_ATTENTION;
    w->m = dim(query, -2);
    w->n = dim(key, -2);
    w->k = dim(query, -1);
    w->groups = (double)qn_shape_count(query) / QN_MAX(w->m * w->k, 1);
}

static int64_t conv_groups(const QnNode *node)
{
    const QnConvAttr *a = node->attr; /* the first member for all three */
    return QN_MAX(a->groups, 1);
}

static bool is_update(const QnNode *node)
{
    static const QnOp *const ops[] = { &qn_op_sgd, &qn_op_adam, &qn_op_adamw, &qn_op_lamb };
    for (int i = 0; i < QN_COUNT(ops); i++)
        if (node->op == ops[i])
            return true;
    return false;
}

/* One value a channel: (C), (C,1,1), (1,C,1,1). */
static bool is_vector(const QnValue *v)
{
    int64_t widest = 1;
    for (int i = 0; i < v->type.shape.rank; i++)
        widest = QN_MAX(widest, v->type.shape.dim[i]);
    return widest > 1 && widest == qn_shape_count(&v->type.shape) &&
           (v->type.shape.rank == 1 || v->type.shape.dim[v->type.shape.rank - 1] == 1);
}

/* x with an operation on it and a vector: x; NULL: it is not such a node. */
static const QnValue *scaled(const QnNode *node, const QnOp *op)
{
    if (node->op != op || node->n_in != 2)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (is_vector(node->in[i]) && !is_vector(node->in[1 - i]))
            return node->in[1 - i];
    return NULL;
}

/* What frameworks have in one kernel with other steps: the statistics of a batch norm, and where
 * its factors are no part of the convolution, its addition. */
static bool is_part_of_norm(const QnNode *node)
{
    const QnValue *x = scaled(node, &qn_op_add);
    return is_vector(&node->out[0]) || (x && scaled(x->node, &qn_op_mul));
}

static bool is_gather(const QnOp *op)
{
    static const QnOp *const ops[] = { &qn_op_embedding,       &qn_op_gather,
                                       &qn_op_gather_elements, &qn_op_gather_nd,
                                       &qn_op_scatter_add,     &qn_op_scatter_elements,
                                       &qn_op_scatter_nd };
    for (int i = 0; i < QN_COUNT(ops); i++)
        if (op == ops[i])
            return true;
    return false;
}

static bool is_sort(const QnOp *op)
{
    return op == &qn_op_sort || op == &qn_op_topk || op == &qn_op_cumsum || op == &qn_op_cumprod;
}

/* What is stored in fewer bits than it is computed with is read in fewer bytes. */
static double bytes_spared(const QnNode *node, const QnCountRequest *r)
{
    double spared = 0;
    for (int i = 0; i < node->n_in; i++) {
        const QnValue *v = node->in[i] ? qn_value_resolve(node->in[i]) : NULL;
        if (!v || v->node->op != &qn_op_state)
            continue;
        const QnStateAttr *a = v->node->attr;
        double bits = qn_cache_is_kept(a->name)                ? r->cache_bits
                      : a->trainable && v->type.shape.rank > 1 ? r->weight_bits
                                                               : 0;
        double share = bits > 0 ? bits / (8.0 * (double)qn_dtype_bytes(v->type.dtype)) : 1;
        bool product =
            node->op == &qn_op_matmul || node->op == &qn_op_conv || node->op == &qn_op_attention;
        if (product && share < 1)
            spared += (1 - share) * (double)qn_type_bytes(&v->type);
    }
    return spared;
}

QnWork qn_work_of(const QnPlanStep *s, const QnCountRequest *r)
{
    const QnOp *op = s->node->op;
    QnWork w = { .kind = QN_WORK_MOVE,
                 .op = op->name,
                 .flops = s->cost.flops,
                 .read = s->cost.bytes_read - bytes_spared(s->node, r),
                 .written = s->cost.bytes_written,
                 .count = 1 };
    int64_t steps = op == &qn_op_matmul ? steps_of(s->node) : 0;
    if (steps > 0)
        set_recurrent(&w, s->node, steps);
    else if (op == &qn_op_matmul)
        set_matmul(&w, s->node);
    else if (op == &qn_op_conv || op == &qn_op_conv_dx || op == &qn_op_conv_dw)
        set_conv(&w, s->node, conv_groups(s->node));
    else if (op == &qn_op_attention || op == &qn_op_attention_grad)
        set_attention(&w, s->node);
    else if (is_update(s->node))
        w.kind = QN_WORK_UPDATE;
    else if (is_gather(op))
        w.kind = QN_WORK_GATHER;
    else if (is_sort(op))
        w.kind = QN_WORK_SORT;
    return w;
}

static bool same_work(const QnWork *a, const QnWork *b)
{
    return a->kind == b->kind && a->op == b->op && a->flops == b->flops && a->read == b->read &&
           a->written == b->written && a->m == b->m && a->n == b->n && a->groups == b->groups;
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

/* idle: parameters that the graph does not have. */
static void count_memory(QnPlanMemory m, const QnCountRequest *r, double idle, QnCount *out)
{
    double low = r->low ? 2 * (out->params - idle) : 0; /* what the graph's weights take */
    out->weights = (r->low == 2 ? 2 : 4) * out->params;
    out->gradients = r->train ? (r->low == 2 ? 2 : 4) * out->trained : 0;
    double held = r->low ? low : 4 * (out->params - idle);
    out->optimizer = r->generate ? 0 : QN_MAX(0, (double)m.state_bytes - held);
    if (r->weight_bits > 0)
        out->weights -= out->matrices * (2 - r->weight_bits / 8);
    out->activations = QN_MAX(0, (double)m.arena_bytes - out->gradients);
    if (r->low != 1)
        return;
    out->optimizer *= 2;
    out->activations = r->train ? QN_MAX(0, (double)m.arena_bytes - low) : (double)m.arena_bytes;
    out->activations += low; /* copies of the weights */
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
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, order[i]);
        QnWork w = qn_work_of(&s, r);
        if (!r->here && w.kind == QN_WORK_MOVE && is_part_of_norm(s.node))
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
    count_memory(m, r, step->idle, out);
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
    QN_TRY(add_launches(m->family, r, out));
    out->examples = (double)r->batch;
    out->tokens = out->examples * (double)qn_step_input(m, r).sequence * (m->family->pairs ? 2 : 1);
    for (int64_t i = 0; i < out->n_work; i++) {
        const QnWork *w = &out->work[i];
        out->flops += w->flops * w->count;
        out->bytes += (w->read + w->written) * w->count;
    }
    return QN_OK;
}
