/* A matrix product and maps on it in one: y = body(a b + bias, ...). Made by the passes, never by
 * models. Inputs: those of the product, its bias if there is one, then what the maps read beside
 * the product, which broadcasts to its shape. Outputs: what the maps make of it; with `keep` the
 * product itself, as gradients need it; with `sums` the sums of the first over all axes but the
 * last, which is the gradient of a bias. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/body.h"
#include "ops/matmul.h"
#include "ops/ops.h"
#include "ops/util.h"

typedef struct Attr {
    QnMatmulAttr product;
    bool bias, keep, sums;
    const QnBody *body;
} Attr;

static const QnAttrField matmul_map_fields[] = {
    { .name = "trans_a",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, product.trans_a),
      .doc = "the last two axes of a are swapped" },
    { .name = "trans_b",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, product.trans_b),
      .doc = "the last two axes of b are swapped" },
    { .name = "bias",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, bias),
      .doc = "the third input is the product's bias" },
    { .name = "keep",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, keep),
      .doc = "the product is an output as well" },
    { .name = "sums",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, sums),
      .doc = "the last output is the first, summed over all axes but the last" },
    { .name = "body",
      .kind = QN_ATTR_BODY,
      .offset = offsetof(Attr, body),
      .doc = "the maps, in order; operand 0 is the product; one output" },
};

static int matmul_map_split(const QnNode *n)
{
    return ((const Attr *)n->attr)->bias ? 3 : 2;
}

/* Whether s broadcasts to y without making it larger. */
static bool matmul_map_fits(const QnShape *s, const QnShape *y)
{
    for (int k = 1; k <= s->rank; k++) {
        QnDim d = s->dim[s->rank - k];
        if (k > y->rank || (d != 1 && d != y->dim[y->rank - k]))
            return false;
    }
    return true;
}

static QnStatus matmul_map_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    int n_product = a->bias ? 3 : 2;
    QnInfer product = {
        .graph = c->graph, .attr = &a->product, .n_in = n_product, .in = c->in, .n_out = 1
    };
    const QnType *in[QN_MAX_IN];
    if (c->n_in < n_product)
        return qn_fail(QN_EARG, "matmul_map: %d inputs, the product takes %d", c->n_in, n_product);
    QN_TRY(qn_op_matmul.infer(&product));
    const QnType y = product.out[0];
    in[0] = &y;
    for (int i = n_product; i < c->n_in; i++) {
        in[1 + i - n_product] = c->in[i];
        if (c->in[i]->dtype != QN_DTYPE_COUNT && !matmul_map_fits(&c->in[i]->shape, &y.shape))
            return qn_fail(QN_ESHAPE, "matmul_map: input %d does not broadcast to the product", i);
    }
    QN_TRY(qn_body_check("matmul_map", c->graph, a->body, in, 1 + c->n_in - n_product));
    if (a->body->n_out != 1)
        return qn_fail(QN_EARG, "matmul_map: the body has %d outputs, not one", a->body->n_out);
    c->n_out = 1 + a->keep + a->sums;
    c->out[0] = y;
    c->out[0].dtype = qn_body_dtype(a->body, 0);
    if (a->keep)
        c->out[1] = y;
    if (a->sums)
        c->out[1 + a->keep] =
            (QnType){ .dtype = c->out[0].dtype, .shape = QN_SHAPE(y.shape.dim[y.shape.rank - 1]) };
    return QN_OK;
}

static QnCost matmul_map_cost(const QnNode *n)
{
    const Attr *a = n->attr;
    double count = (double)qn_shape_count(&n->out[0].type.shape);
    QnCost c = { .flops = count * (2 * (double)qn_matmul_length(n, a->product.trans_a) + a->bias +
                                   a->sums + qn_body_flops(a->body)) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    return c;
}

static void matmul_map_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    int n_product = matmul_map_split(n), rank = n->out[0].type.shape.rank;
    QnValue *in[QN_MAX_IN];
    in[0] = qn_matmul(g, n->in[0], n->in[1], a->bias ? n->in[2] : NULL, a->product.trans_a,
                      a->product.trans_b);
    for (int i = n_product; i < n->n_in; i++)
        in[1 + i - n_product] = n->in[i];
    qn_body_emit(g, a->body, in, out);
    if (a->keep)
        out[1] = in[0];
    if (a->sums) {
        QnInts axes = { .n = rank - 1 };
        for (int i = 0; i < rank - 1; i++)
            axes.v[i] = i;
        out[1 + a->keep] = qn_sum(g, out[0], axes, false);
    }
}

