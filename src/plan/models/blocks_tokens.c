/* Blocks of nets that take an image as tokens. */
#include "plan/models/blocks.h"

/* ---- layouts ---- */

QnValue *qn_block_tokens(QnNet *net, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnShape flat = QN_SHAPE(s->dim[0], s->dim[1], s->dim[2] * s->dim[3]);
    return qn_swap_axes(net->g, qn_reshape(net->g, x, &flat), 1, 2);
}

QnValue *qn_block_image(QnNet *net, QnValue *x, int64_t h)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnShape image = QN_SHAPE(s->dim[0], s->dim[2], h, s->dim[1] / QN_MAX(h, 1));
    return qn_reshape(net->g, qn_swap_axes(net->g, x, 1, 2), &image);
}

QnValue *qn_block_channels_last(QnNet *net, QnValue *x)
{
    return qn_transpose(net->g, x, (QnInts){ 4, { 0, 2, 3, 1 } });
}

QnValue *qn_block_channels_first(QnNet *net, QnValue *x)
{
    return qn_transpose(net->g, x, (QnInts){ 4, { 0, 3, 1, 2 } });
}

QnValue *qn_block_patches(QnNet *net, const char *name, QnValue *x, int64_t width, int64_t patch)
{
    QnConvSpec spec = { .out = width, .kernel = patch, .stride = patch, .bias = true };
    int64_t h = qn_block_dim(x, 2), w = qn_block_dim(x, 3);
    if (!qn_value_is_poison(x) && (h % patch || w % patch)) {
        qn_fail(QN_ESHAPE,
                "images of %lld x %lld are not whole patches of %lld x %lld; use a "
                "multiple of %lld",
                (long long)h, (long long)w, (long long)patch, (long long)patch, (long long)patch);
        return qn_graph_poison(net->g);
    }
    return qn_block_tokens(net, qn_nn_conv(net, name, x, &spec));
}

/* ---- parameters ---- */

QnValue *qn_block_table(QnNet *net, const char *name, const QnShape *shape)
{
    QnInitSpec init = { QN_INIT_KIND_TRUNC_NORMAL, 0, 0, 0.02 };
    return qn_net_param(net, name, shape, &init, false);
}

QnValue *qn_block_prepend(QnNet *net, const char *name, QnValue *x, int64_t count)
{
    if (!count || qn_value_is_poison(x))
        return x;
    int64_t n = qn_block_dim(x, 0), c = qn_block_dim(x, 2);
    QnValue *own = qn_block_table(net, name, &QN_SHAPE(1, count, c));
    own = qn_expand(net->g, own, &QN_SHAPE(n, count, c));
    return qn_concat(net->g, (QnValue *[]){ own, x }, 2, 1);
}

QnValue *qn_block_positions(QnNet *net, QnValue *x, int64_t skip)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 1), c = qn_block_dim(x, 2);
    if (qn_value_is_poison(x))
        return x;
    QnValue *table = qn_block_table(net, "pos_embed", &QN_SHAPE(1, n - skip, c));
    if (!skip)
        return qn_add(g, x, table);
    QnValue *rest = qn_add(g, qn_slice_axis(g, x, 1, skip, n), table);
    return qn_concat(g, (QnValue *[]){ qn_slice_axis(g, x, 1, 0, skip), rest }, 2, 1);
}

QnValue *qn_block_token_classify(QnNet *net, const char *name, QnValue *x, bool mean)
{
    QnGraph *g = net->g;
    if (qn_value_is_poison(x))
        return x;
    QnShape row = QN_SHAPE(qn_block_dim(x, 0), qn_block_dim(x, 2));
    x = mean ? qn_mean(g, x, (QnInts){ 1, { 1 } }, false) : qn_slice_axis(g, x, 1, 0, 1);
    return qn_nn_linear(net, name, qn_reshape(g, x, &row), 1000, true);
}

QnValue *qn_block_scale(QnNet *net, const char *name, QnValue *x)
{
    QnInitSpec ones = { QN_INIT_KIND_ONES, 0, 0, 0 };
    if (qn_value_is_poison(x))
        return x;
    QnShape shape = QN_SHAPE(qn_block_dim(x, -1));
    return qn_mul(net->g, x, qn_net_param(net, name, &shape, &ones, false));
}

