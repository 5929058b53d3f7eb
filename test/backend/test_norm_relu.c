/* The kernels that go back through a batch norm and its ReLU, and through a max pool behind them:
 * both layouts, channels that fill no vector, windows that meet, padding, ties. */
#include "backend/kernel_check.h"

/* Random operands of a node from its image `x` on; those before it lie in -1..1. */
static void fill(Check *c, int x, uint64_t *seed)
{
    static const double range[][2] = {
        { -1, 1 }, { -0.3, 0.3 }, { 0.5, 1.5 }, { -1.5, 1.5 }, { -0.5, 0.5 }
    };
    bool forward = c->n->n_in == 4; /* has no rstd */
    for (int i = 0; i < c->n->n_in; i++) {
        int at = QN_MAX(i - x, 0);
        const double *r = range[at + (forward && at > 1)];
        c->in[i] = check_fill(&c->n->in[i]->type, r[0], r[1], false, seed);
    }
}

static void check(QnGraph *g, QnValue *y, QnLayout layout, int x, double tol)
{
    uint64_t seed = 11;
    Check c = { .n = y->node, .tol = tol };
    y->type.layout = layout;
    assert_ok(qn_graph_check(g));
    fill(&c, x, &seed);
    check_run(&c);
    assert_true(c.n_run > 0);
}

/* Images dy and x, then mean, rstd, factor and bias. */
static QnValue *grad_of(QnGraph *g, const QnOp *op, const QnPoolAttr *a, const QnShape *dy,
                        const QnShape *x, QnDtype d, QnLayout layout)
{
    QnShape channel = QN_SHAPE(x->dim[1]);
    QnValue *in[6] = { check_input(g, d, dy, layout), check_input(g, d, x, layout) };
    for (int i = 2; i < 6; i++)
        in[i] = check_input(g, i < 5 ? QN_DTYPE_F32 : d, &channel, QN_LAYOUT_PLAIN);
    return qn_emitn(g, op, a, in, 6);
}

