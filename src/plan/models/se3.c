/* SE(3)-Transformer (Fuchs et al. 2020) on molecules of QM9, as NVIDIA's: attention between atoms
 * whose features turn as the molecule does. Features of all degrees are one tensor
 * (atoms,dims,channels), degree d taking 2 d + 1 of the dims; all degrees are coupled by one
 * product, as its code does where there are tensor cores. */
#include "plan/models/parts.h"

/* size: layers, degrees, channels, heads. An atom has 6 features to begin with, a bond 5. */
enum { LAYERS, DEGREES, CHANNELS, HEADS };
enum { ATOM = 6, BOND = 5, HIDDEN = 32 };

typedef struct Molecules {
    QnNet *net;
    const QnModel *m;
    int64_t atoms, bonds;      /* of the batch; a bond in both directions */
    QnValue *from, *to, *bond; /* atoms of bonds, and what bonds are like */
    QnValue *basis;            /* of all degrees with all, which most layers take */
} Molecules;

/* Ways to couple degrees below `in` with those below `out`. */
static int64_t couplings(int64_t in, int64_t out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++)
            n += 2 * QN_MIN(i, o) + 1;
    return n;
}

/* How bonds couple degrees: spherical harmonics of their directions times constants. */
static QnValue *basis(Molecules *b, int64_t in, int64_t out)
{
    QnGraph *g = b->net->g;
    int64_t degrees = b->m->size[DEGREES], width = couplings(in, out) * out * out;
    if (in == degrees && out == degrees && b->basis)
        return b->basis;
    QnValue *harmonics =
        qn_input(g, b->net->scope, b->net->dtype, &QN_SHAPE(b->bonds, degrees * degrees));
    QnValue *constants =
        qn_net_buffer(b->net, "constants", &QN_SHAPE(degrees * degrees, in * in * width), 1);
    QnValue *x = qn_matmul(g, harmonics, constants, NULL, false, false);
    x = qn_reshape(g, x, &QN_SHAPE(b->bonds, in * in, width));
    if (in == degrees && out == degrees)
        b->basis = x;
    return x;
}

/* For each bond a matrix of its own, (bonds,out,in). */
static QnValue *radial(Molecules *b, int64_t out, int64_t in)
{
    QnNet *net = b->net;
    QnInitSpec init = { .kind = QN_INIT_KIND_NORMAL, .scale = 0.02 };
    QnValue *x = qn_nn_linear(net, "radial0", b->bond, HIDDEN, true);
    x = qn_relu(net->g, qn_nn_layer_norm(net, "norm0", x, true));
    x = qn_nn_linear(net, "radial1", x, HIDDEN, true);
    x = qn_relu(net->g, qn_nn_layer_norm(net, "norm1", x, true));
    x = qn_nn_linear_init(net, "radial2", x, out * in, false, &init);
    return qn_reshape(net->g, x, &QN_SHAPE(b->bonds, out, in));
}

/* Messages along the bonds, (bonds,dims of `out` degrees,channels). */
static QnValue *convolve(Molecules *b, const char *name, QnValue *x, int64_t degrees, int64_t out,
                         int64_t channels)
{
    QnGraph *g = b->net->g;
    int64_t in = qn_block_dim(x, 2), n = couplings(degrees, out);
    qn_net_push(b->net, name);
    x = qn_matmul(g, qn_gather(g, x, b->from, 0), basis(b, degrees, out), NULL, true, false);
    x = qn_reshape(g, x, &QN_SHAPE(b->bonds, in * n, out * out));
    x = qn_matmul(g, x, radial(b, channels, in * n), NULL, true, true);
    qn_net_pop(b->net);
    return x;
}

/* Channels mixed within each degree. */
static QnValue *mix(Molecules *b, const char *name, QnValue *x, int64_t degrees, int64_t channels)
{
    enum { MOST = 8 };
    QnInitSpec init = { .kind = QN_INIT_KIND_NORMAL, .scale = 0.02 };
    QnValue *parts[MOST];
    qn_net_push(b->net, name);
    for (int64_t d = 0; d < degrees && d < MOST; d++) {
        qn_block_push(b->net, "degree", d);
        QnValue *part = qn_slice_axis(b->net->g, x, 1, d * d, (d + 1) * (d + 1));
        parts[d] = qn_nn_linear_init(b->net, "linear", part, channels, false, &init);
        qn_net_pop(b->net);
    }
    qn_net_pop(b->net);
    return qn_concat(b->net->g, parts, (int)QN_MIN(degrees, MOST), 1);
}

/* Sums over the bonds that end at each atom. */
static QnValue *gathered(Molecules *b, QnValue *x)
{
    if (qn_value_is_poison(x))
        return x;
    QnShape s = x->type.shape;
    s.dim[0] = b->atoms;
    return qn_scatter_add(b->net->g, qn_full(b->net->g, 0, x->type.dtype, &s), b->to, x, 0);
}

static QnValue *by_heads(Molecules *b, QnValue *x)
{
    int64_t heads = b->m->size[HEADS];
    return qn_reshape(
        b->net->g, x,
        &QN_SHAPE(qn_block_dim(x, 0), qn_block_dim(x, 1), heads, qn_block_dim(x, 2) / heads));
}

