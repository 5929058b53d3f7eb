/* Single operators, on states: what is measured is the operator alone, without copying inputs. */
#include "rows.h"

#include "ops/ops.h"

static QnValue *tensor(Build *b, const char *name, const QnShape *s, QnLayout layout)
{
    static const QnInitSpec init = { QN_INIT_KIND_NORMAL, 0, 0, 1.0 };
    QnValue *v = qn_net_param(b->net, name, s, &init, true);
    if (layout != QN_LAYOUT_PLAIN && !qn_value_is_poison(v))
        v->type.layout = layout;
    return v;
}

static QnStatus finish(Build *b, QnValue *y, QnLayout layout)
{
    QN_TRY(qn_graph_check(b->g));
    y->type.layout = layout;
    return qn_graph_output(b->g, "y", y);
}

QnStatus build_matmul(Build *b, QnLayout layout)
{
    QnValue *x = tensor(b, "x", &QN_SHAPE(b->dim[0], b->dim[2]), layout);
    QnValue *w = tensor(b, "w", &QN_SHAPE(b->dim[1], b->dim[2]), layout);
    return finish(b, qn_matmul(b->g, x, w, NULL, false, true), layout);
}

QnStatus build_matmul_bf16(Build *b, QnLayout layout)
{
    b->net->dtype = QN_DTYPE_BF16;
    return build_matmul(b, layout);
}

static QnConvAttr conv_attr(const int64_t *d)
{
    int64_t p = d[4] / 2;
    return (QnConvAttr){ .strides = { 2, { d[5], d[5] } }, .pads = { 4, { p, p, p, p } } };
}

static QnShape conv_x(const int64_t *d)
{
    return QN_SHAPE(d[0], d[1], d[2], d[2]);
}

static QnShape conv_w(const int64_t *d)
{
    return QN_SHAPE(d[3], d[1], d[4], d[4]);
}

static QnShape conv_y(const int64_t *d)
{
    int64_t o = (d[2] + 2 * (d[4] / 2) - d[4]) / d[5] + 1;
    return QN_SHAPE(d[0], d[3], o, o);
}

QnStatus build_conv(Build *b, QnLayout layout)
{
    QnConvAttr a = conv_attr(b->dim);
    QnShape xs = conv_x(b->dim), ws = conv_w(b->dim);
    QnValue *x = tensor(b, "x", &xs, layout), *w = tensor(b, "w", &ws, QN_LAYOUT_PLAIN);
    return finish(b, qn_conv(b->g, x, w, NULL, &a), layout);
}

QnStatus build_conv_dx(Build *b, QnLayout layout)
{
    QnConvAttr a = conv_attr(b->dim);
    QnShape xs = conv_x(b->dim), ws = conv_w(b->dim), ys = conv_y(b->dim);
    QnValue *dy = tensor(b, "dy", &ys, layout), *w = tensor(b, "w", &ws, QN_LAYOUT_PLAIN);
    return finish(b, qn_conv_dx(b->g, dy, w, &a, &xs), layout);
}

QnStatus build_conv_dw(Build *b, QnLayout layout)
{
    QnConvAttr a = conv_attr(b->dim);
    QnShape xs = conv_x(b->dim), ws = conv_w(b->dim), ys = conv_y(b->dim);
    QnValue *dy = tensor(b, "dy", &ys, layout), *x = tensor(b, "x", &xs, layout);
    return finish(b, qn_conv_dw(b->g, dy, x, &a, &ws), QN_LAYOUT_PLAIN);
}

static QnValue *rows(Build *b)
{
    return tensor(b, "x", &QN_SHAPE(b->dim[0], b->dim[1]), QN_LAYOUT_PLAIN);
}

QnStatus build_softmax(Build *b, QnLayout layout)
{
    return finish(b, qn_softmax(b->g, rows(b), -1), layout);
}

QnStatus build_layer_norm(Build *b, QnLayout layout)
{
    QnValue *x = rows(b);
    return finish(b, qn_nn_layer_norm(b->net, "norm", x, true), layout);
}

QnStatus build_gelu(Build *b, QnLayout layout)
{
    return finish(b, qn_gelu(b->g, rows(b)), layout);
}
