/* Convolution of i8 or u8 tensors, exact in i32: conv(x - x_zero, w - w_zero), padding counts as 0
 * after that. x_zero is absent or a scalar, w_zero a scalar or one for each of the M output
 * channels. Sums beyond i32 saturate. */
#include "ops/dialect.h"

#ifdef QN_HOST
#include "ops/onnx_window.h"
#include "ops/region.h"
#include "ops/window.h"

static const QnAttrField conv_integer_fields[] = { QN_CONV_FIELDS };

static QnStatus conv_integer_zero(const QnInfer *c, int operand)
{
    const QnType *x = c->in[operand], *z = c->n_in > operand + 2 ? c->in[operand + 2] : NULL;
    if (!z || z->dtype == QN_DTYPE_COUNT)
        return QN_OK;
    if (z->dtype != x->dtype)
        return qn_fail(QN_EDTYPE, "conv_integer: the zero point of operand %d is %s, it is %s",
                       operand, qn_dtype_name(z->dtype), qn_dtype_name(x->dtype));
    const QnShape *s = &z->shape;
    bool fits = s->rank == 0 || (s->rank == 1 && s->dim[0] == 1) ||
                (operand == 1 && s->rank == 1 && qn_region_may_equal(s->dim[0], x->shape.dim[0]));
    if (!fits) {
        char p[QN_TYPE_TEXT_BYTES], q[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "conv_integer: zero points %s of %s; give one%s",
                       qn_shape_text(s, p), qn_shape_text(&x->shape, q),
                       operand ? ", or one for each output channel" : "");
    }
    return QN_OK;
}

static QnStatus conv_integer_infer(QnInfer *c)
{
    for (int i = 0; i < 2; i++) {
        QnDtype d = c->in[i]->dtype;
        if (d != QN_DTYPE_I8 && d != QN_DTYPE_U8)
            return qn_fail(QN_EDTYPE, "conv_integer: operand %d is %s; it takes i8 and u8", i,
                           qn_dtype_name(d));
    }
    QN_TRY(qn_window_conv_shape(c->graph, "conv_integer", c->attr, &c->in[0]->shape,
                                &c->in[1]->shape, &c->out[0].shape));
    for (int i = 0; i < 2; i++)
        QN_TRY(conv_integer_zero(c, i));
    c->out[0].dtype = QN_DTYPE_I32;
    return QN_OK;
}

static QnConvGeom conv_integer_geom(const QnNode *n)
{
    return qn_window_conv(n->attr, &n->in[0]->type.shape, &n->in[1]->type.shape,
                          &n->out[0].type.shape);
}

static QnCost conv_integer_cost(const QnNode *n)
{
    QnConvGeom g = conv_integer_geom(n);
    QnCost c = { .flops = qn_window_conv_flops(&g),
                 .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
    for (int i = 0; i < n->n_in; i++)
        c.bytes_read += n->in[i] ? (double)qn_type_bytes(&n->in[i]->type) : 0;
    return c;
}

/* x - zero, element i with zero point i / each of n_zero. */
static void conv_integer_centre(const double *x, int64_t n, const double *zero, int64_t n_zero,
                                double *out)
{
    int64_t each = n_zero > 1 ? n / n_zero : n;
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] - (zero ? zero[i / QN_MAX(each, 1)] : 0);
}

static QnStatus conv_integer_ref(const QnRefArgs *a)
{
    QnConvGeom g = conv_integer_geom(a->node);
    int64_t n[2];
    double *centred[2] = { NULL, NULL };
    QnStatus st = QN_ENOMEM;
    for (int i = 0; i < 2; i++) {
        n[i] = qn_shape_count(&a->in_type[i]->shape);
        centred[i] = qn_alloc_array((size_t)n[i] + 1, sizeof(double));
        if (!centred[i])
            goto done;
        bool given = a->n_in > i + 2 && a->in[i + 2];
        int64_t zeros = given ? qn_shape_count(&a->in_type[i + 2]->shape) : 0;
        conv_integer_centre(a->in[i], n[i], given ? a->in[i + 2] : NULL, zeros, centred[i]);
    }
    qn_window_conv_ref(&g, QN_CONV_Y, centred[0], centred[1], NULL, a->out[0]);
    for (int64_t i = 0, m = qn_shape_count(&a->out_type[0]->shape); i < m; i++)
        a->out[0][i] = fmin(fmax(a->out[0][i], INT32_MIN), INT32_MAX);
    st = QN_OK;
done:
    qn_free(centred[0]);
    qn_free(centred[1]);
    return st;
}

#define I8(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__, QN_DTYPE_I8, -128, 127                                                        \
    }
#define U8(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__, QN_DTYPE_U8, 0, 255                                                           \
    }
static const QnSample conv_integer_samples[] = {
    { .in = { U8(4, { 2, 3, 5, 6 }), I8(4, { 4, 3, 3, 3 }), U8(0, { 0 }), I8(1, { 4 }) },
      .n_in = 4,
      .attr = &(QnConvAttr){ .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1 } },
    { .in = { U8(4, { 1, 4, 7, 5 }), U8(4, { 6, 2, 3, 2 }), U8(0, { 0 }), U8(0, { 0 }) },
      .n_in = 4,
      .attr = &(QnConvAttr){ { 2, { 2, 1 } }, { 4, { 0, 1, 2, 0 } }, { 2, { 1, 2 } }, 2 } },
    { .in = { I8(3, { 1, 2, 130 }), I8(3, { 3, 2, 4 }) },
      .n_in = 2,
      .attr = &(QnConvAttr){ .strides = { 1, { 3 } }, .groups = 1 } },
};
#undef I8
#undef U8

/* Zero points may be NULL: 0. */
QN_API QnValue *qn_conv_integer(QnGraph *g, QnValue *x, QnValue *w, QnValue *x_zero,
                                QnValue *w_zero, const QnConvAttr *attr)
{
    return qn_emitn(g, &qn_op_conv_integer, attr, (QnValue *[]){ x, w, x_zero, w_zero },
                    w_zero   ? 4
                    : x_zero ? 3
                             : 2);
}

static QnStatus conv_integer_import(QnOnnxNode *n)
{
    const QnShape *x;
    const QnType *w = qn_onnx_type(n, 1);
    QnConvAttr attr;
    QN_TRY(qn_onnx_window_input(n, &x));
    if (!w)
        return qn_fail(QN_EDTYPE, "input 1 must be a tensor of numbers");
    QN_TRY(qn_onnx_window_conv(n, x, &w->shape, &attr));
    return qn_onnx_out0(n, qn_conv_integer(n->g, qn_onnx_in(n, 0), qn_onnx_in(n, 1),
                                           qn_onnx_in_or(n, 2, NULL), qn_onnx_in_or(n, 3, NULL),
                                           &attr));
}

static const QnOnnxMap conv_integer_onnx[] = {
    { .name = "ConvInteger", .since = 10, .import = conv_integer_import },
};

const QnOp qn_op_conv_integer = {
    .name = "conv_integer",
    .version = 1,
    .doc = "convolution of 8-bit integers, exact",
    .n_in = 2,
    .n_in_max = 4,
    .traits = QN_NO_GRAD,
    QN_ATTRS(QnConvAttr, conv_integer_fields),
    .infer = conv_integer_infer,
    .cost = conv_integer_cost,
    .ref = conv_integer_ref,
    QN_ONNX(conv_integer_onnx),
    QN_SAMPLES(conv_integer_samples),
};
#endif
