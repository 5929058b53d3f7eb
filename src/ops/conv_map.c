/* A convolution and the maps after it in one: what the convolution gives is never stored. Made by
 * the passes, never by models. Inputs: x and w of the convolution, its bias if there is one, then
 * what the maps read beside its result, which broadcasts to its shape. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/body.h"
#include "ops/ops.h"
#include "ops/util.h"
#include "ops/window.h"

typedef struct Attr {
    QnConvAttr conv; /* first */
    bool bias;
    const QnBody *body;
} Attr;

static const QnAttrField conv_map_fields[] = {
    QN_CONV_FIELDS,
    { .name = "bias",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, bias),
      .doc = "the third input is the convolution's bias" },
    { .name = "body",
      .kind = QN_ATTR_BODY,
      .offset = offsetof(Attr, body),
      .doc = "the maps, in order; operand 0 is the convolution's result; one output" },
};

/* Whether s broadcasts to y without making it larger. */
static bool fits(const QnShape *s, const QnShape *y)
{
    for (int k = 1; k <= s->rank; k++) {
        QnDim d = s->dim[s->rank - k];
        if (k > y->rank || (d != 1 && d != y->dim[y->rank - k]))
            return false;
    }
    return true;
}

static QnStatus conv_map_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    int n_conv = a->bias ? 3 : 2;
    QnInfer conv = { .graph = c->graph, .attr = &a->conv, .n_in = n_conv, .in = c->in, .n_out = 1 };
    const QnType *in[QN_MAX_IN];
    if (c->n_in < n_conv)
        return qn_fail(QN_EARG, "conv_map: %d inputs, the convolution takes %d", c->n_in, n_conv);
    QN_TRY(qn_op_conv.infer(&conv));
    const QnType y = conv.out[0];
    in[0] = &y;
    for (int i = n_conv; i < c->n_in; i++) {
        in[1 + i - n_conv] = c->in[i];
        if (c->in[i]->dtype != QN_DTYPE_COUNT && !fits(&c->in[i]->shape, &y.shape))
            return qn_fail(QN_ESHAPE, "conv_map: input %d does not broadcast to the result", i);
    }
    QN_TRY(qn_body_check("conv_map", c->graph, a->body, in, 1 + c->n_in - n_conv));
    if (a->body->n_out != 1)
        return qn_fail(QN_EARG, "conv_map: the body has %d outputs, not one", a->body->n_out);
    c->out[0] = y;
    c->out[0].dtype = qn_body_dtype(a->body, 0);
    return QN_OK;
}

static QnConvGeom conv_map_geom(const QnNode *n)
{
    return qn_window_conv(&((const Attr *)n->attr)->conv, &n->in[0]->type.shape,
                          &n->in[1]->type.shape, &n->out[0].type.shape);
}

static QnCost conv_map_cost(const QnNode *n)
{
    const Attr *a = n->attr;
    QnConvGeom g = conv_map_geom(n);
    double count = (double)qn_shape_count(&n->out[0].type.shape);
    QnCost c = { .flops = qn_window_conv_flops(&g) +
                          count * (qn_body_flops(a->body) + (a->bias ? 1 : 0)),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    return c;
}

static void conv_map_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    int n_conv = a->bias ? 3 : 2;
    QnValue *in[QN_MAX_IN];
    in[0] = qn_conv(g, n->in[0], n->in[1], a->bias ? n->in[2] : NULL, &a->conv);
    for (int i = n_conv; i < n->n_in; i++)
        in[1 + i - n_conv] = n->in[i];
    qn_body_emit(g, a->body, in, out);
}

static QnStatus conv_map_call(const QnNode *n, QnDeviceCall *c)
{
    static const char *const kernels[] = { "conv_direct_map", "conv_tile_map", "conv_wide_map" };
    QnConvGeom g = conv_map_geom(n);
    if (!qn_dtype_is_float(n->out[0].type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "conv_map: the device text is for floating point");
    QN_TRY(qn_window_conv_call("conv_map", &g, kernels, c));
    c->run[0] = c->bias_axis = 1;
    c->run[1] = 2;
    return QN_OK;
}

static const QnBody conv_map_relu = {
    .n_in = 1,
    .n_instr = 1,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_silu, .arg = { 0 } } },
    .out = (const int[]){ 0 },
};

static const QnBody conv_map_residual = {
    .n_in = 2,
    .n_instr = 2,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_add, .arg = { 1, 0 } },
                                    { .op = &qn_op_sigmoid, .arg = { 2 } } },
    .out = (const int[]){ 1 },
};

static const QnSample conv_map_samples[] = {
    { .in = { { 4, { 2, 3, 5, 6 } }, { 4, { 4, 3, 3, 3 } }, { 1, { 4 } } },
      .n_in = 3,
      .attr = &(Attr){ { .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 }, true, &conv_map_relu } },
    { .in = { { 4, { 1, 4, 7, 5 } }, { 4, { 6, 2, 3, 2 } }, { 4, { 1, 6, 5, 4 } } },
      .n_in = 3,
      .attr = &(Attr){ { .groups = 2 }, false, &conv_map_residual } },
    { .in = { { 4, { 2, 16, 9, 8 } }, { 4, { 32, 16, 3, 3 } }, { 1, { 32 } }, { 3, { 32, 1, 1 } } },
      .n_in = 4,
      .attr = &(Attr){ { .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 }, true, &conv_map_residual } },
};

/* The convolution n and a body on its result and n_more other values. */
QN_API QnValue *qn_conv_map(QnGraph *g, const QnNode *n, const QnBody *body, QnValue *const *more,
                            int n_more)
{
    Attr a = { .conv = *(const QnConvAttr *)n->attr,
               .bias = n->n_in > 2 && n->in[2],
               .body = body };
    QnValue *in[QN_MAX_IN];
    int n_conv = a.bias ? 3 : 2;
    if (n_more > QN_MAX_IN - 3)
        return qn_graph_poison(g);
    memcpy(in, n->in, (size_t)n_conv * sizeof *in);
    for (int i = 0; i < n_more; i++)
        in[n_conv + i] = more[i];
    return qn_emitn(g, &qn_op_conv_map, &a, in, n_conv + n_more);
}

/* Inputs of the convolution: those after them are the body's. */
QN_API int qn_conv_map_split(const QnNode *n)
{
    return ((const Attr *)n->attr)->bias ? 3 : 2;
}

const QnOp qn_op_conv_map = {
    .name = "conv_map",
    .version = 1,
    .doc = "convolution and maps on its result, which is not stored",
    .n_in = 2,
    .n_in_max = QN_MAX_IN,
    QN_ATTRS(Attr, conv_map_fields),
    .infer = conv_map_infer,
    .cost = conv_map_cost,
    .lower = conv_map_lower,
    .device = QN_TEXT(conv),
    .call = conv_map_call,
    QN_SAMPLES(conv_map_samples),
};
#endif
