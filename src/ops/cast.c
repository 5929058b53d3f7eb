/* y = x in another dtype. Floats round to nearest even; to integers toward zero, saturating, NaN
 * to 0; to bool, nonzero is 1; integers to narrower ones keep their low bits. The rounding happens
 * where the result is stored. */
#include "ops/dialect.h"

QN_SCALAR float cast_f(float x)
{
    return x;
}

QN_SCALAR qn_long cast_i(qn_long x)
{
    return x;
}
QN_MAP1(cast)

#ifdef QN_HOST
#include "ir/dtype.h"
#include "ops/onnx.h"
#include "ops/onnx_put.h"

typedef struct Attr {
    QnDtype dtype;
    bool saturate;
} Attr;

static const QnAttrField cast_fields[] = {
    { .name = "dtype", .kind = QN_ATTR_DTYPE, .offset = offsetof(Attr, dtype), .doc = "of y" },
    { .name = "saturate",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(Attr, saturate),
      .def = 1,
      .doc =
          "floats of 8 bits: what is too large becomes the largest number, not infinity or NaN" },
};

static QnStatus cast_infer(QnInfer *c)
{
    c->out[0].dtype = ((const Attr *)c->attr)->dtype;
    c->out[0].shape = c->in[0]->shape;
    return QN_OK;
}

static double cast_ref(const double *x, const double *param)
{
    (void)param;
    return x[0];
}

static double cast_finish(double y, const void *attr)
{
    const Attr *a = attr;
    QnFloat8 format;
    return qn_dtype_float8(a->dtype, &format) ? qn_float8_bound(format, y, a->saturate) : y;
}

static int64_t cast_ref_int(const int64_t *x)
{
    return cast_i(x[0]);
}

static void cast_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnDtype from = n->in[0]->type.dtype;
    QnDtype to = n->out[0].type.dtype;
    if (qn_dtype_is_float(from) && qn_dtype_is_float(to) && !qn_dtype_is_storage(to))
        dx[0] = qn_cast(g, dy[0], from);
}

static const QnSample cast_samples[] = {
    { .in = { { 2, { 4, 7 } } }, .n_in = 1, .attr = &(Attr){ QN_DTYPE_F32, true } },
    { .in = { { 1, { 130 } } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_F64, true },
      .lo = -9,
      .hi = 9 },
    { .in = { { 2, { 5, 3 }, .keep_off = 0.01, .kink = 1 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_I32, true },
      .lo = -9,
      .hi = 9,
      .flags = QN_SAMPLE_NO_GRAD }, /* steps */
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_I64, .lo = -300, .hi = 300 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_U8, true } },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_U8, .lo = 0, .hi = 255 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_I16, true } },
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_U64, .lo = 0, .hi = 300 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_F32, true } },
    { .in = { { 1, { 130 }, .dtype = QN_DTYPE_F8E4M3FN, .lo = -500, .hi = 500 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_F32, true },
      .flags = QN_SAMPLE_NO_GRAD }, /* a storage type */
    { .in = { { 1, { 130 }, .lo = -1000, .hi = 1000 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_F8E4M3FN, false },
      .flags = QN_SAMPLE_NO_GRAD }, /* steps */
    { .in = { { 1, { 9 }, .dtype = QN_DTYPE_BOOL, .lo = 0, .hi = 1 } },
      .n_in = 1,
      .attr = &(Attr){ QN_DTYPE_F32, true } },
};

/* x itself if it has the dtype already. */
QN_API QnValue *qn_cast_as(QnGraph *g, QnValue *x, QnDtype dtype, bool saturate)
{
    if (!qn_value_is_poison(x) && x->type.dtype == dtype)
        return x;
    return qn_emit1(g, &qn_op_cast, &(Attr){ dtype, saturate }, x);
}

QN_API QnValue *qn_cast(QnGraph *g, QnValue *x, QnDtype dtype)
{
    return qn_cast_as(g, x, dtype, true);
}

static QnStatus import_to(QnOnnxNode *n, bool to_text, QnDtype dtype)
{
    if (to_text || (n->in[0]->known && n->in[0]->known->text))
        return qn_onnx_cast_text(n, to_text, dtype);
    bool saturate = qn_onnx_int(n, "saturate", 1) != 0;
    QnValue *x = qn_onnx_in(n, 0);
    /* floats beyond 4 bits: the standard leaves them open, its cases keep the low bits */
    if ((dtype == QN_DTYPE_I4 || dtype == QN_DTYPE_U4) && qn_dtype_is_float(x->type.dtype))
        x = qn_cast(n->g, x, QN_DTYPE_I32);
    return qn_onnx_out0(n, qn_cast_as(n->g, x, dtype, saturate));
}

static QnStatus cast_import(QnOnnxNode *n)
{
    int64_t to = qn_onnx_int(n, "to", 0);
    QnDtype dtype = QN_DTYPE_F32;
    if (!qn_onnx_has(n, 0))
        return qn_fail(QN_EARG, "input 0 is missing");
    if (to != QN_ONNX_DTYPE_STRING && !qn_onnx_dtype(to, &dtype))
        return qn_onnx_refuse(n, "a cast to element type %lld", (long long)to);
    return import_to(n, to == QN_ONNX_DTYPE_STRING, dtype);
}

static QnStatus cast_import_like(QnOnnxNode *n)
{
    if (!qn_onnx_has(n, 0) || !qn_onnx_has(n, 1))
        return qn_fail(QN_EARG, "needs two inputs");
    const QnType *t = qn_onnx_type(n, 1);
    bool to_text = n->in[1]->known && n->in[1]->known->text;
    if (!t && !to_text)
        return qn_fail(QN_EDTYPE, "input 1 must be a tensor");
    return import_to(n, to_text, t ? t->dtype : QN_DTYPE_F32);
}

static const QnOnnxMap cast_onnx[] = {
    { .name = "Cast", .since = 6, .import = cast_import },
    { .name = "CastLike", .since = 15, .import = cast_import_like },
};

static QnStatus cast_put(QnOnnxPut *p, const QnNode *n)
{
    const Attr *a = n->attr;
    QnOnnxDef *d = qn_put_same(p, n, "Cast");
    qn_put_attr_int(p, d, "to", qn_onnx_dtype_number(a->dtype));
    if (!a->saturate && qn_put_opset(p) >= 19)
        qn_put_attr_int(p, d, "saturate", 0);
    return qn_put_status(p);
}

const QnOp qn_op_cast = {
    .name = "cast",
    .version = 1,
    .doc = "x in another dtype",
    .n_in = 1,
    .traits = QN_MAP | QN_ANY_LAYOUT | QN_ANY_DTYPE | QN_TEXT_F8,
    QN_ATTRS(Attr, cast_fields),
    .infer = cast_infer,
    .grad = cast_grad,
    .map =
        &(const QnMapInfo){
            .ref = cast_ref, .ref_int = cast_ref_int, .finish = cast_finish, .flops = 1 },
    .device = QN_TEXT(cast),
    QN_ONNX(cast_onnx),
    .onnx_put = cast_put,
    .onnx_writes = "Cast",
    QN_SAMPLES(cast_samples),
};
#endif