static void test_relu_shapes(void **state)
{
    static const QnShape shapes[] = { { 4, { 9, 37, 13, 11 } }, { 4, { 41, 16, 9, 9 } },
                                      { 4, { 3, 130, 1, 7 } },  { 4, { 2, 1, 5, 5 } },
                                      { 3, { 5, 24, 70 } },     { 2, { 300, 20 } } };
    static const QnDtype dtype[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    for (int i = 0; i < 2 * QN_COUNT(shapes) * QN_COUNT(dtype); i++) {
        const QnShape *s = &shapes[i / 2 % QN_COUNT(shapes)];
        QnDtype d = dtype[i / 2 / QN_COUNT(shapes)];
        QnLayout layout = s->rank > 2 ? (QnLayout)(i % 2) : QN_LAYOUT_PLAIN;
        QnGraph *g = qn_graph_new();
        QnValue *dx = grad_of(g, &qn_op_batch_norm_relu_grad, NULL, s, s, d, layout);
        check(g, dx, layout, 1, d == QN_DTYPE_F32 ? 5e-5 : check_tolerance(d));
        qn_graph_free(g);
    }
}

static const QnPoolAttr pools[] = {
    { .kernel = { 2, { 2, 2 } } },
    { .kernel = { 2, { 3, 3 } }, .strides = { 2, { 2, 2 } }, .pads = { 4, { 1, 1, 1, 1 } } },
    { .kernel = { 2, { 3, 2 } },
      .strides = { 2, { 1, 2 } },
      .pads = { 4, { 2, 0, 1, 1 } },
      .dilations = { 2, { 2, 1 } },
      .ceil_mode = true },
};

static void test_pool_shapes(void **state)
{
    static const int64_t channels[] = { 64, 70, 16, 21, 5 };
    static const QnDtype dtype[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    enum { SHAPES = QN_COUNT(pools) * QN_COUNT(channels) };
    for (int i = 0; i < 2 * SHAPES * QN_COUNT(dtype); i++) {
        const QnPoolAttr *a = &pools[i / 2 % QN_COUNT(pools)];
        QnLayout layout = (QnLayout)(i % 2);
        QnDtype d = dtype[i / 2 / SHAPES];
        QnShape s =
            QN_SHAPE(3, channels[i / 2 % SHAPES / QN_COUNT(pools)], a == pools ? 12 : 11, 14);
        QnShape channel = QN_SHAPE(s.dim[1]);
        QnGraph *g = qn_graph_new();
        QnValue *in[4] = { check_input(g, d, &s, layout) };
        for (int k = 1; k < 4; k++)
            in[k] = check_input(g, k < 3 ? QN_DTYPE_F32 : d, &channel, QN_LAYOUT_PLAIN);
        QnValue *y = qn_emitn(g, &qn_op_batch_norm_relu_pool, a, in, 4);
        QnValue *dx =
            grad_of(g, &qn_op_batch_norm_relu_pool_grad, a, &y->type.shape, &s, d, layout);
        check(g, y, layout, 0, d == QN_DTYPE_F32 ? 1e-5 : check_tolerance(d));
        check(g, dx, layout, 1, d == QN_DTYPE_F32 ? 5e-5 : check_tolerance(d));
        qn_graph_free(g);
    }
}

/* Of several greatest elements the first gets the gradient, none where the ReLU gives 0; forwards
 * NaN is greater than all. */
static void test_ties_and_nan(void **state)
{
    QnPoolAttr a = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 1, 1 } } };
    for (int i = 0; i < 8; i++) {
        QnShape s = QN_SHAPE(1, i < 4 ? 3 : 21, 4, 4), channel = QN_SHAPE(s.dim[1]);
        bool forward = i % 4 < 2;
        QnLayout layout = (QnLayout)(i % 2);
        QnGraph *g = qn_graph_new();
        QnValue *in[4] = { check_input(g, QN_DTYPE_F32, &s, layout) };
        for (int k = 1; k < 4; k++)
            in[k] = check_input(g, QN_DTYPE_F32, &channel, QN_LAYOUT_PLAIN);
        QnValue *y = qn_emitn(g, &qn_op_batch_norm_relu_pool, &a, in, 4);
        if (!forward)
            y = grad_of(g, &qn_op_batch_norm_relu_pool_grad, &a, &y->type.shape, &s, QN_DTYPE_F32,
                        layout);
        uint64_t seed = 5;
        Check c = { .n = y->node, .tol = 2e-5 };
        y->type.layout = layout;
        fill(&c, !forward, &seed);
        double *x = c.in[!forward];
        for (int64_t k = 0; k < 16 * s.dim[1]; k++)
            x[k] = forward && k % 7 == 0   ? (double)NAN
                   : forward && k % 5 == 0 ? -(double)INFINITY
                                           : (double)(k % 3) - 1;
        check_run(&c);
        assert_true(c.n_run > 0);
        qn_graph_free(g);
    }
}

/* More taps than a byte counts are left to others. */
static void test_wide_windows_are_refused(void **state)
{
    QnPoolAttr a = { .kernel = { 2, { 12, 12 } } };
    QnShape s = QN_SHAPE(1, 2, 24, 24), channel = QN_SHAPE(2);
    QnGraph *g = qn_graph_new();
    QnValue *in[4] = { check_input(g, QN_DTYPE_F32, &s, QN_LAYOUT_PLAIN) };
    for (int k = 1; k < 4; k++)
        in[k] = check_input(g, QN_DTYPE_F32, &channel, QN_LAYOUT_PLAIN);
    QnValue *y = qn_emitn(g, &qn_op_batch_norm_relu_pool, &a, in, 4);
    assert_int_equal(check_node(g, y, -1, 1, 1e-5), 0);
    qn_graph_free(g);
}
