/* Small ONNX models made by hand. */
#ifndef QN_TEST_ONNX_MODEL_H
#define QN_TEST_ONNX_MODEL_H

#include "io/temp.h"
#include "onnx/onnx.h"
#include "test.h"

typedef struct Made {
    QnOnnxModel model;
    QnOnnxGraph graph;
    QnOnnxOpset opset;
    QnOnnxDef node[16];
    QnOnnxInit init[16];
    QnOnnxInfo input[8], output[8];
    QnOnnxType type[16];
    int n_types;
} Made;

QN_UNUSED static void made_begin(Made *m, int64_t opset)
{
    memset(m, 0, sizeof *m);
    m->opset = (QnOnnxOpset){ "", opset };
    m->graph = (QnOnnxGraph){
        .name = "made", .node = m->node, .init = m->init, .input = m->input, .output = m->output
    };
    m->model = (QnOnnxModel){ .ir_version = 8,
                              .producer = "test",
                              .producer_version = "",
                              .n_opset = 1,
                              .opset = &m->opset,
                              .graph = &m->graph };
}

QN_UNUSED static const QnOnnxType *made_type(Made *m, QnDtype dtype, QnShape shape)
{
    QnOnnxType *t = &m->type[m->n_types++];
    *t = (QnOnnxType){ .kind = QN_ONNX_TYPE_TENSOR,
                       .elem = qn_onnx_dtype_number(dtype),
                       .rank = shape.rank };
    memcpy(t->dim, shape.dim, sizeof t->dim);
    return t;
}

QN_UNUSED static void made_input(Made *m, const char *name, QnDtype dtype, QnShape shape)
{
    m->input[m->graph.n_inputs++] = (QnOnnxInfo){ name, made_type(m, dtype, shape) };
}

QN_UNUSED static void made_output(Made *m, const char *name, QnDtype dtype, QnShape shape)
{
    m->output[m->graph.n_outputs++] = (QnOnnxInfo){ name, made_type(m, dtype, shape) };
}

/* in, out: arrays that live as long as the model. */
QN_UNUSED static QnOnnxDef *made_node(Made *m, const char *op, const char *const *in, int n_in,
                                      const char *const *out, int n_out)
{
    QnOnnxDef *d = &m->node[m->graph.n_nodes++];
    *d = (QnOnnxDef){
        .name = out[0], .op = op, .domain = "", .n_in = n_in, .n_out = n_out, .in = in, .out = out
    };
    return d;
}

QN_UNUSED static void made_init(Made *m, const char *name, const QnTensor *t)
{
    m->init[m->graph.n_inits++] = (QnOnnxInit){ name, t };
}

#endif
