/* Blocks of channels become blocks of pixels: (N, C*b*b, H, W) to (N, C, H*b, W*b), as sub-pixel
 * convolution wants it (Shi et al. 2016, and ONNX). */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t block;
    bool column_first;
} Attr;

static const QnAttrField depth_to_space_fields[] = {
    { .name = "block",
      .kind = QN_ATTR_INT,
      .offset = offsetof(Attr, block),
      .def = 2,
      .min = 1,
      .max = 1 << 15,
      .doc = "side of a block in pixels" },
    { .name = "column_first",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, column_first),
      .doc = "channels are (C, b, b) (ONNX: CRD), not (b, b, C) (DCR)" },
};

static QnStatus depth_to_space_infer(QnInfer *c)
{
    int64_t b = ((const Attr *)c->attr)->block;
    const QnShape *s = &c->in[0]->shape;
    if (s->rank != 4 || (s->dim[1] >= 0 && s->dim[1] % (b * b))) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "depth_to_space: %s is not (N,C,H,W) with C a multiple of %lld",
                       qn_shape_text(s, text), (long long)(b * b));
    }
    c->out[0] = *c->in[0];
    QnDim *d = c->out[0].shape.dim;
    d[1] = qn_dim_div(c->graph, d[1], b * b);
    d[2] = qn_dim_mul(c->graph, d[2], b);
    d[3] = qn_dim_mul(c->graph, d[3], b);
    return QN_OK;
}

static void depth_to_space_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    const QnDim *d = n->in[0]->type.shape.dim;
    QnDim b = a->block, c = n->out[0].type.shape.dim[1];
    QnShape wide =
        a->column_first ? QN_SHAPE(d[0], c, b, b, d[2], d[3]) : QN_SHAPE(d[0], b, b, c, d[2], d[3]);
    QnInts order = a->column_first ? QN_AXES(0, 1, 4, 2, 5, 3) : QN_AXES(0, 3, 4, 1, 5, 2);
    QnValue *x = qn_transpose(g, qn_reshape(g, n->in[0], &wide), order);
    out[0] = qn_reshape(g, x, &n->out[0].type.shape);
}

static const QnSample depth_to_space_samples[] = {
    { .in = { { 4, { 2, 8, 2, 3 } } }, .n_in = 1, .attr = &(Attr){ 2, false } },
    { .in = { { 4, { 1, 18, 2, 5 } } }, .n_in = 1, .attr = &(Attr){ 3, true } },
};

QN_API QnValue *qn_depth_to_space(QnGraph *g, QnValue *x, int64_t block, bool column_first)
{
    return qn_emit1(g, &qn_op_depth_to_space, &(Attr){ block, column_first }, x);
}

static QnStatus depth_to_space_import(QnOnnxNode *n)
{
    int64_t block = qn_onnx_int(n, "blocksize", 0);
    bool crd = qn_onnx_is(n, "mode", "CRD", "DCR");
    if (!crd && !qn_onnx_is(n, "mode", "DCR", "DCR"))
        return qn_onnx_refuse(n, "a mode that is neither DCR nor CRD");
    return qn_onnx_out0(n, qn_depth_to_space(n->g, qn_onnx_in(n, 0), block, crd));
}

static const QnOnnxMap depth_to_space_onnx[] = {
    { .name = "DepthToSpace", .since = 1, .import = depth_to_space_import },
};

const QnOp qn_op_depth_to_space = {
    .name = "depth_to_space",
    .version = 1,
    .doc = "channels become blocks of pixels",
    .n_in = 1,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, depth_to_space_fields),
    .infer = depth_to_space_infer,
    .lower = depth_to_space_lower,
    QN_ONNX(depth_to_space_onnx),
    QN_SAMPLES(depth_to_space_samples),
};
#endif
