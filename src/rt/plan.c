#include "rt/plan_impl.h"
#include "ir/reads.h"
#include "rt/memplan.h"

#include <string.h>

/* ---- compile ---- */

static QnStatus select_kernels(QnPlan *p)
{
    p->kernels = qn_arena_array(p->arena, (size_t)p->graph->n_nodes + 1, sizeof *p->kernels);
    if (!p->kernels)
        return QN_ENOMEM;
    QN_GRAPH_EACH(p->graph, n)
    {
        if (qn_reads_is_view(n) || (n->op->traits & (QN_LEAF | QN_EFFECT)))
            continue;
        QN_TRY(qn_select(p->device, n, p->options.choices, &p->kernels[n->id]));
        p->n_steps++;
    }
    return QN_OK;
}

static QnStatus prepare_steps(QnPlan *p)
{
    p->steps = qn_arena_array(p->arena, (size_t)p->n_steps + 1, sizeof *p->steps);
    if (!p->steps)
        return QN_ENOMEM;
    QnPlanRun *s = p->steps;
    int64_t n_done = 0;
    QN_GRAPH_EACH(p->graph, n)
    {
        const QnKernel *k = p->kernels[n->id];
        if (!k)
            continue;
        s->prepared = (QnPrepared){ .kernel = k, .node = n, .env = &p->device->env };
        if (k->prepare && k->prepare(&s->prepared) != QN_OK) {
            p->n_steps = n_done; /* only these have anything to finish */
            return qn_fail_prefix("node %s: %s", n->name ? n->name : n->op->name, k->name);
        }
        s->in = qn_arena_array(p->arena, (size_t)n->n_in + 1, sizeof *s->in);
        s->out = qn_arena_array(p->arena, (size_t)n->n_out + 1, sizeof *s->out);
        s->workspace_life = -1;
        n_done++;
        if (!s->in || !s->out) {
            p->n_steps = n_done;
            return QN_ENOMEM;
        }
        s++;
    }
    return QN_OK;
}

/* Arena offsets of blocks and workspaces. */
static QnStatus place_in_arena(QnPlan *p)
{
    QnBlocks *b = &p->blocks;
    int64_t n = 0, constants = 0;
    QnLife *lives = qn_alloc_array((size_t)(b->n + p->n_steps) + 1, sizeof *lives);
    int64_t *life_of = qn_alloc_array((size_t)b->n + 1, sizeof *life_of);
    QnStatus st = lives && life_of ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    QN_TRY_DONE(qn_constants_place(p, &constants));
    QN_TRY_DONE(qn_batches_find(p, &constants));
    for (int64_t i = 0; i < b->n; i++) {
        QnBlock *k = &b->blocks[i];
        if (k->place == QN_PLACE_ARENA) {
            life_of[i] = n;
            lives[n++] = (QnLife){ .bytes = k->bytes, .first = k->first, .last = k->last };
        }
    }
    for (int64_t i = 0; i < p->n_steps; i++) {
        QnPlanRun *s = &p->steps[i];
        int64_t at = s->prepared.node->id;
        if (!s->prepared.workspace_bytes)
            continue;
        s->workspace_life = n;
        lives[n++] =
            (QnLife){ .bytes = (int64_t)s->prepared.workspace_bytes, .first = at, .last = at };
    }
    QN_TRY_DONE(qn_memplan(lives, n, qn_device_align(p->device), &p->memory.arena_bytes,
                           &p->memory.bound_bytes));
    for (int64_t i = 0; i < b->n; i++) {
        if (b->blocks[i].place == QN_PLACE_ARENA)
            b->blocks[i].offset = lives[life_of[i]].offset;
    }
    for (int64_t i = 0; i < p->n_steps; i++) {
        QnPlanRun *s = &p->steps[i];
        if (s->workspace_life >= 0)
            s->workspace_life = lives[s->workspace_life].offset;
    }
    p->memory.constant_bytes = constants;
    p->memory.state_bytes = p->store ? p->store->bytes : 0;
    p->memory.planned_peak_bytes = p->memory.arena_bytes + constants + p->memory.state_bytes;
done:
    qn_free(lives);
    qn_free(life_of);
    return st;
}

static void *block_ptr(const QnPlan *p, int64_t block)
{
    const QnBlock *k = &p->blocks.blocks[block];
    switch (k->place) {
    case QN_PLACE_ARENA: return p->base + k->offset;
    case QN_PLACE_CONSTANT: return p->constants + k->offset;
    case QN_PLACE_STATE: return qn_store_ptr(p->store, k->slot);
    case QN_PLACE_NOWHERE: return NULL;
    }
    return NULL;
}

static void *value_ptr(const QnPlan *p, const QnValue *v)
{
    return block_ptr(p, p->blocks.of[v->id]);
}

