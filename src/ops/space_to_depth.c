/* Blocks of pixels become channels: (N, C, H*b, W*b) to (N, b*b*C, H, W), the block's row and
 * column outermost, as ONNX has it. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/util.h"

typedef struct Attr {
    int64_t block;
    bool column_first;
} Attr;

static const QnAttrField space_to_depth_fields[] = {
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
      .doc = "channels become (C, b, b) (ONNX: CRD), not (b, b, C) (DCR)" },
};

static QnStatus space_to_depth_infer(QnInfer *c)
{
    int64_t b = ((const Attr *)c->attr)->block;
    const QnShape *s = &c->in[0]->shape;
    bool fits = s->rank == 4;
    for (int i = 2; fits && i < 4; i++)
        fits = s->dim[i] < 0 || s->dim[i] % b == 0;
    if (!fits) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "space_to_depth: %s is not (N,C,H,W) with multiples of %lld",
                       qn_shape_text(s, text), (long long)b);
    }
    c->out[0] = *c->in[0];
    QnDim *d = c->out[0].shape.dim;
    d[1] = qn_dim_mul(c->graph, d[1], b * b);
    d[2] = qn_dim_div(c->graph, d[2], b);
    d[3] = qn_dim_div(c->graph, d[3], b);
    return QN_OK;
}

static void space_to_depth_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    QnDim b = a->block;
    const QnDim *d = n->in[0]->type.shape.dim, *to = n->out[0].type.shape.dim;
    QnShape wide = QN_SHAPE(d[0], d[1], to[2], b, to[3], b);
    QnInts order = a->column_first ? QN_AXES(0, 1, 3, 5, 2, 4) : QN_AXES(0, 3, 5, 1, 2, 4);
    QnValue *x = qn_transpose(g, qn_reshape(g, n->in[0], &wide), order);
    out[0] = qn_reshape(g, x, &n->out[0].type.shape);
}

static const QnSample space_to_depth_samples[] = {
    { .in = { { 4, { 2, 3, 4, 6 } } }, .n_in = 1, .attr = &(Attr){ 2, false } },
    { .in = { { 4, { 1, 2, 9, 3 } } }, .n_in = 1, .attr = &(Attr){ 3, true } },
};

QN_API QnValue *qn_space_to_depth(QnGraph *g, QnValue *x, int64_t block, bool column_first)
{
    return qn_emit1(g, &qn_op_space_to_depth, &(Attr){ block, column_first }, x);
}

static QnStatus space_to_depth_import(QnOnnxNode *n)
{
    int64_t block = qn_onnx_int(n, "blocksize", 0);
    bool crd = qn_onnx_is(n, "mode", "CRD", "DCR");
    if (!crd && !qn_onnx_is(n, "mode", "DCR", "DCR"))
        return qn_onnx_refuse(n, "a mode that is neither DCR nor CRD");
    return qn_onnx_out0(n, qn_space_to_depth(n->g, qn_onnx_in(n, 0), block, crd));
}

static const QnOnnxMap space_to_depth_onnx[] = {
    { .name = "SpaceToDepth", .since = 1, .import = space_to_depth_import },
};

const QnOp qn_op_space_to_depth = {
    .name = "space_to_depth",
    .version = 1,
    .doc = "blocks of pixels become channels",
    .n_in = 1,
    .traits = QN_ANY_DTYPE,
    QN_ATTRS(Attr, space_to_depth_fields),
    .infer = space_to_depth_infer,
    .lower = space_to_depth_lower,
    QN_ONNX(space_to_depth_onnx),
    QN_SAMPLES(space_to_depth_samples),
};
#endif
