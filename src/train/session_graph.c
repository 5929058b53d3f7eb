/* The graphs of a session: model, loss, gradients, update, through the passes. */
#include "train/session_impl.h"

#include "nn/optim.h"
#include "nn/scaler.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "pass/precision.h"
#include "train/f8_choice.h"
#include "train/model_file.h"
#include "train/precision_auto.h"

#include <string.h>

typedef struct Built {
    QnGraph *g;
    QnNet net;
    QnValue *loss; /* mean over the batch while training; sum in evaluation */
} Built;

static QnValue *input_x(const QnSession *s, QnGraph *g, QnDim batch)
{
    QnShape shape = { .rank = s->spec.x_rank + 1, .dim = { batch } };
    memcpy(shape.dim + 1, s->spec.x_dims, (size_t)s->spec.x_rank * sizeof(QnDim));
    return qn_input(g, "x", s->spec.x_kind == QN_FEATURE_TOKENS ? QN_DTYPE_I64 : QN_DTYPE_F32,
                    &shape);
}

static QnValue *classes_loss(const QnSession *s, QnGraph *g, QnValue *logits, QnValue *labels,
                             bool training)
{
    return qn_cross_entropy(g, logits, labels, training ? s->recipe->label_smoothing : 0,
                            QN_IGNORED_LABEL, training ? QN_REDUCTION_MEAN : QN_REDUCTION_SUM);
}

/* Squared error per sample and target; missing samples of a short batch have weight 0. */
static QnValue *squares_loss(QnGraph *g, QnValue *out, QnValue *y, bool training)
{
    QnValue *d = qn_sub(g, out, y), *sq = qn_mul(g, d, d);
    if (training)
        return qn_mean(g, sq, (QnInts){ 0 }, false);
    QnValue *weight = qn_input(g, "weight", QN_DTYPE_F32, &QN_SHAPE(out->type.shape.dim[0], 1));
    return qn_sum(g, qn_mul(g, sq, weight), (QnInts){ 0 }, false);
}

/* For QnPrecisionOptions.of where measurement decides. */
static QnDtype measured_dtype(void *session, const QnNode *n)
{
    const QnSession *s = session;
    return qn_f8_choice_of(s->f8, s->planning.choices, n) ? QN_DTYPE_F8E4M3FN : QN_DTYPE_BF16;
}

/* Products in 16 bits, if the recipe wants it: another graph with the same parameters and loss. */
static QnStatus mix_precision(const QnSession *s, Built *b, QnValue *result)
{
    static const QnDtype dtypes[] = { QN_DTYPE_F32, QN_DTYPE_BF16, QN_DTYPE_F16,
                                      QN_DTYPE_F8E4M3FN };
    QnGraph *mixed;
    QnValue **map;
    bool is_auto = s->precision == QN_PRECISION_AUTO;
    if (s->precision == QN_PRECISION_FP32 || (is_auto && !b->net.training))
        return QN_OK;
    QnAutoChoice choice = { .mix = s->mix };
    QnPrecisionOptions o = { .low = is_auto ? QN_DTYPE_F32 : dtypes[s->precision],
                             .of = is_auto ? qn_auto_of : NULL,
                             .ctx = &choice,
                             .result = result,
                             .updates = b->net.training };
    if (s->precision == QN_PRECISION_FP8 && s->recipe->fp8 == QN_F8_FASTER) {
        o.of = measured_dtype;
        o.ctx = (void *)(uintptr_t)s;
    }
    if (s->recipe->rounding == QN_ROUNDING_STOCHASTIC)
        o.key = b->net.key;
    QN_TRY(qn_precision(b->g, &o, &mixed, &map, NULL));
    for (int64_t i = 0; i < b->net.n_params; i++) {
        b->net.params[i].state = map[b->net.params[i].state->id];
        b->net.params[i].name = qn_node_label(b->net.params[i].state->node);
    }
    b->loss = map[b->loss->id];
    b->net.key = NULL; /* of the old graph, which has been used up */
    b->net.g = mixed;  /* it may read constants of the model's file, as the old one did */
    qn_graph_free(b->g);
    b->g = mixed;
    return QN_OK;
}

int64_t qn_session_outputs(const QnSession *s)
{
    return s->recipe->task != QN_TASK_REGRESS ? s->spec.class_count : s->spec.y_count;
}

/* The model on an input x; *out is what the loss takes. */
static QnStatus build_model(const QnSession *s, bool training, QnDim batch, Built *b, QnValue **out)
{
    const QnRecipe *r = s->recipe;
    qn_net_init(&b->net, b->g, training);
    if (training)
        b->net.key = qn_input(b->g, "key", QN_DTYPE_I64, &QN_SHAPE(2));
    else if (r->ema > 0)
        b->net.prefix = "ema.";
    QnModelIo io = { qn_session_outputs(s),
                     s->spec.x_kind == QN_FEATURE_TOKENS ? s->spec.x_dims[0] : 0 };
    if (s->file)
        return qn_model_file_build(s->file, &b->net, &io, input_x(s, b->g, batch), out);
    return qn_model_build(&b->net, r->model, &io, input_x(s, b->g, batch), out);
}

