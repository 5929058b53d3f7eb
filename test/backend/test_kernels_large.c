/* Kernels on shapes beyond the operators' samples: several blocks, edges of tiles, both layouts.
 * timeout: 300 */
#include "backend/kernel_check.h"

static void matmul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, QnDtype d, int64_t batch)
{
    QnGraph *g = qn_graph_new();
    QnShape a = ta ? QN_SHAPE(batch, k, m) : QN_SHAPE(batch, m, k);
    QnShape b = tb ? QN_SHAPE(1, n, k) : QN_SHAPE(1, k, n);
    QnValue *bias = m % 2 ? qn_input(g, "bias", d, &QN_SHAPE(n)) : NULL;
    QnValue *y = qn_matmul(g, qn_input(g, "a", d, &a), qn_input(g, "b", d, &b), bias, ta, tb);
    double eps = d == QN_DTYPE_F32 ? 1e-6 : check_tolerance(d);
    assert_true(check_node(g, y, -1, 1, eps * sqrt((double)k)) > 0);
    qn_graph_free(g);
}

static void test_matmul_shapes(void **state)
{
    static const int64_t edge[] = { 1, 7, 12, 13, 25, 33, 97 };
    for (int i = 0; i < QN_COUNT(edge); i++) {
        for (int j = 0; j < QN_COUNT(edge); j++)
            matmul(edge[i], edge[j], edge[(i + j) % QN_COUNT(edge)], i % 2, j % 2, QN_DTYPE_F32, 2);
    }
}

static void test_matmul_several_blocks(void **state)
{
    matmul(150, 400, 520, false, false, QN_DTYPE_F32, 1);
    matmul(150, 400, 300, true, false, QN_DTYPE_F32, 1);
    matmul(151, 401, 257, false, true, QN_DTYPE_F32, 1);
    matmul(151, 401, 257, true, true, QN_DTYPE_BF16, 1);
    matmul(290, 40, 300, false, true, QN_DTYPE_F16, 2);
    matmul(97, 99, 530, true, false, QN_DTYPE_F32, 3);
    matmul(100, 700, 600, true, false, QN_DTYPE_BF16, 1);
}

/* Every count of rows up to what the kernel of few rows takes, several of its blocks and edges. */
static void test_matmul_few_rows(void **state)
{
    for (int64_t m = 1; m <= 9; m++) {
        matmul(m, 1025 + m, 37 + m, false, false, QN_DTYPE_F32, 1);
        matmul(m, 130 + m, 260 + m, false, true, QN_DTYPE_F32, 2);
    }
    matmul(1, 70, 33, true, true, QN_DTYPE_F32, 2);
    matmul(5, 70, 33, true, false, QN_DTYPE_F32, 1);
}

/* The kernel of few columns: every count of columns, edges of its blocks, a batch. */
static void test_matmul_few_columns(void **state)
{
    for (int64_t n = 1; n <= 16; n++)
        matmul(64 + n, n, 128 + n, false, true, QN_DTYPE_F32, 1 + n % 2);
    matmul(130, 16, 300, false, true, QN_DTYPE_F32, 1);
}

static void test_matmul_empty(void **state)
{
    matmul(3, 4, 0, false, false, QN_DTYPE_F32, 1);
    matmul(4, 4, 0, false, false, QN_DTYPE_F32, 1);
    matmul(0, 4, 3, false, false, QN_DTYPE_F32, 1);
    matmul(3, 4, 3, false, false, QN_DTYPE_F32, 0);
}

typedef struct ConvCase {
    int64_t n, c, h, w, m, kh, kw;
    QnConvAttr attr;
} ConvCase;

