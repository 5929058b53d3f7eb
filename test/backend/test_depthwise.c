/* Convolutions with one filter a channel: channels that fill no vector, strides, pads and dilations
 * that leave elements without a window and windows without an element, one to three axes.
 * timeout: 300 */
#include "backend/kernel_check.h"

#include "pass/pipeline.h"
#include "rt/device.h"
#include "rt/select.h"

typedef struct Case {
    QnShape x, w;
    QnConvAttr attr;
} Case;

#define PADS(a, b, c, d) .pads = { 4, { a, b, c, d } }

static const Case cases[] = {
    { QN_SHAPE(2, 5, 9, 12), QN_SHAPE(5, 1, 3, 3), { PADS(1, 1, 1, 1) } },
    { QN_SHAPE(2, 21, 14, 14), QN_SHAPE(21, 1, 3, 3), { PADS(1, 1, 1, 1) } },
    { QN_SHAPE(3, 70, 7, 23), QN_SHAPE(70, 1, 3, 3), { PADS(0, 2, 1, 0) } },
    { QN_SHAPE(2, 48, 15, 15), QN_SHAPE(48, 1, 3, 3), { { 2, { 2, 2 } }, PADS(1, 1, 1, 1) } },
    { QN_SHAPE(2, 21, 13, 17), QN_SHAPE(21, 1, 3, 3), { { 2, { 3, 3 } }, PADS(1, 0, 0, 1) } },
    { QN_SHAPE(2, 5, 11, 10), QN_SHAPE(5, 1, 3, 3), { { 2, { 1, 2 } }, PADS(4, 4, 4, 5) } },
    { QN_SHAPE(2, 70, 12, 19), QN_SHAPE(70, 1, 5, 5), { PADS(2, 2, 2, 2) } },
    { QN_SHAPE(1, 21, 12, 19), QN_SHAPE(21, 1, 5, 5), { { 2, { 2, 2 } }, PADS(2, 2, 2, 2) } },
    { QN_SHAPE(2, 21, 16, 9), QN_SHAPE(21, 1, 7, 1), { PADS(3, 0, 3, 0) } },
    { QN_SHAPE(2, 21, 5, 20), QN_SHAPE(21, 1, 1, 7), { { 2, { 1, 4 } }, PADS(0, 6, 0, 1) } },
    { QN_SHAPE(2, 70, 14, 15),
      QN_SHAPE(70, 1, 3, 3),
      { PADS(2, 3, 2, 3), .dilations = { 2, { 2, 3 } } } },
    { QN_SHAPE(2, 16, 14, 21),
      QN_SHAPE(16, 1, 4, 3),
      { { 2, { 4, 6 } }, PADS(3, 2, 0, 4), { 2, { 2, 4 } } } },
    { QN_SHAPE(2, 21, 6, 6), QN_SHAPE(21, 1, 2, 2), { { 2, { 3, 3 } }, PADS(0, 0, 0, 0) } },
    { QN_SHAPE(3, 33, 2, 1), QN_SHAPE(33, 1, 5, 3), { PADS(2, 1, 2, 1) } },
    { QN_SHAPE(4, 96, 28, 28), QN_SHAPE(96, 1, 3, 3), { PADS(1, 1, 1, 1) } }, /* several units */
    { QN_SHAPE(2, 35, 40),
      QN_SHAPE(35, 1, 4),
      { .strides = { 1, { 1 } }, .pads = { 2, { 2, 1 } } } },
    { QN_SHAPE(2, 19, 5, 6, 9),
      QN_SHAPE(19, 1, 3, 2, 3),
      { { 3, { 2, 1, 1 } }, .pads = { 6, { 1, 1, 1, 2, 0, 1 } } } },
};

static const QnBody body_relu = {
    .n_in = 1,
    .n_instr = 1,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_relu, .arg = { 0 } } },
    .out = (const int[]){ 0 },
};

static const QnBody body_sum_sigmoid = {
    .n_in = 3,
    .n_instr = 3,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_mul, .arg = { 0, 1 } },
                                    { .op = &qn_op_add, .arg = { 2, 3 } },
                                    { .op = &qn_op_sigmoid, .arg = { 4 } } },
    .out = (const int[]){ 2 },
};

typedef enum Part { FORWARD, BIAS, MAP, MAP_MORE, BY_INPUT, BY_FILTERS } Part;

static const char *const names[] = { "cpu.conv.depthwise",     "cpu.conv.depthwise",
                                     "cpu.conv_map.depthwise", "cpu.conv_map.depthwise",
                                     "cpu.conv_dx.depthwise",  "cpu.conv_dw.depthwise" };

/* Maps of the convolution y: a ReLU; or a factor a channel, a sum with an image and a sigmoid. */
static QnValue *mapped(QnGraph *g, QnValue *y, bool more, QnLayout layout)
{
    QnShape factor = { .rank = y->type.shape.rank - 1, .dim = { y->type.shape.dim[1], 1, 1, 1 } };
    QnValue *in[2] = { NULL };
    if (more) {
        in[0] = qn_input(g, "factor", QN_DTYPE_F32, &factor);
        in[1] = check_input(g, QN_DTYPE_F32, &y->type.shape, layout);
    }
    return qn_conv_map(g, y->node, more ? &body_sum_sigmoid : &body_relu, in, more ? 2 : 0);
}