/* Model and loss on inputs x and y. */
static QnStatus build_forward(const QnSession *s, bool training, int64_t batch, Built *b)
{
    const QnRecipe *r = s->recipe;
    QnValue *out;
    b->g = qn_graph_new();
    if (!b->g)
        return QN_ENOMEM;
    QN_TRY(build_model(s, training, batch, b, &out));
    if (r->task != QN_TASK_REGRESS) {
        QnShape rows = { 1, { out->type.shape.dim[0] } };
        QnValue *y = qn_input(b->g, "y", QN_DTYPE_I64, &rows);
        b->loss = classes_loss(s, b->g, out, y, training);
    } else {
        QnValue *y = qn_input(b->g, "y", QN_DTYPE_F32, &out->type.shape);
        b->loss = squares_loss(b->g, out, y, training);
    }
    QN_TRY(qn_graph_check(b->g));
    QN_TRY(qn_graph_output(b->g, "loss", b->loss));
    if (!training)
        QN_TRY(qn_graph_output(b->g, "logits", out));
    return mix_precision(s, b, out);
}

QnStatus qn_session_model(const QnSession *s, int64_t batch, QnGraph **graph)
{
    Built b = { .g = qn_graph_new() };
    QnValue *out;
    if (!b.g)
        return QN_ENOMEM;
    QnDim rows = batch > 0 ? batch : qn_dim_symbol(b.g, "batch");
    QnStatus st = build_model(s, false, rows, &b, &out);
    if (st == QN_OK)
        st = qn_graph_check(b.g);
    if (st == QN_OK)
        st = qn_graph_output(b.g, s->recipe->task == QN_TASK_REGRESS ? "output" : "logits", out);
    qn_net_fini(&b.net);
    if (st == QN_OK)
        *graph = b.g;
    else
        qn_graph_free(b.g);
    return st;
}

static QnOptim optim_of(const QnRecipe *r)
{
    const QnRecipeOptimizer *o = &r->optimizer;
    return (QnOptim){ .name = o->name,
                      .momentum = o->momentum,
                      .nesterov = o->nesterov,
                      .beta1 = o->beta1,
                      .beta2 = o->beta2,
                      .eps = o->eps,
                      .weight_decay = o->weight_decay,
                      .clip_norm = o->clip_norm,
                      .clip_value = o->clip_value,
                      .ema = r->ema };
}

static QnValue *accumulator(QnGraph *g, const QnParam *p)
{
    QnStateAttr a = { .name = qn_arena_printf(g->arena, "grad.%s", p->name) };
    const QnType *t = &p->state->type;
    if (!a.name)
        return qn_graph_poison(g);
    a.dims.n = t->shape.rank;
    memcpy(a.dims.d, t->shape.dim, sizeof a.dims.d);
    return qn_state(g, &a);
}

static QnStatus add_update(const QnRecipe *r, QnNet *net, QnValue *const *grads, QnValue *finite)
{
    QnValue *step = qn_input(net->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnValue *lr = qn_input(net->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 }), *norm = NULL;
    QnOptim o = optim_of(r);
    o.apply_if = finite;
    if (qn_optim_apply(net, &o, grads, lr, step, &norm) != QN_OK)
        return qn_fail_prefix("%s: train.optimizer", r->path);
    return norm ? qn_graph_output(net->g, "grad_norm", norm) : QN_OK;
}

/* The update from gradients that micro-batches have summed up; clears the sums. */
static QnStatus build_update(QnSession *s, const QnNet *like, QnGraph **out)
{
    QnGraph *g = qn_graph_new();
    QnNet net;
    if (!g)
        return QN_ENOMEM;
    qn_net_init(&net, g, true);
    QnStatus st = QN_OK;
    QnValue **grads = qn_arena_array(g->arena, (size_t)like->n_params + 1, sizeof *grads);
    QnValue **sums = qn_arena_array(g->arena, (size_t)like->n_params + 1, sizeof *sums);
    if (!grads || !sums)
        QN_TRY_DONE(QN_ENOMEM);
    for (int64_t i = 0; i < like->n_params; i++) {
        const QnParam *p = &like->params[i];
        QnValue *state = qn_state(g, p->state->node->attr);
        if (qn_value_is_poison(state))
            QN_TRY_DONE(qn_graph_check(g));
        QN_TRY_DONE(QN_GROW(net.params, net.cap_params, net.n_params));
        net.params[net.n_params++] =
            (QnParam){ .state = state, .name = qn_node_label(state->node), .decay = p->decay };
        sums[i] = accumulator(g, p);
        grads[i] =
            qn_mul(g, sums[i], qn_scalar_like(g, sums[i], 1.0 / (double)s->recipe->accumulate));
    }
    QN_TRY_DONE(add_update(s->recipe, &net, grads, NULL));
    for (int64_t i = 0; i < net.n_params; i++)
        qn_assign(g, sums[i], qn_full(g, 0, QN_DTYPE_F32, &sums[i]->type.shape));
    QN_TRY_DONE(qn_graph_check(g));
    *out = g;
    g = NULL;
done:
    qn_net_fini(&net);
    qn_graph_free(g);
    return st;
}

