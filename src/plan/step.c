#include "plan/step.h"

#include "pass/precision.h"

typedef struct Build {
    QnGraph *g;
    QnNet net;
    QnValue *scores, *loss;
} Build;

static QnValue *input_of(const QnModel *m, const QnCountRequest *r, const Build *b)
{
    int64_t side = r->image ? r->image : m->family->image;
    if (side)
        return qn_input(b->g, "x", b->net.dtype, &QN_SHAPE(r->batch, 3, side, side));
    int64_t length = r->sequence ? r->sequence : m->family->sequence;
    return qn_input(b->g, "x", QN_DTYPE_I64, &QN_SHAPE(r->batch, length));
}

/* Cross-entropy of each row of scores, over the last axis. */
static void add_loss(Build *b)
{
    const QnShape *s = &b->scores->type.shape;
    if (qn_value_is_poison(b->scores) || !s->rank)
        return;
    int64_t classes = s->dim[s->rank - 1], rows = qn_shape_count(s) / QN_MAX(classes, 1);
    QnValue *flat = qn_reshape(b->g, b->scores, &QN_SHAPE(rows, classes));
    QnValue *labels = qn_input(b->g, "y", QN_DTYPE_I64, &QN_SHAPE(rows));
    b->loss = qn_cross_entropy(b->g, flat, labels, 0, -100, QN_REDUCTION_MEAN);
}

/* The same graph with products in 16 bits. */
static QnStatus mix(Build *b)
{
    QnGraph *mixed;
    QnValue **map;
    QnValue **of = b->loss ? &b->loss : &b->scores;
    QN_TRY(qn_precision(b->g, QN_DTYPE_F16, &mixed, &map, NULL));
    for (int64_t i = 0; i < b->net.n_params; i++) {
        b->net.params[i].state = map[b->net.params[i].state->id];
        b->net.params[i].name = qn_node_label(b->net.params[i].state->node);
    }
    *of = map[(*of)->id];
    b->net.g = mixed;
    qn_graph_free(b->g);
    b->g = mixed;
    return QN_OK;
}

static QnStatus add_update(const QnModel *m, Build *b)
{
    QnOptim o = { .name = "sgd", .momentum = 0.9, .weight_decay = 1e-4 };
    if (m->family->adam)
        o = (QnOptim){
            .name = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01
        };
    QnValue *lr = qn_input(b->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(b->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    return qn_optim_minimise(&b->net, &o, b->loss, lr, step, NULL);
}

static QnStatus build(const QnModel *m, const QnCountRequest *r, int64_t layers, Build *b)
{
    b->g = qn_graph_new();
    if (!b->g)
        return QN_ENOMEM;
    qn_net_init(&b->net, b->g, r->train);
    b->net.dtype = r->low == 2 ? QN_DTYPE_F16 : QN_DTYPE_F32;
    if (r->train)
        b->net.key = qn_input(b->g, "key", QN_DTYPE_I64, &QN_SHAPE(2));
    b->scores = m->family->build(&b->net, m, input_of(m, r, b), layers);
    if (r->train)
        add_loss(b);
    QN_TRY(qn_graph_check(b->g));
    QN_TRY(qn_graph_output(b->g, r->train ? "loss" : "scores", r->train ? b->loss : b->scores));
    if (r->low == 1)
        QN_TRY(mix(b));
    if (r->train)
        QN_TRY(add_update(m, b));
    return qn_graph_check(b->g);
}

QnStatus qn_step_build(const QnModel *m, const QnCountRequest *r, int64_t layers, QnStep *out)
{
    Build b = { 0 };
    QnStatus st = build(m, r, layers, &b);
    *out = (QnStep){ .graph = b.g, .params = (double)qn_nn_param_count(&b.net) };
    qn_net_fini(&b.net);
    if (st == QN_OK)
        return QN_OK;
    qn_graph_free(b.g);
    out->graph = NULL;
    return qn_fail_prefix("%s", m->name);
}
