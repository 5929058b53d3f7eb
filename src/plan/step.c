#include "plan/step.h"

#include "plan/macs.h"

#include <string.h>

typedef struct Build {
    QnGraph *g;
    QnNet net;
    QnValue *result; /* loss or scores */
} Build;

QnStepInput qn_step_input(const QnModel *m, const QnCountRequest *r)
{
    const QnFamily *f = m->family;
    QnStepInput in = { .batch = r->batch,
                       .train = r->train,
                       .generate = r->generate,
                       .context = r->context,
                       .source = r->source };
    if (!f->image) {
        in.sequence = r->sequence ? r->sequence : r->generate ? 1 : f->sequence;
        return in;
    }
    int64_t own = m->image ? m->image : f->image;
    in.channels = f->channels ? f->channels : 3;
    in.height = r->image ? r->image : own;
    in.width = r->width ? r->width : !r->image && f->width ? f->width : in.height;
    if (f->depth)
        in.depth = r->depth ? r->depth : r->image ? r->image : f->depth;
    return in;
}

QnValue *qn_step_image(QnNet *net, const QnStepInput *in)
{
    QnShape s = in->depth ? QN_SHAPE(in->batch, in->channels, in->depth, in->height, in->width)
                          : QN_SHAPE(in->batch, in->channels, in->height, in->width);
    return qn_input(net->g, "x", net->dtype, &s);
}

QnValue *qn_step_cross_entropy(QnNet *net, const char *name, QnValue *scores)
{
    const QnShape *s = &scores->type.shape;
    if (qn_value_is_poison(scores) || !s->rank)
        return scores;
    int64_t classes = s->dim[s->rank - 1], rows = qn_shape_count(s) / QN_MAX(classes, 1);
    QnValue *flat = qn_reshape(net->g, scores, &QN_SHAPE(rows, classes));
    QnValue *labels = qn_input(net->g, name, QN_DTYPE_I64, &QN_SHAPE(rows));
    return qn_cross_entropy(net->g, flat, labels, 0, -100, QN_REDUCTION_MEAN);
}

static QnStatus add_update(const QnModel *m, Build *b)
{
    QnOptim o = { .name = "sgd", .momentum = 0.9, .weight_decay = 1e-4 };
    if (m->family->plain)
        o.momentum = o.weight_decay = 0;
    if (m->family->adam)
        o = (QnOptim){
            .name = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01
        };
    if (m->family->lamb)
        o = (QnOptim){
            .name = "lamb", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01
        };
    QnValue *lr = qn_input(b->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(b->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    return qn_optim_minimise(&b->net, &o, b->result, lr, step, NULL);
}

static QnValue *forward(const QnModel *m, const QnCountRequest *r, int64_t layers, QnNet *net)
{
    QnStepInput in = qn_step_input(m, r);
    if (m->family->step && !in.generate)
        return m->family->step(net, m, &in, layers);
    QnValue *x = in.height ? qn_step_image(net, &in)
                           : qn_input(net->g, "x", QN_DTYPE_I64, &QN_SHAPE(in.batch, in.sequence));
    if (in.generate)
        return m->family->generate(net, m, x, &in, layers);
    QnValue *scores = m->family->build(net, m, x, layers);
    return in.train ? qn_step_cross_entropy(net, "y", scores) : scores;
}

/* ---- parameters ---- */

static const char idle[] = "idle_", rows[] = "rows_";

static bool is_named(const char *name, const char *prefix)
{
    const char *dot = strrchr(name, '.');
    return !strncmp(dot ? dot + 1 : name, prefix, strlen(prefix));
}

void qn_step_idle(QnNet *net, const char *name, const QnShape *shape)
{
    qn_net_buffer(net, qn_arena_printf(net->g->arena, "%s%s", idle, name), shape, 0);
}

QnValue *qn_step_rows(QnNet *net, const char *name, const QnShape *shape)
{
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    name = qn_arena_printf(net->g->arena, "%s%s", rows, name);
    return qn_net_param(net, name, shape, &init, true);
}

static void count_params(const QnNet *net, const QnGraph *g, QnStep *out)
{
    for (int64_t i = 0; i < net->n_params; i++) {
        const QnShape *s = &net->params[i].state->type.shape;
        double n = (double)qn_shape_count(s);
        out->params += n;
        out->matrices += s->rank > 1 ? n : 0;
        bool table = is_named(net->params[i].name, rows);
        out->trained += table ? 0 : n;
        out->tables += table ? n : 0;
    }
    QN_GRAPH_EACH(g, node)
    if (node->op == &qn_op_state && is_named(((const QnStateAttr *)node->attr)->name, idle))
        out->idle += (double)qn_shape_count(&node->out[0].type.shape);
    out->params += out->idle;
    out->tables += out->tables > 0 ? out->idle : 0;
    out->matrices += out->idle;
}

/* Leaves the net with what the family trains. */
static void freeze(const QnFamily *f, QnNet *net, QnStep *out)
{
    int64_t kept = 0;
    if (!f->trained)
        return;
    out->frozen = out->params - out->idle;
    out->trained = 0;
    for (int64_t i = 0; i < net->n_params; i++) {
        if (!strstr(net->params[i].name, f->trained))
            continue;
        net->params[kept++] = net->params[i];
        out->trained += (double)qn_shape_count(&net->params[i].state->type.shape);
    }
    out->frozen -= out->trained;
    net->n_params = kept;
}

static QnStatus build(const QnModel *m, const QnCountRequest *r, int64_t layers, Build *b,
                      QnStep *out)
{
    b->g = qn_graph_new();
    if (!b->g)
        return QN_ENOMEM;
    qn_net_init(&b->net, b->g, r->train);
    b->net.dtype = r->low && !m->family->wide ? QN_DTYPE_F16 : QN_DTYPE_F32;
    if (r->train)
        b->net.key = qn_input(b->g, "key", QN_DTYPE_I64, &QN_SHAPE(2));
    b->result = forward(m, r, layers, &b->net);
    out->macs = qn_macs(b->g);
    QN_TRY(qn_graph_check(b->g));
    QN_TRY(qn_graph_output(b->g, r->train ? "loss" : "scores", b->result));
    count_params(&b->net, b->g, out);
    freeze(m->family, &b->net, out);
    if (r->train)
        QN_TRY(add_update(m, b));
    return qn_graph_check(b->g);
}

void qn_step_fini(QnStep *s)
{
    qn_graph_free(s->graph);
    if (s->free_owner)
        s->free_owner(s->owner);
    *s = (QnStep){ 0 };
}

QnStatus qn_step_build(const QnModel *m, const QnCountRequest *r, int64_t layers, QnStep *out)
{
    Build b = { 0 };
    *out = (QnStep){ 0 };
    if (m->family->graph)
        return m->family->graph(m, r, out);
    QnStatus st = build(m, r, layers, &b, out);
    out->graph = b.g;
    out->halves = r->low && m->family->wide;
    qn_net_fini(&b.net);
    if (st == QN_OK)
        return QN_OK;
    qn_graph_free(b.g);
    out->graph = NULL;
    size_t n = strlen(m->name); /* of a file, whose errors mostly begin with it */
    const char *text = qn_error_last()->text;
    return !strncmp(text, m->name, n) && text[n] == ':' ? st : qn_fail_prefix("%s", m->name);
}