static const ConvCase convs[] = {
    { 3, 1, 28, 28, 32, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 2, 32, 14, 14, 48, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 2, 64, 15, 13, 32, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 1, 32, 7, 7, 32, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 5, 32, 3, 2, 32, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 2, 32, 10, 11, 48, 3, 3, { .pads = { 4, { 0, 1, 1, 0 } } } },
    { 2, 16, 13, 9, 32, 3, 3, { .pads = { 4, { 2, 0, 1, 2 } } } },
    { 2, 16, 9, 9, 32, 3, 3, { .groups = 1 } },
    { 1, 256, 14, 14, 64, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 5, 17, 9, 31, 35, 3, 2, { { 2, { 2, 3 } }, { 4, { 1, 0, 2, 1 } }, { 2, { 1, 2 } }, 1 } },
    { 2, 24, 12, 10, 36, 5, 3, { .pads = { 4, { 2, 1, 2, 1 } }, .groups = 4 } },
    { 2, 40, 8, 8, 40, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } }, .groups = 40 } },
    { 2, 70, 7, 7, 100, 1, 1, { .strides = { 2, { 2, 2 } } } },
    { 2, 24, 8, 6, 1030, 1, 1, { .strides = { 2, { 2, 2 } } } },
    { 2, 24, 7, 6, 1030, 1, 1, { .strides = { 2, { 1, 3 } } } },
    { 1, 24, 7, 7, 1030, 1, 1, { .strides = { 2, { 2, 2 } } } },
    { 2, 3, 30, 27, 48, 7, 7, { { 2, { 2, 2 } }, { 4, { 3, 3, 3, 3 } } } }, /* few channels */
    { 3, 4, 9, 11, 16, 5, 3, { .pads = { 4, { 2, 0, 1, 2 } } } },
    { 2, 2, 6, 5, 32, 3, 3, { .pads = { 4, { 3, 4, 4, 3 } }, .dilations = { 2, { 1, 2 } } } },
    { 2, 70, 5, 9, 100, 1, 1, { .groups = 1 } }, /* one pixel at a time */
    { 3, 260, 6, 7, 130, 1, 1, { .groups = 1 } },
    { 1, 3, 40, 37, 13, 7, 7, { { 2, { 2, 2 } }, { 4, { 3, 3, 3, 3 } } } },
};

/* The gradient by the weights goes by Winograd's algorithm with as many channels. */
static const ConvCase many_channels[] = {
    { 2, 64, 15, 13, 64, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 3, 64, 7, 7, 64, 3, 3, { .pads = { 4, { 1, 1, 1, 1 } } } },
    { 2, 64, 10, 11, 80, 3, 3, { .pads = { 4, { 0, 1, 1, 0 } } } },
    { 2, 64, 13, 9, 64, 3, 3, { .pads = { 4, { 2, 0, 1, 2 } } } },
    { 3, 64, 9, 9, 96, 3, 3, { .groups = 1 } },
};

static QnValue *conv_in(QnGraph *g, QnDtype d, int64_t n, int64_t c, int64_t h, int64_t w,
                        QnLayout layout)
{
    return check_input(g, d, &QN_SHAPE(n, c, h, w), layout);
}

static const QnBody body_relu = {
    .n_in = 1,
    .n_instr = 1,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_relu, .arg = { 0 } } },
    .out = (const int[]){ 0 },
};

static const QnBody body_add_relu = {
    .n_in = 2,
    .n_instr = 2,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_add, .arg = { 1, 0 } },
                                    { .op = &qn_op_relu, .arg = { 2 } } },
    .out = (const int[]){ 1 },
};

/* The convolution y with maps: a ReLU, with a bias after a sum. */
static QnValue *mapped(QnGraph *g, QnValue *y, bool sum, QnLayout layout)
{
    const QnShape *s = &y->type.shape;
    QnValue *more =
        sum ? conv_in(g, y->type.dtype, s->dim[0], s->dim[1], s->dim[2], s->dim[3], layout) : NULL;
    return qn_conv_map(g, y->node, sum ? &body_add_relu : &body_relu, &more, sum);
}

/* part: 0 forward, 1 with a bias, 2 gradient by the input, 3 by the weights, 4 and 5 with maps */
static int conv(const ConvCase *k, int part, QnDtype d, QnLayout in, QnLayout out)
{
    QnGraph *g = qn_graph_new();
    int64_t groups = QN_MAX(k->attr.groups, 1);
    QnValue *x = conv_in(g, d, k->n, k->c, k->h, k->w, in);
    QnValue *w = qn_input(g, "w", d, &QN_SHAPE(k->m, k->c / groups, k->kh, k->kw));
    QnValue *bias = part == 1 || part == 5 ? qn_input(g, "bias", d, &QN_SHAPE(k->m)) : NULL;
    QnValue *y = qn_conv(g, x, w, bias, &k->attr);
    const QnShape *s = &y->type.shape;
    double count = (double)(k->c / groups * k->kh * k->kw);
    if (part >= 4)
        y = mapped(g, y, part == 5, out);
    if (part == 2 || part == 3) {
        QnValue *dy =
            conv_in(g, d, s->dim[0], s->dim[1], s->dim[2], s->dim[3], part == 2 ? in : out);
        y = part == 2 ? qn_conv_dx(g, dy, w, &k->attr, &x->type.shape)
                      : qn_conv_dw(g, dy, x, &k->attr, &w->type.shape);
        count = (double)(part == 2 ? k->m * k->kh * k->kw : k->n * s->dim[2] * s->dim[3]);
    }
    if (part != 3)
        y->type.layout = out;
    int n = check_node(g, y, -1, 1, (d == QN_DTYPE_F32 ? 1e-6 : check_tolerance(d)) * sqrt(count));
    qn_graph_free(g);
    return n;
}