static QnStatus matmul_map_call(const QnNode *n, QnDeviceCall *c)
{
    const Attr *a = n->attr;
    if (a->sums)
        return qn_fail(QN_EUNSUPPORTED, "matmul_map: device text makes no sums of its result");
    if (!qn_dtype_is_float(n->out[0].type.dtype))
        return qn_fail(QN_EUNSUPPORTED, "matmul_map: the device text is for floating point");
    return qn_matmul_tiles(n, a->product.trans_a, a->product.trans_b, "matmul_tile_map", c);
}

static const QnBody matmul_map_gelu = {
    .n_in = 1,
    .n_instr = 1,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_gelu_tanh, .arg = { 0 } } },
    .out = (const int[]){ 0 },
};

static const QnBody matmul_map_gate = {
    .n_in = 3,
    .n_instr = 3,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_sigmoid, .arg = { 0 } },
                                    { .op = &qn_op_mul, .arg = { 1, 3 } },
                                    { .op = &qn_op_add, .arg = { 4, 2 } } },
    .out = (const int[]){ 2 },
};

static const QnSample matmul_map_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 7, 3 } }, { 1, { 3 } } },
      .n_in = 3,
      .attr = &(Attr){ .bias = true, .body = &matmul_map_gelu } },
    { .in = { { 2, { 20, 6 } }, { 2, { 17, 20 } }, { 2, { 6, 17 } }, { 1, { 17 } } },
      .n_in = 4,
      .attr = &(Attr){ .product = { true, true }, .body = &matmul_map_gate } },
    { .in = { { 3, { 2, 5, 4 } }, { 3, { 2, 4, 18 } }, { 0 }, { 3, { 2, 5, 1 } } },
      .n_in = 4,
      .attr = &(Attr){ .keep = true, .body = &matmul_map_gate } },
    { .in = { { 2, { 33, 8 } }, { 2, { 8, 5 } } },
      .n_in = 2,
      .attr = &(Attr){ .keep = true, .sums = true, .body = &matmul_map_gelu } },
};

/* The matmul n and a body on its result and n_more other values. */
QN_API QnNode *qn_matmul_map(QnGraph *g, const QnNode *n, const QnBody *body, QnValue *const *more,
                             int n_more, bool keep)
{
    Attr a = { .product = *(const QnMatmulAttr *)n->attr,
               .bias = n->n_in > 2 && n->in[2],
               .keep = keep,
               .body = body };
    QnValue *in[QN_MAX_IN];
    int n_product = a.bias ? 3 : 2;
    if (n_more > QN_MAX_IN - 3) {
        qn_graph_poison(g);
        return NULL;
    }
    memcpy(in, n->in, (size_t)n_product * sizeof *in);
    for (int i = 0; i < n_more; i++)
        in[n_product + i] = more[i];
    return qn_emit(g, &qn_op_matmul_map, &a, in, n_product + n_more);
}

/* The matmul_map m with the sums of its first output as well; NULL: it has them. */
QN_API QnNode *qn_matmul_map_with_sums(QnGraph *g, const QnNode *m)
{
    Attr a = *(const Attr *)m->attr;
    if (a.sums)
        return NULL;
    a.sums = true;
    return qn_emit(g, &qn_op_matmul_map, &a, m->in, m->n_in);
}

const QnOp qn_op_matmul_map = {
    .name = "matmul_map",
    .version = 1,
    .doc = "matrix product and maps on its result, which is not stored",
    .n_in = 2,
    .n_in_max = QN_MAX_IN,
    .n_out = -1,
    QN_ATTRS(Attr, matmul_map_fields),
    .infer = matmul_map_infer,
    .cost = matmul_map_cost,
    .lower = matmul_map_lower,
    .device = QN_TEXT(matmul),
    .call = matmul_map_call,
    QN_SAMPLES(matmul_map_samples),
};
#endif