/* Gradients of the loss; in f16 by way of a scaled one. */
static QnStatus differentiate(const QnSession *s, Built *b, QnValue **wrt, QnValue **grads,
                              QnValue **finite)
{
    int n = (int)b->net.n_params;
    QnScaler scaler;
    *finite = NULL;
    if (s->precision != QN_PRECISION_FP16 && s->precision != QN_PRECISION_AUTO)
        return qn_grad(b->g, b->loss, wrt, n, grads);
    QnValue *scaled = qn_scaler_scale(&scaler, &b->net, b->loss);
    QN_TRY(qn_grad(b->g, scaled, wrt, n, grads));
    QN_TRY(qn_scaler_unscale(&scaler, &b->net, grads, n, finite));
    QN_TRY(qn_graph_output(b->g, "finite", qn_cast(b->g, *finite, QN_DTYPE_F32)));
    return qn_graph_output(b->g, "loss_scale",
                           qn_mul(b->g, scaler.scale, qn_scalar_like(b->g, scaler.scale, 1)));
}

/* Trainable states of a net, and room for their gradients. */
static QnStatus list_params(const Built *b, QnValue ***wrt, QnValue ***grads)
{
    size_t n = (size_t)b->net.n_params + 1;
    *wrt = qn_arena_array(b->g->arena, n, sizeof **wrt);
    *grads = qn_arena_array(b->g->arena, n, sizeof **grads);
    if (!*wrt || !*grads)
        return QN_ENOMEM;
    for (int64_t i = 0; i < b->net.n_params; i++)
        (*wrt)[i] = b->net.params[i].state;
    return QN_OK;
}

static QnStatus build_train(QnSession *s)
{
    Built b = { 0 };
    QnStatus st = build_forward(s, true, s->batch, &b);
    QnValue **wrt = NULL, **grads = NULL, *finite = NULL;
    if (st != QN_OK)
        goto done;
    QN_TRY_DONE(list_params(&b, &wrt, &grads));
    for (int64_t i = 0; i < b.net.n_params; i++)
        s->n_params += qn_shape_count(&wrt[i]->type.shape);
    QN_TRY_DONE(differentiate(s, &b, wrt, grads, &finite));
    if (s->recipe->accumulate == 1) {
        QN_TRY_DONE(add_update(s->recipe, &b.net, grads, finite));
    } else {
        for (int64_t i = 0; i < b.net.n_params; i++) {
            QnValue *sum = accumulator(b.g, &b.net.params[i]);
            QnValue *more = qn_add(b.g, sum, grads[i]); /* a batch that overflowed is left out */
            qn_assign(b.g, sum, finite ? qn_where(b.g, finite, more, sum) : more);
        }
        QN_TRY_DONE(qn_graph_check(b.g));
        QN_TRY_DONE(build_update(s, &b.net, &s->update_graph));
    }
    s->train_graph = b.g;
    b.g = NULL;
done:
    qn_net_fini(&b.net);
    qn_graph_free(b.g);
    return st;
}

static QnStatus build_eval(QnSession *s)
{
    Built b = { 0 };
    QnStatus st = build_forward(s, false, s->eval_batch, &b);
    qn_net_fini(&b.net);
    if (st == QN_OK)
        s->eval_graph = b.g;
    else
        qn_graph_free(b.g);
    return st;
}

QnStatus qn_session_optimise(const QnSession *s, QnGraph *g, bool no_passes)
{
    const QnRecipe *r = s->recipe;
    QnPipelineOptions o = qn_device_passes(s->device);
    o.level = no_passes ? QN_O0 : (QnLevel)r->level;
    o.off = no_passes ? NULL : r->passes_off;
    o.memory_budget_bytes = r->memory_budget_bytes;
    o.recompute_share = r->recompute;
    return qn_pipeline_run(g, &o);
}

static void remove_effects(QnGraph *g)
{
    for (QnNode *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op->traits & QN_EFFECT)
            qn_graph_remove(g, n);
    }
}

