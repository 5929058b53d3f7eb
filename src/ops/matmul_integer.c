/* Product of i8 or u8 matrices, exact in i32: y (…,M,N) = (a - a_zero) (…,M,K) * (b - b_zero)
 * (…,K,N). Leading axes broadcast. a_zero is absent, a scalar, (M) or (…,M,1); b_zero a scalar, (N)
 * or (…,1,N). Sums beyond i32 saturate. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/region.h"

static QnStatus matmul_integer_product(QnInfer *c)
{
    const QnShape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    QnShape *y = &c->out[0].shape;
    bool fits = a->rank >= 2 && b->rank >= 2 &&
                qn_region_may_equal(a->dim[a->rank - 1], b->dim[b->rank - 2]);
    y->rank = QN_MAX(a->rank, b->rank);
    for (int i = 3; fits && i <= y->rank; i++) {
        QnDim p = i <= a->rank ? a->dim[a->rank - i] : 1;
        QnDim q = i <= b->rank ? b->dim[b->rank - i] : 1;
        fits = qn_region_may_equal(p, q) || p == 1 || q == 1;
        y->dim[y->rank - i] = p == 1 || (p < 0 && q > 1) ? q : p;
    }
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "matmul_integer: %s and %s do not fit; want (…,M,K) and (…,K,N)",
                       qn_shape_text(a, p), qn_shape_text(b, q));
    }
    y->dim[y->rank - 2] = a->dim[a->rank - 2];
    y->dim[y->rank - 1] = b->dim[b->rank - 1];
    return QN_OK;
}

/* Zero points as a tensor that broadcasts to its operand: (M) stands for (M,1). */
static QnShape matmul_integer_spread(const QnShape *z, int operand)
{
    return operand == 0 && z->rank == 1 ? QN_SHAPE(z->dim[0], 1) : *z;
}

static QnStatus matmul_integer_zero(const QnInfer *c, int operand)
{
    const QnType *x = c->in[operand], *z = c->n_in > operand + 2 ? c->in[operand + 2] : NULL;
    if (!z || z->dtype == QN_DTYPE_COUNT)
        return QN_OK;
    if (z->dtype != x->dtype)
        return qn_fail(QN_EDTYPE, "matmul_integer: the zero points of operand %d are %s, it is %s",
                       operand, qn_dtype_name(z->dtype), qn_dtype_name(x->dtype));
    QnShape s = matmul_integer_spread(&z->shape, operand);
    bool fits = s.rank <= x->shape.rank;
    for (int i = 1; fits && i <= s.rank; i++) {
        bool folded = i == (operand == 0 ? 1 : 2);
        QnDim d = s.dim[s.rank - i];
        fits = d == 1 || (!folded && qn_region_may_equal(d, x->shape.dim[x->shape.rank - i]));
    }
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE,
                       "matmul_integer: zero points %s of %s; give one, or one for each %s",
                       qn_shape_text(&z->shape, p), qn_shape_text(&x->shape, q),
                       operand == 0 ? "row" : "column");
    }
    return QN_OK;
}

static QnStatus matmul_integer_infer(QnInfer *c)
{
    for (int i = 0; i < 2; i++) {
        QnDtype d = c->in[i]->dtype;
        if (d != QN_DTYPE_I8 && d != QN_DTYPE_U8)
            return qn_fail(QN_EDTYPE, "matmul_integer: operand %d is %s; it takes i8 and u8", i,
                           qn_dtype_name(d));
    }
    QN_TRY(matmul_integer_product(c));
    for (int i = 0; i < 2; i++)
        QN_TRY(matmul_integer_zero(c, i));
    c->out[0].dtype = QN_DTYPE_I32;
    return QN_OK;
}

static int64_t matmul_integer_k(const QnNode *n)
{
    const QnShape *a = &n->in[0]->type.shape;
    return a->dim[a->rank - 1];
}

