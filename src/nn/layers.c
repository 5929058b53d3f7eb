#include "nn/layers.h"

static int64_t last_dim(const QnValue *x)
{
    const QnShape *s = &x->type.shape;
    return s->rank ? s->dim[s->rank - 1] : -1;
}

/* Fails the graph unless x has a last axis of known length. */
static bool has_width(QnNet *net, const char *what, const QnValue *x)
{
    if (qn_value_is_poison(x))
        return false;
    if (last_dim(x) > 0)
        return true;
    qn_fail(QN_ESHAPE, "%s: needs a last axis of known length", what);
    qn_graph_poison(net->g);
    return false;
}

QnValue *qn_nn_linear_init(QnNet *net, const char *name, QnValue *x, int64_t out, bool bias,
                           const QnInitSpec *init)
{
    static const QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
    if (!has_width(net, name, x))
        return qn_graph_poison(net->g);
    qn_net_push(net, name);
    QnValue *w = qn_net_param(net, "weight", &QN_SHAPE(out, last_dim(x)), init, true);
    QnValue *b = bias ? qn_net_param(net, "bias", &QN_SHAPE(out), &zeros, false) : NULL;
    QnValue *y = qn_matmul(net->g, x, w, b, false, true);
    qn_net_pop(net);
    return y;
}

/* weight of ones, and a bias of zeros if asked for. */
static void affine(QnNet *net, int64_t n, QnValue **weight, QnValue **bias)
{
    static const QnInitSpec ones = { QN_INIT_KIND_ONES, 0, 0, 0 };
    static const QnInitSpec zeros = { QN_INIT_KIND_ZEROS, 0, 0, 0 };
    *weight = qn_net_param(net, "weight", &QN_SHAPE(n), &ones, false);
    if (bias)
        *bias = qn_net_param(net, "bias", &QN_SHAPE(n), &zeros, false);
}

