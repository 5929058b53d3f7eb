#include "nn/optim.h"
#include "pass/grad.h"

#include <stdio.h>
#include <string.h>

typedef struct Update {
    QnNet *net;
    const QnOptim *o;
    const QnParam *p;
    QnValue *grad, *lr;
    QnValue *t; /* the update's number, from 1 */
    double decay;
    bool whole; /* its operator leaves steps out by itself */
} Update;

/* A moment of the parameter, zero at first. */
static QnValue *moment(const Update *u, const char *kind)
{
    QnGraph *g = u->net->g;
    const QnType *type = &u->p->state->type;
    QnStateAttr a = { .name = qn_arena_printf(g->arena, "optim.%s.%s", kind, u->p->name),
                      .dtype = type->dtype };
    if (!a.name)
        return qn_graph_poison(g);
    a.dims.n = type->shape.rank;
    memcpy(a.dims.d, type->shape.dim, sizeof a.dims.d);
    return qn_state(g, &a);
}

/* With `given` only where that is true. */
static void assign_one(QnGraph *g, QnValue *given, QnValue *state, QnValue *now)
{
    qn_assign(g, state, given ? qn_where(g, given, now, state) : now);
}

/* Assigns outputs 0.. of the update node to the parameter and its moments; *p is the new one. */
static void assign_all(const Update *u, QnNode *n, QnValue *const *moments, int n_moments,
                       QnValue **p)
{
    QnGraph *g = u->net->g;
    QnValue *given = u->whole ? NULL : u->o->apply_if;
    *p = qn_node_out(g, n, 0);
    assign_one(g, given, u->p->state, *p);
    for (int i = 0; i < n_moments; i++)
        assign_one(g, given, moments[i], qn_node_out(g, n, i + 1));
}

static void update_sgd(const Update *u, QnValue **p)
{
    const QnOptim *o = u->o;
    QnValue *m = o->momentum > 0 ? moment(u, "momentum") : NULL;
    QnNode *n =
        qn_sgd(u->net->g, u->p->state, m, u->grad, u->lr, o->momentum, u->decay, o->nesterov);
    assign_all(u, n, &m, m ? 1 : 0, p);
}

static void update_adam(const Update *u, QnValue **p)
{
    const QnOptim *o = u->o;
    QnValue *m[] = { moment(u, "m"), moment(u, "v") };
    QnNode *n = qn_adam(u->net->g, u->p->state, m[0], m[1], u->grad, u->lr, u->t, o->beta1,
                        o->beta2, o->eps, u->decay);
    assign_all(u, n, m, 2, p);
}

static void update_adamw(const Update *u, QnValue **p)
{
    const QnOptim *o = u->o;
    QnValue *m[] = { moment(u, "m"), moment(u, "v") };
    QnNode *n = qn_adamw(u->net->g, u->p->state, m[0], m[1], u->grad, u->lr, u->t, o->beta1,
                         o->beta2, o->eps, u->decay);
    assign_all(u, n, m, 2, p);
}

static void update_lamb(const Update *u, QnValue **p)
{
    const QnOptim *o = u->o;
    QnValue *m[] = { moment(u, "m"), moment(u, "v") };
    QnNode *n = qn_lamb(u->net->g, u->p->state, m[0], m[1], u->grad, u->lr, u->t, o->beta1,
                        o->beta2, o->eps, u->decay);
    assign_all(u, n, m, 2, p);
}

static void update_adagrad(const Update *u, QnValue **p)
{
    QnValue *v = moment(u, "v");
    QnNode *n = qn_adagrad(u->net->g, u->p->state, v, u->grad, u->lr, u->t, 0, u->decay, u->o->eps);
    assign_all(u, n, &v, 1, p);
}

static void update_rmsprop(const Update *u, QnValue **p)
{
    const QnOptim *o = u->o;
    QnValue *m[] = { moment(u, "v"), o->momentum > 0 ? moment(u, "momentum") : NULL };
    QnNode *n = qn_rmsprop(u->net->g, u->p->state, m[0], m[1], u->grad, u->lr,
                           o->alpha > 0 ? o->alpha : 0.99, o->momentum, u->decay, o->eps);
    assign_all(u, n, m, m[1] ? 2 : 1, p);
}