QnValue *qn_block_channel_scale(QnNet *net, const char *name, QnValue *x)
{
    QnInitSpec ones = { QN_INIT_KIND_ONES, 0, 0, 0 };
    if (qn_value_is_poison(x))
        return x;
    QnShape shape = QN_SHAPE(qn_block_dim(x, 1), 1, 1);
    return qn_mul(net->g, x, qn_net_param(net, name, &shape, &ones, false));
}

QnValue *qn_block_image_norm(QnNet *net, const char *name, QnValue *x)
{
    x = qn_nn_layer_norm(net, name, qn_block_channels_last(net, x), true);
    return qn_block_channels_first(net, x);
}

QnValue *qn_block_mlp(QnNet *net, const char *name, QnValue *x, int64_t hidden, int64_t out,
                      QnAct act)
{
    qn_net_push(net, name);
    x = qn_block_act(net, qn_nn_linear(net, "fc1", x, hidden, true), act);
    x = qn_nn_linear(net, "fc2", x, out, true);
    qn_net_pop(net);
    return x;
}

/* ---- windows ---- */

QnValue *qn_block_windows(QnNet *net, QnValue *x, int64_t side)
{
    QnGraph *g = net->g;
    int64_t n = qn_block_dim(x, 0), h = qn_block_dim(x, 1), w = qn_block_dim(x, 2);
    int64_t c = qn_block_dim(x, 3);
    if (qn_value_is_poison(x))
        return x;
    if (h % side || w % side) {
        qn_fail(QN_ESHAPE,
                "%lld x %lld places are not whole windows of %lld x %lld: this model does not "
                "take images of this size",
                (long long)h, (long long)w, (long long)side, (long long)side);
        return qn_graph_poison(g);
    }
    x = qn_reshape(g, x, &QN_SHAPE(n, h / side, side, w / side, side, c));
    x = qn_transpose(g, x, (QnInts){ 6, { 0, 1, 3, 2, 4, 5 } });
    return qn_reshape(g, x, &QN_SHAPE(n * (h / side) * (w / side), side * side, c));
}

QnValue *qn_block_unwindow(QnNet *net, QnValue *x, int64_t side, int64_t h, int64_t w)
{
    QnGraph *g = net->g;
    int64_t c = qn_block_dim(x, 2), n = qn_block_dim(x, 0) / QN_MAX(h / side * (w / side), 1);
    if (qn_value_is_poison(x))
        return x;
    x = qn_reshape(g, x, &QN_SHAPE(n, h / side, w / side, side, side, c));
    x = qn_transpose(g, x, (QnInts){ 6, { 0, 1, 3, 2, 4, 5 } });
    return qn_reshape(g, x, &QN_SHAPE(n, h, w, c));
}

QnValue *qn_block_pad_to(QnNet *net, QnValue *x, int64_t side)
{
    int64_t h = qn_block_dim(x, 1), w = qn_block_dim(x, 2);
    QnPadAttr a = { .before = { 4, { 0 } },
                    .after = { 4, { 0, (side - h % side) % side, (side - w % side) % side, 0 } } };
    return h % side || w % side ? qn_pad(net->g, x, &a) : x;
}

QnValue *qn_block_differences(QnNet *net, int64_t h, int64_t w)
{
    int64_t n = h * w, *ids = qn_alloc_array((size_t)(n * n), sizeof *ids);
    if (!ids)
        return qn_graph_poison(net->g);
    for (int64_t i = 0; i < n * n; i++) {
        int64_t a = i / n, b = i % n;
        ids[i] = (a / w - b / w + h - 1) * (2 * w - 1) + a % w - b % w + w - 1;
    }
    QnValue *y = qn_constant(net->g, QN_DTYPE_I64, &QN_SHAPE(n, n), ids);
    qn_free(ids);
    return y;
}

QnValue *qn_block_relative_bias(QnNet *net, const char *name, int64_t h, int64_t w, int64_t heads)
{
    QnGraph *g = net->g;
    QnShape rows = QN_SHAPE((2 * h - 1) * (2 * w - 1), heads),
            all = QN_SHAPE(1, heads, h * w, h * w);
    QnValue *table = qn_block_table(net, name, &rows);
    QnValue *bias = qn_embedding(g, table, qn_block_differences(net, h, w));
    return qn_reshape(g, qn_transpose(g, bias, (QnInts){ 3, { 2, 0, 1 } }), &all);
}