static void run_convs(int part)
{
    for (int i = 0; i < QN_COUNT(convs); i++) {
        for (int l = 0; l < 4; l++)
            assert_true(conv(&convs[i], part, QN_DTYPE_F32, (QnLayout)(l % 2), (QnLayout)(l / 2)) >
                        0);
    }
}

static void test_conv(void **state)
{
    run_convs(0);
}

static void test_conv_bias(void **state)
{
    run_convs(1);
}

/* Volumes of one plane, of which the filters have three: two of them meet padding alone. */
static void test_conv_one_plane(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        QnGraph *g = qn_graph_new();
        QnConvAttr a = { .pads = { 6, { 1, 1, 1, 1, 1, 1 } } };
        QnShape w = QN_SHAPE(16, 2, 3, 3, 3);
        QnValue *x = check_input(g, QN_DTYPE_F32, &QN_SHAPE(3, 2, 1, 9, 17), (QnLayout)i);
        QnValue *y = qn_conv(g, x, check_input(g, QN_DTYPE_F32, &w, QN_LAYOUT_PLAIN), NULL, &a);
        QnValue *dy = check_input(g, QN_DTYPE_F32, &y->type.shape, (QnLayout)i);
        QnValue *dw = qn_conv_dw(g, dy, x, &a, &w);
        y->type.layout = (QnLayout)i;
        assert_true(check_node(g, y, -1, 1, 1e-5) > 0);
        assert_true(check_node(g, dw, -1, 1, 5e-5) > 0);
        qn_graph_free(g);
    }
}

static void test_conv_dx(void **state)
{
    run_convs(2);
}

static void test_conv_dw(void **state)
{
    run_convs(3);
}

/* One kernel more in channels-last order than in the plain one: Quern's own by Winograd. */
static void test_conv_dw_many_channels(void **state)
{
    for (int i = 0; i < QN_COUNT(many_channels); i++) {
        const ConvCase *k = &many_channels[i];
        int plain = conv(k, 3, QN_DTYPE_F32, QN_LAYOUT_PLAIN, QN_LAYOUT_PLAIN);
        assert_true(conv(k, 3, QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST, QN_LAYOUT_CHANNELS_LAST) >
                    plain);
    }
}

/* Only the libraries and Winograd take maps, so that not all shapes have a kernel. */
static void test_conv_map(void **state)
{
    int ran = 0;
    for (int i = 0; i < QN_COUNT(convs); i++)
        for (int part = 4; part < 6; part++)
            ran += conv(&convs[i], part, QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST,
                        QN_LAYOUT_CHANNELS_LAST);
    assert_true(ran > 0);
}

/* More than one part, channels that fill no vector, a mean far from 0. */
static void test_batch_norm(void **state)
{
    static const int64_t dim[][4] = {
        { 9, 37, 13, 11 }, { 41, 16, 9, 9 }, { 3, 130, 1, 7 }, { 2, 1, 5, 5 }
    };
    for (int i = 0; i < 2 * QN_COUNT(dim); i++) {
        const int64_t *d = dim[i / 2];
        QnLayout l = (QnLayout)(i % 2);
        QnGraph *g = qn_graph_new();
        QnShape channel = QN_SHAPE(d[1]);
        QnValue *in[5] = { conv_in(g, QN_DTYPE_F32, d[0], d[1], d[2], d[3], l),
                           conv_in(g, QN_DTYPE_F32, d[0], d[1], d[2], d[3], l) };
        for (int k = 2; k < 5; k++)
            in[k] = check_input(g, QN_DTYPE_F32, &channel, QN_LAYOUT_PLAIN);
        QnValue *y = &qn_batch_norm(g, in[0], in[2], in[3], 1e-5)->out[0];
        QnValue *dx = qn_emitn(g, &qn_op_batch_norm_grad, NULL, in, 5);
        y->type.layout = dx->type.layout = l;
        assert_true(check_node(g, y, 5, 8, 2e-5) > 0);
        assert_true(check_node(g, dx, 0.5, 1.5, 5e-5) > 0);
        qn_graph_free(g);
    }
}

