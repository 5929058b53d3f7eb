/* A product of matrices y (M,N) = a (M,K) * b (K,N), and the sums of one operand over K: of b,
 * which is then the gradient of what b is the gradient of plus a row, or with of_a of a. With
 * trans_a a is (K,M), with trans_b b is (N,K). Made by the passes, never by models. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/matmul.h"
#include "ops/util.h"

typedef struct Attr {
    QnMatmulAttr product;
    bool of_a;
} Attr;

static const QnAttrField matmul_sums_fields[] = {
    { .name = "trans_a",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, product.trans_a),
      .doc = "a is (K,M)" },
    { .name = "trans_b",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, product.trans_b),
      .doc = "b is (N,K)" },
    { .name = "of_a",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, of_a),
      .doc = "the sums are of a, not of b" },
};

static QnStatus matmul_sums_infer(QnInfer *c)
{
    const Attr *a = c->attr;
    QnInfer product = {
        .graph = c->graph, .attr = &a->product, .n_in = 2, .in = c->in, .n_out = 1
    };
    if (c->in[0]->shape.rank != 2 || c->in[1]->shape.rank != 2)
        return qn_fail(QN_ESHAPE, "matmul_sums: takes two matrices, not ranks %d and %d",
                       c->in[0]->shape.rank, c->in[1]->shape.rank);
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "matmul_sums: multiplies floats, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    QN_TRY(qn_op_matmul.infer(&product));
    c->out[0] = c->out[1] = product.out[0];
    c->out[1].shape = QN_SHAPE(product.out[0].shape.dim[!a->of_a]);
    return QN_OK;
}

static QnCost matmul_sums_cost(const QnNode *n)
{
    const Attr *a = n->attr;
    double count = (double)qn_shape_count(&n->out[0].type.shape);
    QnCost c = { .flops = 2 * count * (double)qn_matmul_length(n, a->product.trans_a) +
                          (double)qn_shape_count(&n->in[!a->of_a]->type.shape) };
    for (int i = 0; i < 2; i++) {
        c.bytes_read += (double)qn_type_bytes(&n->in[i]->type);
        c.bytes_written += (double)qn_type_bytes(&n->out[i].type);
    }
    return c;
}

static void matmul_sums_lower(QnGraph *g, QnNode *n, QnValue **out)
{
    const Attr *a = n->attr;
    int64_t axis = a->of_a ? !a->product.trans_a : a->product.trans_b;
    out[0] = qn_matmul(g, n->in[0], n->in[1], NULL, a->product.trans_a, a->product.trans_b);
    out[1] = qn_sum(g, n->in[!a->of_a], QN_AXES(axis), false);
}

static const QnSample matmul_sums_samples[] = {
    { .in = { { 2, { 4, 7 } }, { 2, { 7, 3 } } }, .n_in = 2 },
    { .in = { { 2, { 33, 5 } }, { 2, { 33, 18 } } },
      .n_in = 2,
      .attr = &(Attr){ .product = { true, false } } },
    { .in = { { 2, { 20, 6 } }, { 2, { 17, 20 } } },
      .n_in = 2,
      .attr = &(Attr){ .product = { true, true }, .of_a = true } },
};

/* The matmul n of two matrices, without a bias, and the sums of its first or second operand. */
QN_API QnNode *qn_matmul_sums(QnGraph *g, const QnNode *n, bool of_a)
{
    return qn_emit(g, &qn_op_matmul_sums, &(Attr){ *(const QnMatmulAttr *)n->attr, of_a }, n->in,
                   2);
}

const QnOp qn_op_matmul_sums = {
    .name = "matmul_sums",
    .version = 1,
    .doc = "product of matrices, and the sums of one of them over what is multiplied",
    .n_in = 2,
    .n_out = 2,
    QN_ATTRS(Attr, matmul_sums_fields),
    .infer = matmul_sums_infer,
    .cost = matmul_sums_cost,
    .lower = matmul_sums_lower,
    QN_SAMPLES(matmul_sums_samples),
};
#endif