/* Of a graph that is only looked at: it changes no state. Takes b, whatever st says. */
static QnStatus finish_look(const QnSession *s, Built *b, QnStatus st, QnGraph **out)
{
    if (st == QN_OK) {
        remove_effects(b->g);
        st = qn_session_optimise(s, b->g, s->no_passes);
    }
    qn_net_fini(&b->net);
    if (st == QN_OK)
        *out = b->g;
    else
        qn_graph_free(b->g);
    return st;
}

QnStatus qn_session_build_probe(const QnSession *s, QnPrecision precision, int64_t rows,
                                QnGraph **out)
{
    QnSession as = *s;
    Built b = { 0 };
    QnValue **wrt, **grads, *finite;
    as.precision = precision;
    QnStatus st = build_forward(&as, true, rows, &b);
    if (st == QN_OK)
        st = list_params(&b, &wrt, &grads);
    if (st == QN_OK)
        st = differentiate(&as, &b, wrt, grads, &finite);
    if (st == QN_OK)
        st = qn_graph_output(b.g, "grad_norm", qn_global_norm(b.g, grads, (int)b.net.n_params));
    return finish_look(&as, &b, st, out);
}

QnStatus qn_session_build_watch(const QnSession *s, int64_t rows, QnGraph **out)
{
    QnSession as = *s;
    Built b = { 0 };
    QnValue **wrt, **grads;
    as.precision = QN_PRECISION_FP32;
    QnStatus st = build_forward(&as, true, rows, &b);
    if (st == QN_OK)
        st = list_params(&b, &wrt, &grads);
    if (st == QN_OK)
        st = qn_auto_watch(s->mix, b.g, b.loss, wrt, (int)b.net.n_params);
    return finish_look(&as, &b, st, out);
}

QnStatus qn_session_build_step(const QnSession *s, QnPrecision precision, QnGraph **out)
{
    QnSession as = *s;
    as.precision = precision;
    as.train_graph = as.update_graph = NULL;
    QnStatus st = build_train(&as);
    if (st == QN_OK)
        st = qn_session_optimise(&as, as.train_graph, s->no_passes);
    qn_graph_free(as.update_graph);
    if (st == QN_OK)
        *out = as.train_graph;
    else
        qn_graph_free(as.train_graph);
    return st;
}

/* The model as it trains, before anything is in fewer bits. */
static QnStatus build_plain(const QnSession *s, QnGraph **out)
{
    QnSession as = *s;
    Built b = { 0 };
    as.precision = QN_PRECISION_FP32;
    QnStatus st = build_forward(&as, true, s->batch, &b);
    qn_net_fini(&b.net);
    if (st == QN_OK)
        *out = b.g;
    else
        qn_graph_free(b.g);
    return st;
}

static QnStatus begin_f8(QnSession *s)
{
    QnGraph *g;
    QN_TRY(build_plain(s, &g));
    QnStatus st = qn_f8_choice_new(g, s->device, s->planning.choices, &s->f8);
    qn_graph_free(g);
    return st;
}

/* All states that any choice of precisions may need are in the store from the start: in fp8 its
 * histories. */
static QnStatus begin_auto(QnSession *s)
{
    QnGraph *g = NULL, *state = NULL;
    QN_TRY(build_plain(s, &g));
    QnStatus st = qn_auto_new(s, g, &s->mix);
    qn_graph_free(g);
    g = NULL;
    QN_TRY(st);
    qn_auto_widest(s->mix);
    st = qn_session_build_step(s, QN_PRECISION_AUTO, &g);
    qn_auto_reset(s->mix);
    if (st == QN_OK)
        st = qn_store_add(s->store, g);
    if (st == QN_OK)
        st = qn_auto_state_graph(s->mix, &state);
    if (st == QN_OK)
        st = qn_store_add(s->store, state);
    qn_graph_free(g);
    qn_graph_free(state);
    return st;
}

QnStatus qn_session_build(QnSession *s, const QnSessionOptions *o)
{
    if (o->training && !s->f8 && qn_f8_choice_is_asked(s->recipe))
        QN_TRY(begin_f8(s));
    QN_TRY(build_eval(s));
    if (o->training && s->precision == QN_PRECISION_AUTO && !s->mix)
        QN_TRY(begin_auto(s));
    if (o->training)
        QN_TRY(build_train(s));
    QnGraph *graphs[] = { s->eval_graph, s->train_graph, s->update_graph };
    for (int i = 0; i < QN_COUNT(graphs); i++) {
        if (!graphs[i] || o->build_only)
            continue;
        if (s->inference) /* the passes come when weights are there, and take away no states */
            QN_TRY(qn_pass_dce(graphs[i], &(QnPipelineOptions){ 0 }));
        else
            QN_TRY(qn_session_optimise(s, graphs[i], o->no_passes));
        QN_TRY(qn_store_add(s->store, graphs[i]));
    }
    return QN_OK;
}