static QnValue *node_of(QnGraph *g, const Case *k, Part part, QnDtype d, QnLayout layout)
{
    QnConvAttr attr = k->attr;
    attr.groups = k->x.dim[1];
    QnValue *x = check_input(g, d, &k->x, layout);
    QnValue *w = qn_input(g, "w", d, &k->w);
    bool has_bias = part == BIAS || part == MAP_MORE;
    QnValue *bias = has_bias ? qn_input(g, "bias", d, &QN_SHAPE(k->w.dim[0])) : NULL;
    QnValue *y = qn_conv(g, x, w, bias, &attr);
    assert_ok(qn_graph_check(g));
    y->type.layout = layout;
    if (part == MAP || part == MAP_MORE)
        y = mapped(g, y, part == MAP_MORE, layout);
    if (part >= BY_INPUT) {
        QnValue *dy = check_input(g, d, &y->type.shape, layout);
        y = part == BY_INPUT ? qn_conv_dx(g, dy, w, &attr, &x->type.shape)
                             : qn_conv_dw(g, dy, x, &attr, &w->type.shape);
    }
    if (part != BY_FILTERS)
        y->type.layout = layout;
    return y;
}

static int run(const Case *k, Part part, QnDtype d, QnLayout layout, const char *only)
{
    uint64_t seed = 7;
    QnGraph *g = qn_graph_new();
    QnValue *y = node_of(g, k, part, d, layout);
    assert_ok(qn_graph_check(g));
    double products = (double)(part == BY_FILTERS ? qn_shape_count(&k->x) / k->x.dim[1] : 100);
    Check c = { .n = y->node,
                .tol = (d == QN_DTYPE_F32 ? 1e-6 : check_tolerance(d)) * sqrt(products),
                .only = only };
    for (int i = 0; i < c.n->n_in; i++) {
        if (c.n->in[i])
            c.in[i] = check_fill(&c.n->in[i]->type, -1, 1, false, &seed);
    }
    check_run(&c);
    qn_graph_free(g);
    return c.n_run;
}

static void run_all(Part part)
{
    for (int i = 0; i < QN_COUNT(cases); i++) {
        assert_true(run(&cases[i], part, QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST, names[part]) > 0);
        assert_int_equal(run(&cases[i], part, QN_DTYPE_F32, QN_LAYOUT_PLAIN, names[part]), 0);
    }
}

static void test_forward(void **state)
{
    run_all(FORWARD);
    run_all(BIAS);
}

static void test_maps(void **state)
{
    run_all(MAP);
    run_all(MAP_MORE);
}

static void test_gradient_by_input(void **state)
{
    run_all(BY_INPUT);
}

static void test_gradient_by_filters(void **state)
{
    run_all(BY_FILTERS);
}

static void test_16_bits(void **state)
{
    static const Part parts[] = { FORWARD, BIAS, BY_INPUT, BY_FILTERS };
    for (int i = 0; i < QN_COUNT(cases) * QN_COUNT(parts); i++) {
        Part part = parts[i % QN_COUNT(parts)];
        QnDtype d = i / QN_COUNT(parts) % 2 ? QN_DTYPE_BF16 : QN_DTYPE_F16;
        assert_true(
            run(&cases[i / QN_COUNT(parts)], part, d, QN_LAYOUT_CHANNELS_LAST, names[part]) > 0);
    }
}

/* Several filters a channel and several channels a filter are other kernels' work; no pixels and no
 * images are fine. */
static void test_what_it_takes(void **state)
{
    static const Case empty = { QN_SHAPE(0, 21, 9, 9),
                                QN_SHAPE(21, 1, 3, 3),
                                { PADS(1, 1, 1, 1) } };
    static const Case twice = { QN_SHAPE(2, 6, 9, 9), QN_SHAPE(12, 1, 3, 3), { PADS(1, 1, 1, 1) } };
    for (Part part = FORWARD; part <= BY_FILTERS; part++) {
        assert_true(run(&empty, part, QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST, names[part]) > 0);
        assert_int_equal(run(&twice, part, QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST, names[part]), 0);
        if (part != MAP && part != MAP_MORE)
            assert_true(run(&twice, part, QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST, NULL) > 0);
    }
}

/* Without libraries: images become channels-last, and the maps go into the convolutions. */
static void test_nets_run_it(void **state)
{
    QnDeviceOptions options = { .n_threads = 2, .strict = true };
    QnDevice *d;
    QnConvAttr same = { PADS(1, 1, 1, 1), .groups = 24 };
    QnConvAttr half = { { 2, { 2, 2 } }, PADS(1, 1, 1, 1), .groups = 24 };
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, 24, 16, 16)), *w[2], *bias;
    w[0] = qn_input(g, "w0", QN_DTYPE_F32, &QN_SHAPE(24, 1, 3, 3));
    w[1] = qn_input(g, "w1", QN_DTYPE_F32, &QN_SHAPE(24, 1, 3, 3));
    bias = qn_input(g, "bias", QN_DTYPE_F32, &QN_SHAPE(24));
    QnValue *y = qn_silu(g, qn_conv(g, x, w[0], bias, &same));
    assert_ok(qn_graph_output(g, "y", qn_silu(g, qn_conv(g, y, w[1], NULL, &half))));
    assert_ok(qn_device_open(&qn_backend_cpu, &options, &d));
    QnPipelineOptions o = qn_device_passes(d);
    assert_ok(qn_pipeline_run(g, &o));
    int n = 0;
    QN_GRAPH_EACH(g, node)
    {
        const QnKernel *k;
        n += node->op != &qn_op_input && qn_select(d, node, NULL, &k) == QN_OK &&
             !strcmp(k->name, "cpu.conv_map.depthwise");
    }
    assert_int_equal(n, 2);
    qn_device_close(d);
    qn_graph_free(g);
}