static QnCost matmul_integer_cost(const QnNode *n)
{
    QnCost c = { .flops = 2 * (double)qn_shape_count(&n->out[0].type.shape) *
                          (double)matmul_integer_k(n),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    return c;
}

static QnStatus matmul_integer_ref(const QnRefArgs *r)
{
    const QnShape *y = &r->out_type[0]->shape;
    int rank = y->rank;
    int64_t stride[4][QN_MAX_RANK] = { 0 }, step[2], index[QN_MAX_RANK] = { 0 };
    for (int i = 0; i < r->n_in; i++) {
        if (r->in[i]) {
            QnShape s =
                i < 2 ? r->in_type[i]->shape : matmul_integer_spread(&r->in_type[i]->shape, i - 2);
            qn_util_spread_strides(&s, rank, stride[i]);
        }
    }
    step[0] = stride[0][rank - 1];
    step[1] = stride[1][rank - 2];
    stride[0][rank - 1] = stride[1][rank - 2] = 0;
    for (int64_t i = 0, n = qn_shape_count(y), k = matmul_integer_k(r->node); i < n; i++) {
        double zero[2] = { 0, 0 }, sum = 0;
        for (int z = 0; z < 2; z++) {
            if (r->n_in > z + 2 && r->in[z + 2])
                zero[z] = r->in[z + 2][qn_util_offset(rank, index, stride[z + 2])];
        }
        const double *a = r->in[0] + qn_util_offset(rank, index, stride[0]);
        const double *b = r->in[1] + qn_util_offset(rank, index, stride[1]);
        for (int64_t j = 0; j < k; j++)
            sum += (a[j * step[0]] - zero[0]) * (b[j * step[1]] - zero[1]);
        r->out[0][i] = fmin(fmax(sum, INT32_MIN), INT32_MAX);
        qn_util_next(y, index);
    }
    return QN_OK;
}

#define I8(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__, QN_DTYPE_I8, -128, 127                                                        \
    }
#define U8(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__, QN_DTYPE_U8, 0, 255                                                           \
    }
static const QnSample matmul_integer_samples[] = {
    { .in = { U8(2, { 4, 7 }), I8(2, { 7, 5 }) }, .n_in = 2 },
    { .in = { U8(2, { 4, 130 }), U8(2, { 130, 3 }), U8(0, { 0 }), U8(0, { 0 }) }, .n_in = 4 },
    { .in = { I8(3, { 2, 3, 4 }), I8(2, { 4, 5 }), I8(1, { 3 }), I8(1, { 5 }) }, .n_in = 4 },
    { .in = { I8(4, { 1, 3, 3, 4 }), U8(4, { 2, 1, 4, 5 }), I8(4, { 1, 3, 3, 1 }),
              U8(4, { 2, 1, 1, 5 }) },
      .n_in = 4 },
};
#undef I8
#undef U8

/* Zero points may be NULL: 0. */
QN_API QnValue *qn_matmul_integer(QnGraph *g, QnValue *a, QnValue *b, QnValue *a_zero,
                                  QnValue *b_zero)
{
    return qn_emitn(g, &qn_op_matmul_integer, NULL, (QnValue *[]){ a, b, a_zero, b_zero },
                    b_zero   ? 4
                    : a_zero ? 3
                             : 2);
}

/* Vectors as numpy's matmul takes them: a row before, a column after. */
static QnStatus matmul_integer_import(QnOnnxNode *n)
{
    int a = qn_onnx_rank(n, 0), b = qn_onnx_rank(n, 1);
    if (a < 1 || b < 1)
        return qn_fail(QN_ESHAPE, "its operands must be tensors of numbers, no scalars");
    QnValue *x = qn_onnx_in(n, 0), *w = qn_onnx_in(n, 1);
    QnValue *y = qn_matmul_integer(n->g, a == 1 ? qn_unsqueeze(n->g, x, 0) : x,
                                   b == 1 ? qn_unsqueeze(n->g, w, 1) : w, qn_onnx_in_or(n, 2, NULL),
                                   qn_onnx_in_or(n, 3, NULL));
    if (b == 1)
        y = qn_squeeze(n->g, y, -1);
    if (a == 1)
        y = qn_squeeze(n->g, y, b == 1 ? -1 : -2);
    return qn_onnx_out0(n, y);
}

static const QnOnnxMap matmul_integer_onnx[] = {
    { .name = "MatMulInteger", .since = 10, .import = matmul_integer_import },
};

const QnOp qn_op_matmul_integer = {
    .name = "matmul_integer",
    .version = 1,
    .doc = "matrix product of 8-bit integers, exact",
    .n_in = 2,
    .n_in_max = 4,
    .traits = QN_NO_GRAD,
    .infer = matmul_integer_infer,
    .cost = matmul_integer_cost,
    .ref = matmul_integer_ref,
    QN_ONNX(matmul_integer_onnx),
    QN_SAMPLES(matmul_integer_samples),
};
#endif
