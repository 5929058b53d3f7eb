#include "train/precision_auto.h"

#include "nn/net.h"
#include "nn/optim.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/precision.h"
#include "train/f8_choice.h"
#include "train/session_impl.h"

#include <string.h>

#define STATE "optim.precision"

/* A row of the state for each layer, and one more for the run. */
enum { NOW, CLEAN, STEPS = CLEAN + QN_AUTO_TYPES, COLUMNS = STEPS + QN_AUTO_TYPES };
enum { SUSPECT, SWITCHES };

/* ---- layers ---- */

const char *qn_auto_weight_of(const QnNode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const QnValue *v = n->in[i];
        while (v && (v->node->op->traits & QN_MOVES_DATA) && v->node->n_in == 1)
            v = v->node->in[0];
        if (v && v->node->op == &qn_op_state && ((const QnStateAttr *)v->node->attr)->trainable)
            return qn_node_label(v->node);
    }
    return NULL;
}

static int64_t layer_of(const QnAutoPrecision *m, const QnNode *n)
{
    const char *weight = NULL;
    if (qn_precision_is_product(n->op) || n->op == &qn_op_embedding)
        weight = qn_auto_weight_of(n);
    for (int64_t i = 0; weight && i < m->n; i++) {
        if (!strcmp(m->layers[i].name, weight))
            return i;
    }
    return -1;
}

/* Whether a product may be in 8 bits. */
static bool takes_f8(const QnSession *s, const QnNode *n)
{
    switch (s->recipe->precision_auto.fp8) {
    case QN_F8_ALWAYS: return qn_precision_takes_f8(n);
    case QN_F8_FASTER: return qn_f8_choice_of(s->f8, s->planning.choices, n);
    default: return false;
    }
}

static QnStatus add_layer(QnAutoPrecision *m, const QnSession *s, const QnNode *n)
{
    bool is_product = qn_precision_is_product(n->op);
    const char *weight = is_product || n->op == &qn_op_embedding ? qn_auto_weight_of(n) : NULL;
    int64_t at = layer_of(m, n);
    if (!weight)
        return QN_OK;
    if (at < 0) {
        QN_TRY(QN_GROW(m->layers, m->cap, m->n));
        at = m->n++;
        m->layers[at] = (QnAutoLayer){ .name = qn_arena_strdup(m->arena, weight) };
        if (!m->layers[at].name)
            return QN_ENOMEM;
    }
    m->layers[at].takes_f8 |= is_product && takes_f8(s, n);
    return QN_OK;
}

QnStatus qn_auto_new(const QnSession *s, const QnGraph *g, QnAutoPrecision **out)
{
    QnAutoPrecision *m = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    *m = (QnAutoPrecision){ .arena = qn_arena_new() };
    QnStatus st = m->arena ? QN_OK : QN_ENOMEM;
    QN_GRAPH_EACH(g, n)
    {
        if (st == QN_OK)
            st = add_layer(m, s, n);
    }
    if (st == QN_OK)
        *out = m;
    else
        qn_auto_free(m);
    return st;
}

void qn_auto_free(QnAutoPrecision *m)
{
    if (!m)
        return;
    qn_arena_free(m->arena);
    qn_free(m->layers);
    qn_free(m);
}

void qn_auto_widest(QnAutoPrecision *m)
{
    for (int64_t i = 0; i < m->n; i++)
        m->layers[i].now = m->layers[i].takes_f8 ? QN_PRECISION_FP8 : QN_PRECISION_FP32;
}

void qn_auto_reset(QnAutoPrecision *m)
{
    for (int64_t i = 0; i < m->n; i++)
        m->layers[i].now = QN_PRECISION_FP32;
}

QnDtype qn_auto_of(void *choice, const QnNode *n)
{
    static const QnDtype dtypes[] = { QN_DTYPE_F32, QN_DTYPE_BF16, QN_DTYPE_F16,
                                      QN_DTYPE_F8E4M3FN };
    QnAutoChoice *c = choice;
    int64_t at = layer_of(c->mix, n);
    if (at >= 0)
        c->last = dtypes[c->mix->layers[at].now];
    return c->last;
}

void qn_auto_count(QnAutoPrecision *m, bool left_out)
{
    m->suspect = left_out;
    for (int64_t i = 0; i < m->n; i++)
        m->layers[i].steps[m->layers[i].now]++;
}

/* ---- the state ---- */

QnStatus qn_auto_state_graph(const QnAutoPrecision *m, QnGraph **out)
{
    QnGraph *g = qn_graph_new();
    if (!g)
        return QN_ENOMEM;
    qn_state(g, &(QnStateAttr){
                    .name = STATE, .dtype = QN_DTYPE_I64, .dims = { 2, { m->n + 1, COLUMNS } } });
    QnStatus st = qn_graph_check(g);
    if (st == QN_OK)
        *out = g;
    else
        qn_graph_free(g);
    return st;
}

static int64_t *rows(const QnAutoPrecision *m)
{
    return qn_alloc_array((size_t)m->n + 1, COLUMNS * sizeof(int64_t));
}

