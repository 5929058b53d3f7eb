#include "plan/models/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const QnInitSpec small = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };

void qn_text_push(QnNet *net, const char *prefix, int64_t number)
{
    char name[40];
    snprintf(name, sizeof name, "%s%lld", prefix, (long long)number);
    qn_net_push(net, name);
}

int64_t qn_text_width(const QnValue *x)
{
    return x->type.shape.rank ? x->type.shape.dim[x->type.shape.rank - 1] : 1;
}

QnValue *qn_text_last(QnGraph *g, QnValue *x)
{
    const QnShape *s = &x->type.shape;
    if (qn_value_is_poison(x) || s->rank != 3)
        return x;
    int64_t batch = s->dim[0], tokens = s->dim[1], width = s->dim[2];
    x = qn_slice_axis(g, x, 1, tokens - 1, tokens);
    return qn_reshape(g, x, &QN_SHAPE(batch, width));
}

QnValue *qn_text_split_heads(QnGraph *g, QnValue *x, int64_t heads)
{
    const QnShape *s = &x->type.shape;
    if (qn_value_is_poison(x) || s->rank != 3)
        return x;
    QnShape to = QN_SHAPE(s->dim[0], s->dim[1], heads, s->dim[2] / heads);
    return qn_swap_axes(g, qn_reshape(g, x, &to), 1, 2);
}

QnValue *qn_text_join_heads(QnGraph *g, QnValue *x)
{
    const QnShape *s = &x->type.shape;
    if (qn_value_is_poison(x) || s->rank != 4)
        return x;
    QnShape to = QN_SHAPE(s->dim[0], s->dim[2], s->dim[1] * s->dim[3]);
    return qn_reshape(g, qn_swap_axes(g, x, 1, 2), &to);
}

/* ---- what generation keeps ---- */

static const char kept[] = "kept_";

QnValue *qn_cache_keep(QnNet *net, const char *name, const QnShape *shape)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", kept, name);
    return qn_net_buffer(net, text, shape, 0);
}

bool qn_cache_is_kept(const char *name)
{
    const char *dot = strrchr(name, '.');
    return !strncmp(dot ? dot + 1 : name, kept, sizeof kept - 1);
}

void qn_cache_put(QnNet *net, const char *name, QnValue *v)
{
    char text[sizeof net->scope + 64];
    snprintf(text, sizeof text, "%s.%s", net->scope, name);
    if (!qn_value_is_poison(v) && qn_graph_output(net->g, text, v) != QN_OK)
        qn_graph_poison(net->g);
}

/* ---- rotary positions ---- */

QnAngles qn_text_angles(QnNet *net, int64_t first, int64_t tokens, int64_t width)
{
    QnAngles a;
    qn_net_push(net, "angles");
    QnShape s = QN_SHAPE(first + tokens, 1, width);
    a.cosines =
        qn_slice_axis(net->g, qn_net_buffer(net, "cosines", &s, 1), 0, first, first + tokens);
    a.sines = qn_slice_axis(net->g, qn_net_buffer(net, "sines", &s, 0), 0, first, first + tokens);
    qn_net_pop(net);
    return a;
}

/* The halves (a, b) of features become (a c - b s, b c + a s): the sines carry the sign. */
QnValue *qn_text_rotate(QnGraph *g, QnValue *x, const QnAngles *a)
{
    int64_t width = qn_text_width(x), half = width / 2;
    if (qn_value_is_poison(x))
        return x;
    QnValue *turned[] = { qn_slice_axis(g, x, -1, half, width), qn_slice_axis(g, x, -1, 0, half) };
    QnValue *y = qn_mul(g, qn_concat(g, turned, 2, -1), a->sines);
    return qn_add(g, qn_mul(g, x, a->cosines), y);
}

/* ---- attention ---- */