static void test_pools(void **state)
{
    static const QnPoolAttr attr[] = {
        { .kernel = { 2, { 2, 2 } } },
        { .kernel = { 2, { 3, 3 } }, .strides = { 2, { 2, 2 } }, .pads = { 4, { 1, 1, 1, 1 } } },
        { { 2, { 3, 2 } }, { 2, { 1, 2 } }, { 4, { 2, 0, 1, 1 } }, { 2, { 2, 1 } }, true, true },
    };
    static const struct {
        QnDtype dtype;
        double tol;
    } type[] = { { QN_DTYPE_F32, 1e-5 }, { QN_DTYPE_F16, 2e-3 }, { QN_DTYPE_BF16, 1.6e-2 } };
    for (int i = 0; i < 4 * QN_COUNT(attr) * QN_COUNT(type); i++) {
        const QnPoolAttr *a = &attr[i / 4 % QN_COUNT(attr)];
        QnDtype d = type[i / 4 / QN_COUNT(attr)].dtype;
        QnLayout l = (QnLayout)(i % 2);
        int64_t channels = i % 4 < 2 ? 70 : 5;
        QnGraph *g = qn_graph_new();
        QnValue *x = conv_in(g, d, 3, channels, 11, 14, l), *y[4];
        y[0] = qn_max_pool(g, x, a);
        QnValue *dy = check_input(g, d, &y[0]->type.shape, l);
        y[1] = qn_avg_pool(g, x, a);
        y[2] = qn_max_pool_grad(g, dy, x, a);
        y[3] = qn_avg_pool_grad(g, dy, a, &x->type.shape);
        for (int k = 0; k < 4; k++) {
            y[k]->type.layout = l;
            assert_true(check_node(g, y[k], -1, 1, type[i / 4 / QN_COUNT(attr)].tol) > 0);
        }
        qn_graph_free(g);
    }
}

/* The first of several greatest elements wins, and NaN is greater than all. */
static void test_max_pool_ties_and_nan(void **state)
{
    for (int i = 0; i < 4; i++) {
        QnGraph *g = qn_graph_new();
        QnLayout l = (QnLayout)(i % 2);
        QnPoolAttr a = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 1, 1 } } };
        int64_t channels = i < 2 ? 3 : 21;
        QnValue *x = conv_in(g, QN_DTYPE_F32, 1, channels, 4, 4, l);
        QnValue *y = qn_max_pool(g, x, &a);
        QnValue *dx = qn_max_pool_grad(g, check_input(g, QN_DTYPE_F32, &y->type.shape, l), x, &a);
        y->type.layout = dx->type.layout = l;
        for (int k = 0; k < 2; k++) {
            uint64_t seed = 9;
            Check c = { .n = k ? dx->node : y->node, .tol = 1e-6 };
            for (int j = 0; j < c.n->n_in; j++)
                c.in[j] = check_fill(&c.n->in[j]->type, -1, 1, false, &seed);
            double *v = c.in[k];
            for (int64_t j = 0; j < 16 * channels; j++)
                v[j] = j % 7 == 0 ? (double)NAN : j % 5 == 0 ? -(double)INFINITY : (double)(j % 3);
            check_run(&c);
            assert_true(c.n_run > 0);
        }
        qn_graph_free(g);
    }
}

/* Between the layouts, in every element size. */
static void test_relayout(void **state)
{
    static const QnDtype dtype[] = { QN_DTYPE_F32, QN_DTYPE_BF16, QN_DTYPE_U8, QN_DTYPE_I64 };
    static const int64_t dim[][3] = { { 37, 40, 33 }, { 1, 9, 130 }, { 130, 1, 1 } };
    for (int i = 0; i < QN_COUNT(dtype) * QN_COUNT(dim) * 4; i++) {
        const int64_t *d = dim[i / 4 % QN_COUNT(dim)];
        QnGraph *g = qn_graph_new();
        QnValue *x =
            conv_in(g, dtype[i / 4 / QN_COUNT(dim)], 2, d[0], d[1], d[2], (QnLayout)(i % 2));
        QnValue *y = qn_relayout(g, x, (QnLayout)(i / 2 % 2));
        assert_true(check_node(g, y, 0, 100, 0) > 0);
        qn_graph_free(g);
    }
}

/* Reductions of channels-last images to channels, to channels of each image, and to one number. */
static void test_reductions_of_images(void **state)
{
    static const QnInts axes[] = { { 3, { 0, 2, 3 } }, { 2, { 2, 3 } }, { 0 } };
    for (int i = 0; i < 2 * QN_COUNT(axes); i++) {
        QnGraph *g = qn_graph_new();
        QnValue *x = conv_in(g, QN_DTYPE_F32, 5, 19, 33, 14, QN_LAYOUT_CHANNELS_LAST);
        assert_true(check_node(g, qn_sum(g, x, axes[i / 2], i % 2), -1, 1, 2e-5) > 0);
        qn_graph_free(g);
    }
}