/* What the atoms hear, (atoms,dims,channels of the values). */
static QnValue *attend(Molecules *b, QnValue *x, int64_t degrees)
{
    QnGraph *g = b->net->g;
    int64_t all = b->m->size[DEGREES], half = b->m->size[CHANNELS] / 2;
    QnValue *both = convolve(b, "key_value", x, degrees, all, 2 * half);
    QnValue *key = qn_slice_axis(g, both, 2, half, 2 * half);
    QnValue *value = qn_slice_axis(g, both, 2, 0, half);
    QnValue *query = mix(b, "query", x, degrees, half);
    if (degrees < all)
        key = qn_slice_axis(g, key, 1, 0, degrees * degrees);
    QnValue *product = qn_mul(g, by_heads(b, key), by_heads(b, qn_gather(g, query, b->to, 0)));
    QnValue *weight = qn_exp(g, qn_sum(g, product, (QnInts){ 2, { 1, 3 } }, true));
    weight = qn_div(g, weight, qn_gather(g, gathered(b, weight), b->to, 0));
    value = qn_mul(g, by_heads(b, value), qn_cast(g, weight, b->net->dtype));
    return qn_reshape(g, gathered(b, value), &QN_SHAPE(b->atoms, all * all, half));
}

/* Lengths of the features of each degree, normed and bent; directions stay. */
static QnValue *bend(Molecules *b, QnValue *x)
{
    QnGraph *g = b->net->g;
    enum { MOST = 8 };
    QnValue *parts[MOST];
    int64_t degrees = QN_MIN(b->m->size[DEGREES], MOST);
    for (int64_t d = 0; d < degrees; d++) {
        QnValue *part = qn_slice_axis(g, x, 1, d * d, (d + 1) * (d + 1));
        QnValue *length = qn_norm_l2(g, part, (QnInts){ 1, { 1 } }, true);
        qn_block_push(b->net, "degree", d);
        QnValue *bent = qn_relu(g, qn_nn_layer_norm(b->net, "norm", length, true));
        qn_net_pop(b->net);
        parts[d] = qn_mul(g, qn_div(g, part, qn_add_scalar(g, length, 1e-6)), bent);
    }
    return qn_concat(g, parts, (int)degrees, 1);
}

static QnValue *layer(Molecules *b, int64_t i, QnValue *x)
{
    QnGraph *g = b->net->g;
    int64_t all = b->m->size[DEGREES], channels = b->m->size[CHANNELS], degrees = i ? all : 1;
    qn_block_push(b->net, "layer", i);
    QnValue *heard = attend(b, x, degrees);
    if (degrees < all) { /* atoms begin with degree 0 alone */
        QnShape rest = QN_SHAPE(b->atoms, all * all - 1, qn_block_dim(x, 2));
        x = qn_concat(g, (QnValue *[]){ x, qn_full(g, 0, b->net->dtype, &rest) }, 2, 1);
    }
    x = qn_concat(g, (QnValue *[]){ heard, x }, 2, 2);
    x = bend(b, mix(b, "project", x, all, channels));
    qn_net_pop(b->net);
    return x;
}

static QnValue *build(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers)
{
    QnGraph *g = net->g;
    int64_t atoms = in->batch * in->sequence, bonds = atoms * 37 / 18;
    int64_t out = m->size[DEGREES] * m->size[CHANNELS], n = layers ? layers : m->size[LAYERS];
    Molecules b = { .net = net,
                    .m = m,
                    .atoms = atoms,
                    .bonds = bonds,
                    .from = qn_input(g, "from", QN_DTYPE_I64, &QN_SHAPE(bonds)),
                    .to = qn_input(g, "to", QN_DTYPE_I64, &QN_SHAPE(bonds)),
                    .bond = qn_input(g, "bonds", net->dtype, &QN_SHAPE(bonds, BOND)) };
    QnValue *x = qn_input(g, "atoms", net->dtype, &QN_SHAPE(atoms, 1, ATOM));
    for (int64_t i = 0; i < n; i++)
        x = layer(&b, i, x);
    x = gathered(&b, convolve(&b, "last", x, m->size[DEGREES], 1, out));
    x = qn_reshape(g, x, &QN_SHAPE(in->batch, in->sequence, out));
    x = qn_reduce_max(g, x, (QnInts){ 1, { 1 } }, false);
    x = qn_relu(g, qn_nn_linear(net, "fc1", x, out, true));
    x = qn_nn_linear(net, "fc2", x, 1, true);
    if (!in->train)
        return x;
    QnValue *wanted = qn_input(g, "y", QN_DTYPE_F32, &QN_SHAPE(in->batch, 1));
    return qn_l1(g, qn_cast(g, x, QN_DTYPE_F32), wanted, QN_REDUCTION_MEAN);
}

/* A molecule of QM9 has 18 atoms and 37 bonds, each counted in both directions, in the mean. */
static const QnFamily family = {
    .name = "se3-transformer", .sequence = 18, .batch = 240, .adam = true, .step = build
};

static const QnModel models[] = {
    { "se3_transformer", &family, { 7, 4, 32, 8 } },
};

const QnModelList qn_models_se3 = { models, QN_COUNT(models) };