static QnStatus resolve_pointers(QnPlan *p)
{
    for (int64_t i = 0; i < p->n_steps; i++) {
        QnPlanRun *s = &p->steps[i];
        const QnNode *n = s->prepared.node;
        for (int k = 0; k < n->n_in; k++)
            s->in[k] = n->in[k] ? value_ptr(p, n->in[k]) : NULL;
        for (int k = 0; k < n->n_out; k++)
            s->out[k] = value_ptr(p, &n->out[k]);
        s->workspace = s->workspace_life >= 0 ? p->base + s->workspace_life : NULL;
    }
    return qn_constants_write(p);
}

static void add_copy(QnPlan *p, void *dst, const void *src, const QnValue *v)
{
    p->copies[p->n_copies++] = (QnPlanCopy){ dst, src, (size_t)qn_type_bytes(&v->type) };
}

/* Old contents of states first, to where assigns do not reach them. */
static QnStatus list_copies(QnPlan *p)
{
    const QnGraph *g = p->graph;
    const QnBlocks *b = &p->blocks;
    p->copies =
        qn_arena_array(p->arena, (size_t)(2 * g->n_nodes + g->n_outputs) + 1, sizeof *p->copies);
    if (!p->copies)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnValue *v = g->outputs[i].value;
        if (b->copy[i] >= 0)
            add_copy(p, block_ptr(p, b->copy[i]), value_ptr(p, v), v);
    }
    QN_GRAPH_EACH(g, n)
    {
        if (b->via[n->id] >= 0)
            add_copy(p, block_ptr(p, b->via[n->id]), value_ptr(p, n->in[1]), n->in[1]);
    }
    QN_GRAPH_EACH(g, n)
    {
        if (b->role[n->id] != QN_ROLE_COPY)
            continue;
        int64_t via = b->via[n->id];
        const void *src = via >= 0 ? block_ptr(p, via) : value_ptr(p, n->in[1]);
        add_copy(p, value_ptr(p, n->in[0]), src, n->in[0]);
    }
    return QN_OK;
}

static QnStatus name_ports(QnPlan *p)
{
    const QnGraph *g = p->graph;
    p->inputs = qn_arena_array(p->arena, (size_t)g->n_nodes + 1, sizeof *p->inputs);
    p->outputs = qn_arena_array(p->arena, (size_t)g->n_outputs + 1, sizeof *p->outputs);
    if (!p->inputs || !p->outputs)
        return QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        if (n->op->traits & QN_INPUT)
            p->inputs[p->n_inputs++] =
                (QnPlanPort){ qn_node_label(n), value_ptr(p, &n->out[0]), n->out[0].type };
    }
    for (int64_t i = 0; i < g->n_outputs; i++) {
        const QnValue *v = g->outputs[i].value;
        int64_t copy = p->blocks.copy[i];
        void *at = copy >= 0 ? block_ptr(p, copy) : value_ptr(p, v);
        p->outputs[p->n_outputs++] = (QnPlanPort){ g->outputs[i].name, at, v->type };
    }
    return QN_OK;
}

static QnStatus compile(QnPlan *p)
{
    qn_graph_number(p->graph);
    QN_TRY(select_kernels(p));
    p->blocks = (QnBlocks){
        .graph = p->graph, .store = p->store, .kernels = p->kernels, .arena = p->arena
    };
    QN_TRY(qn_blocks_init(&p->blocks));
    QN_TRY(prepare_steps(p));
    QN_TRY(place_in_arena(p));
    p->base = qn_device_alloc(p->device, (size_t)p->memory.arena_bytes);
    if (!p->base)
        return qn_fail_prefix("the plan's activations");
    p->constants = qn_device_alloc(p->device, (size_t)p->memory.constant_bytes);
    if (!p->constants)
        return qn_fail_prefix("the plan's constants");
    QN_TRY(resolve_pointers(p));
    QN_TRY(qn_batches_make(p));
    QN_TRY(list_copies(p));
    return name_ports(p);
}

QnStatus qn_plan_new(QnGraph *g, QnDevice *d, QnStore *store, const QnPlanOptions *options,
                     QnPlan **out)
{
    QN_TRY(qn_graph_check(g));
    if (store && store->n && !store->base)
        return qn_fail(QN_EARG, "the store is not allocated: call qn_store_alloc first");
    QnPlan *p = qn_alloc(sizeof *p);
    if (!p)
        return QN_ENOMEM;
    p->graph = g;
    p->device = d;
    p->store = store;
    if (options)
        p->options = *options;
    p->arena = qn_arena_new();
    QnStatus st = p->arena ? compile(p) : QN_ENOMEM;
    if (st != QN_OK)
        qn_plan_free(p);
    else
        *out = p;
    return st;
}

void qn_plan_free(QnPlan *p)
{
    if (!p)
        return;
    if (p->capture.graph)
        p->device->backend->capture_free(p->device, p->capture.graph);
    qn_batches_free(p);
    for (int64_t i = 0; p->steps && i < p->n_steps; i++) {
        QnPrepared *k = &p->steps[i].prepared;
        if (k->kernel->fini)
            k->kernel->fini(k);
    }
    qn_device_free(p->device, p->base, (size_t)p->memory.arena_bytes);
    qn_device_free(p->device, p->constants, (size_t)p->memory.constant_bytes);
    qn_free(p->blocks.blocks);
    qn_arena_free(p->arena);
    qn_free(p);
}

