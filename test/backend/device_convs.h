/* Convolutions on a device: maps behind them in one launch, and the gradient by weights, a sum in
 * parts. */
#ifndef QN_TEST_BACKEND_DEVICE_CONVS_H
#define QN_TEST_BACKEND_DEVICE_CONVS_H

#include "backend/device_node.h"
#include "pass/pipeline.h"

static inline QnValue *conv_input(QnGraph *g, const char *name, QnShape s)
{
    return qn_input(g, name, QN_DTYPE_F32, &s);
}

/* A ReLU, a residual sum with one, a map behind a depthwise convolution: each goes into its
 * convolution. */
static inline void check_conv_maps(QnDevice *d)
{
    QnGraph *g = qn_graph_new();
    QnConvAttr pad = { .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 }, each = pad;
    each.groups = 70;
    QnValue *x = conv_input(g, "x", QN_SHAPE(2, 5, 9, 7));
    QnValue *a = conv_input(g, "a", QN_SHAPE(70, 5, 3, 3));
    QnValue *b = conv_input(g, "b", QN_SHAPE(70, 70, 3, 3));
    QnValue *c = conv_input(g, "c", QN_SHAPE(70, 1, 3, 3));
    QnValue *bias = conv_input(g, "bias", QN_SHAPE(70));
    QnValue *h = qn_relu(g, qn_conv(g, x, a, bias, &pad));
    h = qn_relu(g, qn_add(g, qn_conv(g, h, b, NULL, &pad), h));
    h = qn_silu(g, qn_conv(g, h, c, bias, &each));
    assert_ok(qn_graph_output(g, "y", h));
    QnPipelineOptions o = qn_device_passes(d);
    assert_ok(qn_pipeline_run(g, &o));
    int n = 0;
    QN_GRAPH_EACH(g, node)
    {
        if (node->op != &qn_op_conv_map && !(node->op->traits & QN_LEAF))
            fail_msg("%s is a launch of its own", node->op->name);
        n += node->op == &qn_op_conv_map;
    }
    assert_int_equal(n, 3);
    check_on_device(d, g, "conv_map", 0, 3e-5);
}

/* Of few weights and many windows; a group of few channels, and blocks. */
static inline void check_conv_dw(QnDevice *d)
{
    for (int groups = 1; groups <= 16; groups += 15) {
        QnGraph *g = qn_graph_new();
        QnConvAttr attr = { .pads = { 4, { 1, 1, 1, 1 } }, .groups = groups };
        QnValue *dy = conv_input(g, "dy", QN_SHAPE(3, 16, 40, 40));
        QnValue *x = conv_input(g, "x", QN_SHAPE(3, 16, 40, 40));
        QnValue *dw = qn_conv_dw(g, dy, x, &attr, &QN_SHAPE(16, 16 / groups, 3, 3));
        assert_ok(qn_graph_output(g, "dw", dw));
        QnDeviceCall call;
        assert_ok(dw->node->op->call(dw->node, &call));
        assert_string_equal(call.then, "conv_dw_sum");
        check_on_device(d, g, "conv_dw", 0, 2e-4);
    }
}

#endif
