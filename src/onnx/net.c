/* A model as part of a net that is trained. It is built twice: first into a graph of its own, to
 * see which weights a gradient reaches, then into the net's. */
#include "nn/net.h"
#include "onnx/importer.h"
#include "ops/ops.h"

#include <fnmatch.h>
#include <string.h>

typedef struct Part {
    const QnOnnxModel *model;
    QnDevice *device;
    const QnOnnxNetOptions *o;
    const QnNet *net;
    QnOnnxProblems *problems; /* or NULL */
    QnArena *arena;
    QnItem **weight; /* by initialiser; NULL: none that is trained or kept */
    bool *reached;   /* NULL at first */
} Part;

bool qn_onnx_is_frozen(const QnOnnxNetOptions *o, const char *name)
{
    if (o->head && !strncmp(name, o->head, strlen(o->head)))
        return false;
    for (int64_t i = 0; i < o->n_freeze; i++)
        if (!fnmatch(o->freeze[i], name, 0))
            return true;
    return false;
}

static const QnOnnxInfo *find_input(const QnOnnxGraph *g, const char *name)
{
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (!strcmp(g->input[i].name, name))
            return &g->input[i];
    return NULL;
}

/* Nodes up to the one that makes `output`; false: none does. */
static bool cut_at(const QnOnnxGraph *g, QnOnnxInfo *output, QnOnnxGraph *out)
{
    *out = *g;
    out->output = output;
    out->n_outputs = 1;
    for (int64_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_out; k++)
            if (!strcmp(g->node[i].out[k], output->name)) {
                out->n_nodes = i + 1;
                return true;
            }
    return false;
}

/* The scope's initialisers that are weights; those that are single numbers (an exponent, an
 * epsilon) mean something else and stay constants. */
static void make_states(const Part *p, QnScope *s)
{
    const QnOnnxGraph *g = p->model->graph;
    for (int64_t i = 0; i < g->n_inits; i++) {
        const QnTensor *t = g->init[i].tensor;
        QnItem *item = NULL;
        p->weight[i] = NULL;
        if (t->text || !qn_dtype_is_float(t->type.dtype) || t->type.shape.rank == 0)
            continue;
        if (!qn_scope_find(s, g->init[i].name, &item) || !item)
            continue;
        item->is_state = true;
        item->is_frozen = qn_onnx_is_frozen(p->o, item->name);
        item->is_statistic = p->reached && !p->reached[i];
        item->prefix = p->net->prefix;
        p->weight[i] = item;
    }
}

static QnStatus walk(Part *p, QnImporter *m, QnScope *s, const QnOnnxGraph *g, QnValue *x,
                     QnValue **y)
{
    const QnOnnxType *from = find_input(g, p->o->input)->type;
    QnItem *item = qn_importer_item(m, p->o->input, NULL);
    QN_TRY(item ? QN_OK : QN_ENOMEM);
    item->value = x;
    item->epoch = m->epoch;
    QN_TRY(qn_scope_set(s, p->o->input, item));
    m->training = p->net->training;
    m->inference = !m->training;
    m->batch_from = from->rank > 0 ? from->dim[0] : 0;
    m->batch_to = x->type.shape.rank > 0 ? x->type.shape.dim[0] : 0;
    if (m->batch_from <= 0 || m->batch_from == m->batch_to)
        m->batch_to = 0;
    make_states(p, s);
    QN_TRY(qn_importer_nodes(m, g));
    if (m->n_problems)
        return qn_importer_refuse(m, p->problems);
    if (!qn_scope_find(s, p->o->output, &item) || !item)
        return qn_fail(QN_EFORMAT, "nothing makes '%s'", p->o->output);
    if (item->kind != QN_ITEM_TENSOR)
        return qn_fail(QN_EUNSUPPORTED, "'%s' is a sequence", p->o->output);
    *y = qn_item_value(m->graph, m->epoch, item);
    return qn_graph_check(m->graph);
}

typedef QnStatus Then(Part *p, QnGraph *g, QnValue *y, QnNet *net);