/* x (B,T,H,D), normed and turned as the spec says. */
static QnValue *prepare(QnNet *net, const char *name, QnValue *x, const QnSelfSpec *s)
{
    if (s->norm)
        x = qn_nn_rms_norm(net, name, x);
    return s->angles ? qn_text_rotate(net->g, x, s->angles) : x;
}

QnValue *qn_text_reorder(QnGraph *g, QnValue *x, QnValue *order)
{
    return order ? qn_gather(g, x, order, 0) : x;
}

/* Keys and values (B,T,G,D) as attention reads them: with what earlier steps have left. */
static QnValue *with_kept(QnNet *net, const char *name, QnValue *x, const QnSelfSpec *s)
{
    if (qn_value_is_poison(x) || !s->in)
        return qn_swap_axes(net->g, x, 1, 2);
    const QnShape *d = &x->type.shape;
    QnShape all = QN_SHAPE(d->dim[0], d->dim[2], s->in->context + d->dim[1], d->dim[3]);
    qn_cache_put(net, name, x);
    if (!s->in->context)
        return qn_swap_axes(net->g, x, 1, 2);
    return qn_text_reorder(net->g, qn_cache_keep(net, name, &all), s->order);
}

/* A linear layer, and where there is an adapter (Hu et al. 2022) its product of low rank. */
static QnValue *adapted(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias,
                        int64_t rank)
{
    QnValue *y = qn_nn_linear_init(net, name, x, out, bias, &small);
    if (!rank)
        return y;
    qn_net_push(net, name);
    QnValue *low = qn_nn_dropout(net, x, 0.1);
    low = qn_nn_linear_init(net, "lora_a", low, rank, false, &small);
    y = qn_add(net->g, y, qn_nn_linear_init(net, "lora_b", low, out, false, &small));
    qn_net_pop(net);
    return y;
}

QnValue *qn_text_self(QnNet *net, const char *name, QnValue *x, const QnSelfSpec *spec)
{
    QnGraph *g = net->g;
    const QnShape *s = &x->type.shape;
    if (qn_value_is_poison(x) || s->rank != 3)
        return x;
    int64_t batch = s->dim[0], tokens = s->dim[1], width = s->dim[2], heads = spec->heads;
    int64_t shared = spec->kv_heads ? spec->kv_heads : heads;
    int64_t d = spec->head ? spec->head : width / heads;
    qn_net_push(net, name);
    QnValue *qkv = adapted(net, "qkv", x, (heads + 2 * shared) * d, spec->bias_in, spec->adapter);
    qkv = qn_reshape(g, qkv, &QN_SHAPE(batch, tokens, heads + 2 * shared, d));
    /* queries and keys are turned together */
    bool apart = spec->norm || !spec->angles;
    QnDims cut = { 3, { heads, shared, shared } };
    if (!apart)
        cut = (QnDims){ 2, { heads + shared, shared } };
    QnNode *parts = qn_split_sizes(g, qkv, 2, &cut);
    QnValue *q = qn_node_out(g, parts, 0), *k, *v = qn_node_out(g, parts, apart ? 2 : 1);
    if (apart) {
        q = prepare(net, "q_norm", q, spec);
        k = prepare(net, "k_norm", qn_node_out(g, parts, 1), spec);
    } else {
        QnNode *two =
            qn_split_sizes(g, prepare(net, "", q, spec), 2, &(QnDims){ 2, { heads, shared } });
        q = qn_node_out(g, two, 0);
        k = qn_node_out(g, two, 1);
    }
    k = with_kept(net, "k", k, spec);
    v = with_kept(net, "v", v, spec);
    QnValue *y = qn_attention(g, qn_swap_axes(g, q, 1, 2), k, v, NULL, true, 0);
    y = qn_reshape(g, qn_swap_axes(g, y, 1, 2), &QN_SHAPE(batch, tokens, heads * d));
    y = adapted(net, "proj", y, width, spec->bias_out, spec->adapter);
    qn_net_pop(net);
    return y;
}

/* ---- feed-forward nets ---- */