/* ---- attention ---- */

QnValue *qn_block_split_heads(QnNet *net, QnValue *x, int64_t heads)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnShape to = QN_SHAPE(s->dim[0], s->dim[1], heads, s->dim[2] / heads);
    return qn_swap_axes(net->g, qn_reshape(net->g, x, &to), 1, 2);
}

QnValue *qn_block_join_heads(QnNet *net, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    const QnShape *s = &x->type.shape;
    QnShape to = QN_SHAPE(s->dim[0], s->dim[2], s->dim[1] * s->dim[3]);
    return qn_reshape(net->g, qn_swap_axes(net->g, x, 1, 2), &to);
}

QnValue *qn_block_plain_attention(QnNet *net, QnValue *const qkv[3], QnValue *mask, double scale)
{
    QnGraph *g = net->g;
    QnValue *a = qn_matmul(g, qkv[0], qkv[1], NULL, false, true);
    a = scale != 1 ? qn_mul_scalar(g, a, scale) : a;
    a = qn_softmax(g, mask ? qn_add(g, a, mask) : a, -1);
    return qn_matmul(g, a, qkv[2], NULL, false, false);
}

QnValue *qn_block_self_attention(QnNet *net, const char *name, QnValue *x, const QnSelf *s)
{
    QnGraph *g = net->g;
    int64_t width = qn_block_dim(x, -1);
    QnValue *part[3];
    qn_net_push(net, name);
    QnValue *qkv = qn_nn_linear(net, "qkv", x, 3 * width, !s->no_bias);
    qn_split(g, qkv, 2, 3, part);
    for (int i = 0; i < 3; i++)
        part[i] = qn_block_split_heads(net, part[i], s->heads);
    x = qn_block_join_heads(net, qn_attention(g, part[0], part[1], part[2], s->mask, false, 0));
    x = qn_nn_linear(net, "proj", x, width, true);
    qn_net_pop(net);
    return x;
}

QnValue *qn_block_cross_covariance(QnNet *net, const char *name, QnValue *x, int64_t heads)
{
    QnGraph *g = net->g;
    QnInitSpec ones = { QN_INIT_KIND_ONES, 0, 0, 0 };
    int64_t n = qn_block_dim(x, 0), t = qn_block_dim(x, 1), c = qn_block_dim(x, 2);
    QnShape split = QN_SHAPE(n, t, heads, c / heads);
    QnValue *part[3];
    if (qn_value_is_poison(x))
        return x;
    qn_net_push(net, name);
    qn_split(g, qn_nn_linear(net, "qkv", x, 3 * c, true), 2, 3, part);
    for (int i = 0; i < 3; i++) {
        part[i] = qn_reshape(g, part[i], &split);
        part[i] = qn_transpose(g, part[i], (QnInts){ 4, { 0, 2, 3, 1 } });
        part[i] = i < 2 ? qn_lp_normalize(g, part[i], -1, 2) : part[i];
    }
    QnValue *scale = qn_net_param(net, "temperature", &QN_SHAPE(heads, 1, 1), &ones, false);
    QnValue *a = qn_mul(g, qn_matmul(g, part[0], part[1], NULL, false, true), scale);
    x = qn_matmul(g, qn_softmax(g, a, -1), part[2], NULL, false, false);
    x = qn_transpose(g, x, (QnInts){ 4, { 0, 3, 1, 2 } });
    x = qn_nn_linear(net, "proj", qn_reshape(g, x, &QN_SHAPE(n, t, c)), c, true);
    qn_net_pop(net);
    return x;
}

QnValue *qn_block_sine_places(QnNet *net, const char *name, QnValue *x)
{
    QnConvSpec fit = { .out = qn_block_dim(x, 1), .kernel = 1, .bias = true };
    if (qn_value_is_poison(x))
        return x;
    QnShape sines = QN_SHAPE(1, 64, qn_block_dim(x, 2), qn_block_dim(x, 3));
    qn_net_push(net, name);
    x = qn_nn_conv(net, "token_projection", qn_net_buffer(net, "sines", &sines, 0), &fit);
    qn_net_pop(net);
    return x;
}