/* ---- reading it ---- */

static void *find_port(const QnPlanPort *ports, int64_t n, const char *name, QnType *type)
{
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(ports[i].name, name))
            continue;
        if (type)
            *type = ports[i].type;
        return ports[i].ptr;
    }
    return NULL;
}

void *qn_plan_input(const QnPlan *p, const char *name, QnType *type)
{
    return find_port(p->inputs, p->n_inputs, name, type);
}

const void *qn_plan_output(const QnPlan *p, const char *name, QnType *type)
{
    return find_port(p->outputs, p->n_outputs, name, type);
}

static QnStatus check_bytes(const char *what, const char *name, const QnType *t, size_t bytes)
{
    char text[QN_TYPE_TEXT_BYTES];
    if ((int64_t)bytes == qn_type_bytes(t))
        return QN_OK;
    return qn_fail(QN_ESHAPE, "%s '%s' is %s, %lld bytes, not %zu", what, name,
                   qn_type_text(t, text), (long long)qn_type_bytes(t), bytes);
}

QnStatus qn_plan_write(QnPlan *p, const char *name, const void *src, size_t bytes)
{
    QnType t = { .dtype = QN_DTYPE_COUNT };
    void *dst = qn_plan_input(p, name, &t);
    if (t.dtype == QN_DTYPE_COUNT)
        return qn_fail(QN_ENOTFOUND, "the plan has no input '%s'", name);
    QN_TRY(check_bytes("input", name, &t, bytes));
    return dst ? p->device->backend->write(p->device, dst, src, bytes) : QN_OK;
}

QnStatus qn_plan_read(const QnPlan *p, const char *name, void *dst, size_t bytes)
{
    QnType t;
    const void *src = qn_plan_output(p, name, &t);
    if (!src)
        return qn_fail(QN_ENOTFOUND, "the plan has no output '%s'", name);
    QN_TRY(check_bytes("output", name, &t, bytes));
    return p->device->backend->read(p->device, dst, src, bytes);
}

QnPlanMemory qn_plan_memory(const QnPlan *p)
{
    return p->memory;
}

QnStatus qn_plan_record(const QnPlan *p, QnChoices *c)
{
    for (int64_t i = 0; i < p->n_steps; i++) {
        const QnPrepared *k = &p->steps[i].prepared;
        char key[QN_SELECT_KEY_BYTES];
        qn_select_key(p->device, k->node, key);
        if (!qn_choices_find(c, key))
            QN_TRY(qn_choices_set(c, key, k->kernel->name, 0));
    }
    return QN_OK;
}

bool qn_plan_is_captured(const QnPlan *p, const char **reason)
{
    if (reason)
        *reason = p->capture.reason;
    return p->capture.graph != NULL;
}

int64_t qn_plan_n_steps(const QnPlan *p)
{
    return p->n_steps;
}

static int64_t steps_launched(const QnPlan *p, int64_t step)
{
    for (int64_t i = 0; i < p->batches.n; i++) {
        const QnBatch *b = &p->batches.items[i];
        if (step >= b->first && step < b->first + b->n)
            return step == b->first ? b->n : 0;
    }
    return 1;
}

QnPlanStep qn_plan_step(const QnPlan *p, int64_t i)
{
    const QnPlanRun *s = &p->steps[i];
    const QnNode *n = s->prepared.node;
    const QnBlock *k = n->n_out ? &p->blocks.blocks[p->blocks.of[n->out[0].id]] : NULL;
    return (QnPlanStep){ .node = n,
                         .kernel = s->prepared.kernel,
                         .cost = qn_cost_of(n),
                         .out_offset = k && k->place == QN_PLACE_ARENA ? k->offset : -1,
                         .inplace = p->blocks.inplace[n->id],
                         .workspace_bytes = s->prepared.workspace_bytes,
                         .n_launched = steps_launched(p, i),
                         .ns = s->ns,
                         .runs = s->runs };
}

int64_t qn_plan_far_traffic(const QnPlan *p)
{
    int64_t bytes = 0;
    for (int64_t i = 0; p->device->far && i < p->n_steps; i++) {
        const QnPlanRun *s = &p->steps[i];
        const QnNode *n = s->prepared.node;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] && qn_device_is_far(p->device, s->in[k]))
                bytes += qn_type_bytes(&n->in[k]->type);
        for (int k = 0; k < n->n_out; k++)
            if (qn_device_is_far(p->device, s->out[k]))
                bytes += qn_type_bytes(&n->out[k].type);
    }
    for (int64_t i = 0; i < p->n_copies; i++) {
        const QnPlanCopy *c = &p->copies[i];
        bytes += (int64_t)c->bytes *
                 (qn_device_is_far(p->device, c->dst) + qn_device_is_far(p->device, c->src));
    }
    return bytes;
}