/* silu(first half) * second half, of the last axis. */
static QnValue *gate(QnGraph *g, QnValue *x)
{
    int64_t half = qn_text_width(x) / 2;
    if (qn_value_is_poison(x))
        return x;
    QnNode *two = qn_split_sizes(g, x, -1, &(QnDims){ 2, { half, half } });
    return qn_mul(g, qn_silu(g, qn_node_out(g, two, 0)), qn_node_out(g, two, 1));
}

QnValue *qn_text_gated(QnNet *net, const char *name, QnValue *x, int64_t hidden, bool bias)
{
    int64_t width = qn_text_width(x);
    qn_net_push(net, name);
    QnValue *y = gate(net->g, qn_nn_linear_init(net, "gate_up", x, 2 * hidden, bias, &small));
    y = qn_nn_linear_init(net, "down", y, width, bias, &small);
    qn_net_pop(net);
    return y;
}

/* ---- experts ---- */

/* Weights (used,rows,columns) of the experts that tokens come to; the others' are there too. */
static QnValue *expert_weights(QnNet *net, const char *name, const QnExpertSpec *s, int64_t used,
                               int64_t rows, int64_t columns)
{
    char idle[40];
    snprintf(idle, sizeof idle, "%s_idle", name);
    if (used < s->experts)
        qn_net_param(net, idle, &QN_SHAPE(s->experts - used, rows, columns), &small, true);
    return qn_net_param(net, name, &QN_SHAPE(used, rows, columns), &small, true);
}

/* x (used,rows,C) times each expert's own matrix. */
static QnValue *expert_linear(QnNet *net, const char *name, QnValue *x, const QnExpertSpec *s,
                              int64_t out)
{
    char bias[40];
    if (qn_value_is_poison(x))
        return x;
    int64_t used = x->type.shape.dim[0], in = x->type.shape.dim[2];
    QnValue *w = expert_weights(net, name, s, used, out, in);
    QnValue *y = qn_matmul(net->g, x, w, NULL, false, true);
    if (!s->bias)
        return y;
    snprintf(bias, sizeof bias, "%s_bias", name);
    return qn_add(net->g, y, expert_weights(net, bias, s, used, 1, out));
}

QnValue *qn_text_experts(QnNet *net, const char *name, QnValue *x, const QnExpertSpec *s)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x) || x->type.shape.rank != 3)
        return x;
    QnShape whole = x->type.shape;
    int64_t tokens = whole.dim[0] * whole.dim[1], width = whole.dim[2], pairs = tokens * s->active;
    double missed = pow(1 - (double)s->active / (double)s->experts, (double)tokens);
    int64_t used = (int64_t)ceil((double)s->experts * (1 - missed) - 1e-6);
    int64_t rows = (pairs + used - 1) / used;
    qn_net_push(net, name);
    QnValue *flat = qn_reshape(g, x, &QN_SHAPE(tokens, width)), *top[2];
    QnValue *scores =
        qn_softmax(g, qn_nn_linear_init(net, "router", flat, s->experts, s->bias, &small), -1);
    qn_topk(g, scores, s->active, -1, true, top);
    /* where each expert's rows lie is found while running */
    QnValue *ids = qn_input(g, qn_arena_printf(g->arena, "%s.rows", net->scope), QN_DTYPE_I64,
                            &QN_SHAPE(used * rows));
    QnValue *y = qn_reshape(g, qn_gather(g, flat, ids, 0), &QN_SHAPE(used, rows, width));
    y = gate(g, expert_linear(net, "gate_up", y, s, 2 * s->hidden));
    y = qn_reshape(g, expert_linear(net, "down", y, s, width), &QN_SHAPE(used * rows, width));
    QnValue *share = qn_sum(g, top[0], QN_INTS(-1), true);
    QnValue *none = qn_full(g, 0, x->type.dtype, &flat->type.shape);
    y = qn_mul(g, qn_scatter_add(g, none, ids, y, 0), share);
    qn_net_pop(net);
    return qn_reshape(g, y, &whole);
}