/* Into graph g, which stays the caller's; what `then` does sees the weights. */
static QnStatus build(Part *p, QnGraph *g, QnValue *x, QnValue **y, Then *then, QnNet *net)
{
    QnImporter m;
    QnScope s = { 0 };
    QnOnnxInfo output = { p->o->output, NULL };
    QnOnnxGraph part;
    if (!cut_at(p->model->graph, &output, &part))
        return qn_fail(QN_EFORMAT, "%s: nothing makes '%s'", p->model->path, p->o->output);
    QnOnnxModel model = *p->model;
    model.graph = &part;
    QnStatus st = qn_importer_enter(&m, &s, &model, p->device, NULL, g);
    if (st == QN_OK)
        st = walk(p, &m, &s, &part, x, y);
    if (st != QN_OK && !m.n_problems) /* else it names the file */
        qn_fail_prefix("%s", model.path);
    if (st == QN_OK)
        st = then(p, g, *y, net);
    qn_arena_limit(g->arena, 0);
    m.graph = NULL;
    qn_importer_close(&m, &s);
    return st;
}

static bool is_real(QnDtype dtype)
{
    return qn_dtype_is_float(dtype) && !qn_dtype_is_storage(dtype);
}

#define MASKED 9999.0f

enum { REACHED = 1, NEEDED = 2, CUT_OFF = 4 };

/* Marks the nodes that y needs, and those that a gradient of it comes to. */
static void mark_reached(QnGraph *g, const QnValue *y)
{
    QN_GRAPH_EACH(g, n)
    n->mark = 0;
    y->node->mark = REACHED | NEEDED;
    for (QnNode *n = g->last; n; n = n->prev) {
        bool passes = (n->mark & REACHED) && !(n->op->traits & QN_NO_GRAD);
        for (int i = 0; n->mark && i < n->n_in; i++)
            if (n->in[i])
                n->in[i]->node->mark |=
                    NEEDED | (passes && is_real(n->in[i]->type.dtype) ? REACHED : 0);
    }
}

static bool wants_training(const QnItem *w)
{
    return w && w->value && !w->is_statistic && !w->is_frozen && (w->value->node->mark & NEEDED);
}

static bool is_trained(const QnItem *w)
{
    return wants_training(w) && (w->value->node->mark & REACHED);
}

/* Nodes without a gradient that lie between y and weights which so get none at all: a few in a
 * line, all of them in the list. */
static int64_t list_cuts(const Part *p, QnGraph *g, QnStr *line)
{
    int64_t count = 0;
    QN_GRAPH_EACH(g, n)
    {
        const char *name = n->name ? n->name : "";
        bool cuts = false;
        for (int i = 0; i < n->n_in; i++)
            cuts |= n->in[i] && (n->in[i]->node->mark & CUT_OFF);
        if (!cuts)
            continue;
        n->mark |= CUT_OFF;
        if (!(n->mark & NEEDED) || !(n->op->traits & QN_NO_GRAD))
            continue;
        if (count++ < 4)
            qn_str_printf(line, "%s%s at '%s'", line->n ? ", " : "", n->op->name, name);
        if (p->problems)
            qn_str_printf(&p->problems->text, "node '%s': no gradient goes through %s\n", name,
                          n->op->name);
    }
    if (p->problems)
        p->problems->n += count;
    return count;
}

static QnStatus check_cuts(const Part *p, QnGraph *g)
{
    QnStr nodes = { 0 }, weights = { 0 };
    int64_t n_weights = 0;
    for (int64_t i = 0; i < p->model->graph->n_inits; i++) {
        const QnItem *w = p->weight[i];
        if (!wants_training(w) || is_trained(w))
            continue;
        w->value->node->mark |= CUT_OFF;
        if (n_weights++ < 4)
            qn_str_printf(&weights, "%s'%s'", weights.n ? ", " : "", w->name);
    }
    int64_t n_nodes = list_cuts(p, g, &nodes);
    QnStatus st = nodes.st ? nodes.st : weights.st;
    if (st == QN_OK && n_nodes)
        st = qn_fail(QN_EUNSUPPORTED,
                     "%s: no gradient goes through %s%s, so that %lld weights before them (%s%s) "
                     "would not be trained; freeze those weights",
                     p->model->path, qn_str_text(&nodes), n_nodes > 4 ? ", …" : "",
                     (long long)n_weights, qn_str_text(&weights), n_weights > 4 ? ", …" : "");
    qn_str_fini(&nodes);
    qn_str_fini(&weights);
    return st;
}

/* Masks lie among a file's weights and are none: their elements are 0 and minus infinity, or a
 * large number that stands for it. */