QnValue *qn_nn_layer_norm(QnNet *net, const char *name, QnValue *x, bool bias)
{
    QnValue *w, *b = NULL;
    if (!has_width(net, name, x))
        return qn_graph_poison(net->g);
    qn_net_push(net, name);
    affine(net, last_dim(x), &w, bias ? &b : NULL);
    QnValue *y = qn_layer_norm(net->g, x, w, b, -1, 1e-5);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_rms_norm(QnNet *net, const char *name, QnValue *x)
{
    QnValue *w;
    if (!has_width(net, name, x))
        return qn_graph_poison(net->g);
    qn_net_push(net, name);
    affine(net, last_dim(x), &w, NULL);
    QnValue *y = qn_rms_norm(net->g, x, w, -1, 1e-6);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_group_norm(QnNet *net, const char *name, QnValue *x, int64_t groups)
{
    QnValue *w, *b;
    if (qn_value_is_poison(x) || x->type.shape.rank < 2 || x->type.shape.dim[1] <= 0) {
        if (!qn_value_is_poison(x))
            qn_fail(QN_ESHAPE, "%s: needs a channel axis 1 of known length", name);
        return qn_graph_poison(net->g);
    }
    qn_net_push(net, name);
    affine(net, x->type.shape.dim[1], &w, &b);
    QnValue *y = qn_group_norm(net->g, x, w, b, groups, 1e-5);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_embedding(QnNet *net, const char *name, QnValue *ids, int64_t count, int64_t width,
                         QnValue **table)
{
    QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 };
    qn_net_push(net, name);
    QnValue *w = qn_net_param(net, "weight", &QN_SHAPE(count, width), &init, true);
    QnValue *y = qn_embedding(net->g, w, ids);
    qn_net_pop(net);
    if (table)
        *table = w;
    return y;
}

/* ---- transformers ---- */

/* (B,T,H*D) to (B,H,T,D) */
static QnValue *split_heads(QnGraph *g, QnValue *x, int64_t heads)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnShape to = QN_SHAPE(s->dim[0], s->dim[1], heads, s->dim[2] / heads);
    return qn_swap_axes(g, qn_reshape(g, x, &to), 1, 2);
}

/* (B,H,T,D) to (B,T,H*D) */
static QnValue *join_heads(QnGraph *g, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnShape to = QN_SHAPE(s->dim[0], s->dim[2], s->dim[1] * s->dim[3]);
    return qn_reshape(g, qn_swap_axes(g, x, 1, 2), &to);
}

QnValue *qn_nn_attention(QnNet *net, const char *name, QnValue *x, const QnAttentionSpec *spec)
{
    QnGraph *g = net->g;
    int64_t heads = spec->heads, shared = spec->kv_heads ? spec->kv_heads : heads;
    if (!has_width(net, name, x))
        return qn_graph_poison(g);
    int64_t width = last_dim(x), d = heads > 0 ? width / heads : 0;
    if (x->type.shape.rank != 3 || heads < 1 || d < 1 || width % heads || shared < 1 ||
        heads % shared) {
        qn_fail(QN_ESHAPE,
                "%s: %lld columns, %lld heads, %lld shared; needs (B,T,C) with C a "
                "multiple of the heads and those of the shared ones",
                name, (long long)width, (long long)heads, (long long)shared);
        return qn_graph_poison(g);
    }
    QnInitSpec in = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 }, out = in;
    out.scale = spec->out_std > 0 ? spec->out_std : 0.02;
    qn_net_push(net, name);
    int64_t kv = shared * d;
    QnValue *qkv = qn_nn_linear_init(net, "c_attn", x, width + 2 * kv, spec->bias, &in);
    /* one split, as its gradient is one concat: that of three slices would be a sum of three */
    QnNode *parts = qn_split_sizes(g, qkv, 2, &(QnDims){ 3, { width, kv, kv } });
    QnValue *q = split_heads(g, qn_node_out(g, parts, 0), heads);
    QnValue *k = split_heads(g, qn_node_out(g, parts, 1), shared);
    QnValue *v = split_heads(g, qn_node_out(g, parts, 2), shared);
    QnValue *y = join_heads(g, qn_attention(g, q, k, v, NULL, spec->causal, 0));
    y = qn_nn_dropout(net, qn_nn_linear_init(net, "c_proj", y, width, spec->bias, &out),
                      spec->dropout);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_gelu_mlp(QnNet *net, const char *name, QnValue *x, int64_t hidden, bool bias,
                        double dropout, double out_std)
{
    if (!has_width(net, name, x))
        return qn_graph_poison(net->g);
    QnInitSpec in = { QN_INIT_KIND_NORMAL, 0, 0, 0.02 }, out = in;
    out.scale = out_std > 0 ? out_std : 0.02;
    int64_t width = last_dim(x);
    qn_net_push(net, name);
    QnValue *y = qn_gelu_tanh(net->g, qn_nn_linear_init(net, "c_fc", x, hidden, bias, &in));
    y = qn_nn_dropout(net, qn_nn_linear_init(net, "c_proj", y, width, bias, &out), dropout);
    qn_net_pop(net);
    return y;
}

QnValue *qn_nn_block(QnNet *net, const char *name, QnValue *x, const QnAttentionSpec *spec)
{
    QnGraph *g = net->g;
    if (!has_width(net, name, x))
        return qn_graph_poison(g);
    qn_net_push(net, name);
    QnValue *y = qn_nn_layer_norm(net, "ln_1", x, spec->bias);
    x = qn_add(g, x, qn_nn_attention(net, "attn", y, spec));
    y = qn_nn_layer_norm(net, "ln_2", x, spec->bias);
    int64_t hidden = qn_value_is_poison(y) ? 0 : 4 * last_dim(y);
    x = qn_add(g, x,
               qn_nn_gelu_mlp(net, "mlp", y, hidden, spec->bias, spec->dropout, spec->out_std));
    qn_net_pop(net);
    return x;
}