typedef struct Rule {
    const char *name;
    void (*update)(const Update *u, QnValue **p);
    bool whole; /* a negative lr leaves the step out (ops/update.h) */
} Rule;

static const Rule rules[] = {
    { "sgd", update_sgd, true },         { "adam", update_adam, true },
    { "adamw", update_adamw, true },     { "lamb", update_lamb, false },
    { "adagrad", update_adagrad, true }, { "rmsprop", update_rmsprop, true },
};

static const Rule *find_rule(const char *name)
{
    for (int i = 0; i < QN_COUNT(rules); i++) {
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    }
    return NULL;
}

static QnStatus unknown(const char *name)
{
    char list[256] = "";
    size_t used = 0;
    for (int i = 0; i < QN_COUNT(rules); i++) {
        int n = snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", rules[i].name);
        used += QN_MIN((size_t)n, sizeof list - used);
    }
    return qn_fail(QN_EUSAGE, "no optimizer '%s'; there are %s", name, list);
}

static void average(QnNet *net, const QnOptim *o, const QnParam *p, QnValue *now)
{
    QnGraph *g = net->g;
    QnStateAttr a = *(const QnStateAttr *)p->state->node->attr;
    a.name = qn_arena_printf(g->arena, "ema.%s", p->name);
    a.trainable = false;
    QnValue *ema = a.name ? qn_state(g, &a) : qn_graph_poison(g);
    QnValue *step = qn_mul(g, qn_sub(g, now, ema), qn_scalar_like(g, ema, 1 - o->ema));
    assign_one(g, o->apply_if, ema, qn_add(g, ema, step));
}

QnStatus qn_optim_apply(QnNet *net, const QnOptim *o, QnValue *const *grads, QnValue *lr,
                        QnValue *step, QnValue **grad_norm)
{
    QnGraph *g = net->g;
    const Rule *rule = find_rule(o->name);
    if (!rule)
        return unknown(o->name);
    int n = (int)net->n_params;
    QnValue *norm = NULL, **d = qn_arena_array(g->arena, (size_t)n + 1, sizeof *d);
    if (!d)
        return QN_ENOMEM;
    memcpy(d, grads, (size_t)n * sizeof *d);
    if (o->clip_norm > 0)
        norm = qn_clip_global_norm(g, grads, n, o->clip_norm, d);
    if (o->clip_value > 0)
        qn_clip_values(g, d, n, o->clip_value, d);
    int64_t one = 1;
    QnValue *t = qn_add(g, step, qn_constant(g, QN_DTYPE_I64, &(QnShape){ 0 }, &one));
    if (o->apply_if && rule->whole)
        lr = qn_where(g, o->apply_if, lr, qn_scalar_like(g, lr, -1));
    for (int i = 0; i < n; i++) {
        const QnParam *p = &net->params[i];
        QnValue *now;
        Update u = { net, o, p, d[i], lr, t, p->decay ? o->weight_decay : 0, rule->whole };
        qn_scope_push(g, p->name);
        rule->update(&u, &now);
        if (o->ema > 0)
            average(net, o, p, now);
        memcpy(g->scope, net->scope, sizeof g->scope);
    }
    if (grad_norm)
        *grad_norm = norm;
    return qn_graph_check(g);
}

QnStatus qn_optim_minimise(QnNet *net, const QnOptim *o, QnValue *loss, QnValue *lr, QnValue *step,
                           QnValue **grad_norm)
{
    QnGraph *g = net->g;
    QnValue **wrt = qn_arena_array(g->arena, (size_t)net->n_params + 1, sizeof *wrt);
    QnValue **grads = qn_arena_array(g->arena, (size_t)net->n_params + 1, sizeof *grads);
    if (!wrt || !grads)
        return QN_ENOMEM;
    for (int64_t i = 0; i < net->n_params; i++)
        wrt[i] = net->params[i].state;
    QN_TRY(qn_grad(g, loss, wrt, (int)net->n_params, grads));
    return qn_optim_apply(net, o, grads, lr, step, grad_norm);
}
