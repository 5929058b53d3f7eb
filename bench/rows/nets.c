/* Nets as training builds them: forward, gradients, update. */
#include "rows.h"

#include "ops/ops.h"
#include "pass/precision.h"

#include <stdio.h>

static const QnOptim sgd = { .name = "sgd", .momentum = 0.9, .weight_decay = 1e-4 };
static const QnOptim plain_sgd = { .name = "sgd" };
static const QnOptim adamw = {
    .name = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01
};

static QnValue *images(Build *b, int64_t channels, int64_t side)
{
    return qn_input(b->g, "x", QN_DTYPE_F32, &QN_SHAPE(b->dim[0], channels, side, side));
}

static QnValue *loss_of(Build *b, QnValue *scores, int64_t rows, int64_t classes)
{
    QnValue *y = qn_input(b->g, "y", QN_DTYPE_I64, &QN_SHAPE(rows));
    b->classes = classes;
    return qn_cross_entropy(b->g, scores, y, 0, -100, QN_REDUCTION_MEAN);
}

/* As sessions do it: another graph with the same parameters and loss. */
static QnStatus mix_precision(Build *b, QnValue **loss)
{
    QnGraph *mixed;
    QnValue **map;
    QN_TRY(qn_graph_check(b->g));
    QN_TRY(qn_precision(b->g, &(QnPrecisionOptions){ .low = QN_DTYPE_BF16 }, &mixed, &map, NULL));
    for (int64_t i = 0; i < b->net->n_params; i++) {
        QnParam *p = &b->net->params[i];
        p->state = map[p->state->id];
        p->name = qn_node_label(p->state->node);
    }
    *loss = map[(*loss)->id];
    qn_graph_free(b->g);
    b->g = b->net->g = mixed;
    return QN_OK;
}

static QnStatus minimise(Build *b, const QnOptim *o, QnValue *loss)
{
    if (b->bf16)
        QN_TRY(mix_precision(b, &loss));
    QnValue *step = qn_input(b->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnValue *lr = qn_input(b->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QN_TRY(qn_optim_minimise(b->net, o, loss, lr, step, NULL));
    return qn_graph_output(b->g, "loss", loss);
}

QnStatus build_mlp(Build *b, QnLayout layout)
{
    (void)layout;
    QnValue *x = qn_input(b->g, "x", QN_DTYPE_F32, &QN_SHAPE(b->dim[0], 784));
    x = qn_relu(b->g, qn_nn_linear(b->net, "fc1", x, 512, true));
    x = qn_nn_linear(b->net, "fc2", x, 10, true);
    return minimise(b, &plain_sgd, loss_of(b, x, b->dim[0], 10));
}

QnStatus build_resnet_train(Build *b, QnLayout layout)
{
    (void)layout;
    QnResnetSpec spec = { .depth = 50, .outputs = 1000 };
    QnValue *y = qn_nn_resnet(b->net, images(b, 3, 224), &spec);
    return minimise(b, &sgd, loss_of(b, y, b->dim[0], 1000));
}

QnStatus build_resnet_infer(Build *b, QnLayout layout)
{
    (void)layout;
    QnResnetSpec spec = { .depth = 50, .outputs = 1000 };
    QnValue *y = qn_nn_resnet(b->net, images(b, 3, 224), &spec);
    QN_TRY(qn_graph_check(b->g));
    return qn_graph_output(b->g, "y", y);
}

QnStatus build_gpt2(Build *b, QnLayout layout)
{
    (void)layout;
    QnGptSpec spec;
    int64_t rows = b->dim[0] * b->dim[1];
    if (!qn_nn_gpt2_size("small", &spec))
        return qn_fail(QN_ENOTFOUND, "no GPT-2 of size 'small'");
    QnValue *x = qn_input(b->g, "x", QN_DTYPE_I64, &QN_SHAPE(b->dim[0], b->dim[1]));
    QnValue *y = qn_nn_gpt2(b->net, x, &spec);
    y = qn_reshape(b->g, y, &QN_SHAPE(rows, spec.vocab));
    return minimise(b, &adamw, loss_of(b, y, rows, spec.vocab));
}

/* Gradients of x and of all parameters, from a given one of y. */
QnStatus build_block(Build *b, QnLayout layout)
{
    (void)layout;
    enum { MOST = 32 };
    QnShape shape = QN_SHAPE(b->dim[0], b->dim[1], b->dim[2]);
    QnAttentionSpec spec = { .heads = b->dim[3], .causal = true, .bias = true };
    QnValue *x = qn_input(b->g, "x", QN_DTYPE_F32, &shape);
    QnValue *dy = qn_input(b->g, "dy", QN_DTYPE_F32, &shape);
    QnValue *y = qn_nn_block(b->net, "block", x, &spec), *wrt[MOST], *grad[MOST];
    int n = 0;
    QN_TRY(qn_graph_check(b->g));
    wrt[n++] = x;
    for (int64_t i = 0; i < b->net->n_params && n < MOST; i++)
        wrt[n++] = b->net->params[i].state;
    QN_TRY(qn_grad_from(b->g, y, dy, wrt, n, grad));
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "grad%d", i);
        QN_TRY(qn_graph_output(b->g, name, grad[i]));
    }
    return qn_graph_output(b->g, "y", y);
}

/* The update alone; gradients are states, which nothing writes. */
QnStatus build_adamw(Build *b, QnLayout layout)
{
    (void)layout;
    enum { MOST = 64 };
    QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    QnShape shape = QN_SHAPE(b->dim[1], b->dim[2]);
    QnValue *grads[MOST];
    for (int64_t i = 0; i < b->dim[0] && i < MOST; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%lld", (long long)i);
        qn_net_param(b->net, name, &shape, &init, true);
        snprintf(name, sizeof name, "grad%lld", (long long)i);
        grads[i] = qn_net_buffer(b->net, name, &shape, 1e-3);
    }
    QnValue *step = qn_input(b->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnValue *lr = qn_input(b->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QN_TRY(qn_optim_apply(b->net, &adamw, grads, lr, step, NULL));
    return qn_graph_check(b->g);
}