static bool is_mask(const QnTensor *t)
{
    const float *v = t->data;
    for (int64_t i = 0, n = qn_shape_count(&t->type.shape); i < n; i++)
        if (!(v[i] > -MASKED && v[i] < MASKED))
            return true;
    return false;
}

static QnStatus note_reached(Part *p, QnGraph *g, QnValue *y, QnNet *net)
{
    int64_t n = p->model->graph->n_inits;
    (void)net;
    bool *reached = qn_arena_array(p->arena, (size_t)n + 1, sizeof *reached);
    QN_TRY(reached ? QN_OK : QN_ENOMEM);
    mark_reached(g, y);
    QN_TRY(check_cuts(p, g));
    for (int64_t i = 0; i < n; i++) {
        const QnItem *w = p->weight[i];
        reached[i] = is_trained(w);
        if (reached[i] && w->known->type.dtype == QN_DTYPE_F32)
            reached[i] = !is_mask(w->known);
        else if (reached[i])
            return qn_fail(QN_EUNSUPPORTED, "%s: weight '%s' is %s; only float32 is trained",
                           p->model->path, w->name, qn_dtype_name(w->known->type.dtype));
    }
    p->reached = reached;
    return QN_OK;
}

static QnStatus find_reached(Part *p, const QnType *type)
{
    QnGraph *g = qn_graph_new();
    QnValue *y = NULL;
    QN_TRY(g ? QN_OK : QN_ENOMEM);
    QnValue *x = qn_input(g, "x", type->dtype, &type->shape);
    QnStatus st = build(p, g, x, &y, note_reached, NULL);
    qn_graph_free(g);
    return st;
}

/* Biases and scales have one axis, or others of length one beside it. */
static bool decays(const QnShape *s)
{
    int long_axes = 0;
    for (int i = 0; i < s->rank; i++)
        long_axes += s->dim[i] > 1;
    return s->rank == 2 || (s->rank > 2 && long_axes > 1);
}

static QnStatus add_params(Part *p, QnGraph *g, QnValue *y, QnNet *net)
{
    (void)g, (void)y;
    for (int64_t i = 0; i < p->model->graph->n_inits; i++) {
        const QnItem *w = p->weight[i];
        if (!p->reached[i] || !w || !w->value)
            continue;
        QN_TRY(QN_GROW(net->params, net->cap_params, net->n_params));
        net->params[net->n_params++] = (QnParam){ .state = w->value,
                                                  .name = qn_node_label(w->value->node),
                                                  .decay = decays(&w->value->type.shape) };
    }
    return QN_OK;
}

static QnStatus check_names(const QnOnnxModel *m)
{
    static const char *const ours[] = { "optim.", "grad.", "ema." };
    for (int64_t i = 0; i < m->graph->n_inits; i++)
        for (int k = 0; k < QN_COUNT(ours); k++)
            if (!strncmp(m->graph->init[i].name, ours[k], strlen(ours[k])))
                return qn_fail(QN_EUNSUPPORTED,
                               "%s: weight '%s': names that begin with '%s' are the optimizer's; "
                               "rename it",
                               m->path, m->graph->init[i].name, ours[k]);
    return QN_OK;
}

static QnStatus build_part(Part *p, QnNet *net, QnValue *x, QnValue **y)
{
    QN_TRY(check_names(p->model));
    p->weight = qn_arena_array(p->arena, (size_t)p->model->graph->n_inits + 1, sizeof(QnItem *));
    QN_TRY(p->weight ? QN_OK : QN_ENOMEM);
    QN_TRY(find_reached(p, &x->type));
    return build(p, net->g, x, y, add_params, net);
}

QnStatus qn_onnx_net(QnNet *net, const QnOnnxModel *m, QnDevice *d, const QnOnnxNetOptions *o,
                     QnValue *x, QnValue **y, QnOnnxProblems *problems)
{
    QN_TRY(qn_graph_check(net->g));
    for (int i = 0; i < x->type.shape.rank; i++)
        if (x->type.shape.dim[i] < 0)
            return qn_fail(QN_EUNSUPPORTED, "%s: an ONNX model is built for a batch of known size",
                           m->path);
    Part p = {
        .model = m, .device = d, .o = o, .net = net, .problems = problems, .arena = qn_arena_new()
    };
    QnStatus st = p.arena ? build_part(&p, net, x, y) : QN_ENOMEM;
    qn_arena_free(p.arena);
    return st;
}