QnStatus qn_auto_keep(const QnSession *s)
{
    const QnAutoPrecision *m = s->mix;
    const QnSlot *slot = m ? qn_store_find(s->store, STATE) : NULL;
    if (!slot)
        return QN_OK;
    int64_t *row = rows(m);
    if (!row)
        return QN_ENOMEM;
    for (int64_t i = 0; i < m->n; i++) {
        int64_t *to = row + i * COLUMNS;
        to[NOW] = (int64_t)m->layers[i].now;
        memcpy(to + CLEAN, m->layers[i].clean, sizeof m->layers[i].clean);
        memcpy(to + STEPS, m->layers[i].steps, sizeof m->layers[i].steps);
    }
    memset(row + m->n * COLUMNS, 0, COLUMNS * sizeof *row);
    row[m->n * COLUMNS + SUSPECT] = m->suspect;
    row[m->n * COLUMNS + SWITCHES] = m->switches;
    QnStatus st = qn_store_write(s->store, slot, row);
    qn_free(row);
    return st;
}

static QnStatus take_row(QnAutoLayer *l, const int64_t *row)
{
    bool sound =
        row[NOW] >= 0 && row[NOW] < QN_AUTO_TYPES && (row[NOW] != QN_PRECISION_FP8 || l->takes_f8);
    for (int k = CLEAN; k < COLUMNS; k++)
        sound &= row[k] >= 0;
    if (!sound)
        return qn_fail(QN_EFORMAT,
                       "state '" STATE "': layer '%s' stands at %lld, which is no type that it may "
                       "have; does train.precision_auto.fp8 differ from the run's?",
                       l->name, (long long)row[NOW]);
    l->now = (QnPrecision)row[NOW];
    memcpy(l->clean, row + CLEAN, sizeof l->clean);
    memcpy(l->steps, row + STEPS, sizeof l->steps);
    return QN_OK;
}

QnStatus qn_auto_recall(QnSession *s)
{
    QnAutoPrecision *m = s->mix;
    const QnSlot *slot = m ? qn_store_find(s->store, STATE) : NULL;
    if (!slot)
        return QN_OK;
    int64_t *row = rows(m);
    QnStatus st = row ? qn_store_read(s->store, slot, row) : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < m->n; i++)
        st = take_row(&m->layers[i], row + i * COLUMNS);
    if (st == QN_OK) {
        m->suspect = row[m->n * COLUMNS + SUSPECT] != 0;
        m->switches = row[m->n * COLUMNS + SWITCHES];
    }
    qn_free(row);
    return st == QN_OK ? qn_session_set_precision(s, QN_PRECISION_AUTO) : st;
}

/* ---- what a probe reads ---- */

/* "auto.d.3.17": of layer 3, by value. */
static QnStatus watch(QnGraph *g, char what, int64_t layer, QnValue *v)
{
    const char *name = qn_arena_printf(g->arena, "auto.%c.%lld.%lld", what, (long long)layer,
                                       (long long)g->n_outputs);
    return name ? qn_graph_output(g, name, v) : QN_ENOMEM;
}

static QnStatus watch_weights(const QnAutoPrecision *m, QnGraph *g, QnValue *const *params,
                              QnValue *const *grads, int n_params)
{
    for (int64_t i = 0; i < m->n; i++) {
        for (int k = 0; k < n_params; k++) {
            if (!strcmp(qn_node_label(params[k]->node), m->layers[i].name))
                QN_TRY(watch(g, 'w', i, grads[k]));
        }
    }
    return QN_OK;
}

QnStatus qn_auto_watch(const QnAutoPrecision *m, QnGraph *g, QnValue *loss, QnValue *const *params,
                       int n_params)
{
    int64_t most = n_params + 1;
    int n = n_params;
    QN_GRAPH_EACH(g, node)
    most += layer_of(m, node) >= 0;
    QnValue **wrt = qn_arena_array(g->arena, (size_t)most, sizeof *wrt);
    QnValue **grads = qn_arena_array(g->arena, (size_t)most, sizeof *grads);
    int64_t *layer = qn_arena_array(g->arena, (size_t)most, sizeof *layer);
    if (!wrt || !grads || !layer)
        return QN_ENOMEM;
    if (n_params)
        memcpy(wrt, params, (size_t)n_params * sizeof *wrt);
    QN_GRAPH_EACH(g, node)
    {
        if ((layer[n] = layer_of(m, node)) >= 0)
            wrt[n++] = &node->out[0];
    }
    QN_TRY(qn_grad(g, loss, wrt, n, grads));
    QN_TRY(qn_graph_output(g, "grad_norm", qn_global_norm(g, grads, n_params)));
    QN_TRY(watch_weights(m, g, params, grads, n_params));
    for (int i = n_params; i < n; i++) {
        QN_TRY(watch(g, 'y', layer[i], wrt[i]));
        QN_TRY(watch(g, 'd', layer[i], grads[i]));
    }
    return qn_graph_check(g);
}
