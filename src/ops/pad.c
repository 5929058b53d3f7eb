/* Elements added before and after each axis: a constant, a reflection without the edge, the edge
 * repeated, or the axis wrapped around. Negative constant padding cuts. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* Constant padding: d are y's dims, s x's strides, p the pads before, e x's dims. */
QN_KERNEL pad_constant(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long count, QN_ARG8(d),
                       QN_ARG8(s), QN_ARG8(p), QN_ARG8(e), float value)
{
    qn_long d[8] = { QN_PASS8(d) }, s[8] = { QN_PASS8(s) };
    qn_long p[8] = { QN_PASS8(p) }, e[8] = { QN_PASS8(e) };
    qn_long i = qn_item(), rest = i, at = 0;
    int inside = 1;
    if (i >= count)
        return;
    for (int k = 7; k >= 0; k--) {
        qn_long j = rest % d[k] - p[k];
        rest /= d[k];
        inside = inside && j >= 0 && j < e[k];
        at += j * s[k];
    }
    qn_store(y, i, inside ? qn_load(x, at) : value);
}
#endif

#ifdef QN_HOST
#include "ops/onnx.h"
#include "ops/onnx_put.h"
#include "ops/region.h"

static const char *const mode_names[] = { "constant", "reflect", "edge", "wrap", NULL };

static const QnAttrField pad_fields[] = {
    { .name = "before",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnPadAttr, before),
      .doc = "elements added before each axis" },
    { .name = "after",
      .kind = QN_ATTR_INTS,
      .offset = offsetof(QnPadAttr, after),
      .doc = "elements added after each axis" },
    { .name = "mode",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnPadAttr, mode),
      .names = mode_names,
      .doc = "what is added" },
    { .name = "value",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(QnPadAttr, value),
      .doc = "of constant padding" },
};

static QnStatus pad_infer(QnInfer *c)
{
    c->out[0].dtype = c->in[0]->dtype;
    return qn_region_pad(c->graph, "pad", &c->in[0]->shape, c->attr, false, &c->out[0].shape);
}

static double constant_of(const QnRefArgs *a)
{
    double v = ((const QnPadAttr *)a->attr)->value;
    double bits = v;
    if (a->i64_bits && qn_dtype_is_wide(a->in_type[0]->dtype))
        qn_dtype_from_f64(a->in_type[0]->dtype, &v, &bits, 1);
    return bits;
}

static QnStatus pad_ref(const QnRefArgs *a)
{
    const QnPadAttr *attr = a->attr;
    const QnShape *s = &a->in_type[0]->shape, *to = &a->out_type[0]->shape;
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    qn_shape_strides(s, stride);
    for (int64_t i = 0, n = qn_shape_count(to); i < n; i++) {
        int64_t from = 0;
        for (int d = 0; d < s->rank && from >= 0; d++) {
            int64_t j = qn_region_pad_index(index[d], attr->before.v[d], s->dim[d], attr->mode);
            from = j < 0 ? -1 : from + j * stride[d];
        }
        a->out[0][i] = from < 0 ? constant_of(a) : a->in[0][from];
        qn_util_next(to, index);
    }
    return QN_OK;
}

static void pad_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    const QnPadAttr *a = n->attr;
    if (a->mode != QN_PAD_CONSTANT) {
        dx[0] = qn_pad_back(g, dy[0], a);
        return;
    }
    QnPadAttr cut = *a;
    cut.value = 0;
    for (int i = 0; i < a->before.n; i++) {
        cut.before.v[i] = -a->before.v[i];
        cut.after.v[i] = -a->after.v[i];
    }
    dx[0] = qn_pad(g, dy[0], &cut);
}

static QnStatus pad_call(const QnNode *n, QnDeviceCall *c)
{
    const QnPadAttr *a = n->attr;
    const QnShape *s = &n->in[0]->type.shape;
    if (a->mode != QN_PAD_CONSTANT)
        return qn_fail(QN_EUNSUPPORTED, "pad: the device text pads with a constant");
    int64_t stride[QN_MAX_RANK];
    qn_shape_strides(s, stride);
    QN_TRY(qn_region_call("pad_constant", n, &n->out[0].type.shape, stride, c));
    qn_region_args(c, s->rank, a->before.v, 0);
    qn_region_args(c, s->rank, s->dim, 1);
    qn_device_float(c, a->value);
    return QN_OK;
}

static const QnSample pad_samples[] = {
    { .in = { { 2, { 4, 7 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 2, { 1, 0 } }, { 2, { 0, 3 } }, QN_PAD_CONSTANT, 0.5 } },
    { .in = { { 2, { 5, 130 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 2, { -1, 2 } }, { 2, { 2, -3 } }, QN_PAD_CONSTANT, 0 } },
    { .in = { { 3, { 2, 4, 5 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 3, { 0, 3, 1 } }, { 3, { 0, 2, 4 } }, QN_PAD_REFLECT, 0 } },
    { .in = { { 2, { 3, 4 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 2, { 2, 0 } }, { 2, { 1, 5 } }, QN_PAD_EDGE, 0 } },
    { .in = { { 2, { 3, 4 } } },
      .n_in = 1,
      .attr = &(QnPadAttr){ { 2, { 4, 1 } }, { 2, { 0, 2 } }, QN_PAD_WRAP, 0 } },
};

QN_API QnValue *qn_pad(QnGraph *g, QnValue *x, const QnPadAttr *attr)
{
    bool none = attr->before.n == attr->after.n;
    for (int i = 0; none && i < attr->before.n; i++)
        none = attr->before.v[i] == 0 && attr->after.v[i] == 0;
    if (none && !qn_value_is_poison(x) && attr->before.n == x->type.shape.rank)
        return x;
    return qn_emit1(g, &qn_op_pad, attr, x);
}

/* x moved by k elements along an axis; what leaves is lost, zeros come in. */
QN_API QnValue *qn_shift(QnGraph *g, QnValue *x, int64_t axis, int64_t k)
{
    int a;
    if (qn_value_is_poison(x))
        return qn_graph_poison(g);
    if (!qn_shape_axis(&x->type.shape, axis, &a)) {
        qn_fail(QN_EARG, "shift: axis %lld is out of range", (long long)axis);
        return qn_graph_poison(g);
    }
    QnPadAttr pad = { .before.n = x->type.shape.rank, .after.n = x->type.shape.rank };
    QnDim n = x->type.shape.dim[a];
    if (n >= 0)
        k = QN_MAX(-n, QN_MIN(k, n));
    pad.before.v[a] = k;
    pad.after.v[a] = -k;
    return qn_pad(g, x, &pad);
}

static QnStatus import_amounts(QnOnnxNode *n, int rank, QnPadAttr *out)
{
    QnInts pads, axes = { .n = rank };
    for (int i = 0; i < rank; i++)
        axes.v[i] = i;
    if (n->opset < 11)
        qn_onnx_ints(n, n->opset < 2 ? "paddings" : "pads", &pads);
    else
        QN_TRY(qn_onnx_in_ints(n, 1, &pads));
    if (qn_onnx_has(n, 3))
        QN_TRY(qn_onnx_in_ints(n, 3, &axes));
    if (pads.n != 2 * axes.n)
        return qn_fail(QN_ESHAPE, "%d pads for %d axes; two each", pads.n, axes.n);
    out->before.n = out->after.n = rank;
    for (int i = 0; i < axes.n; i++) {
        int axis;
        QN_TRY(qn_onnx_axis(axes.v[i], rank, &axis));
        out->before.v[axis] = pads.v[i];
        out->after.v[axis] = pads.v[axes.n + i];
    }
    return QN_OK;
}

/* A value that only a run tells stands wherever a padded mask is off. */
static QnStatus import_value(QnOnnxNode *n, const QnPadAttr *a)
{
    QnValue *x = qn_onnx_in(n, 0), *value = qn_onnx_in(n, 2);
    QnShape s = x->type.shape;
    QnValue *inside = qn_pad(n->g, qn_full(n->g, 1, QN_DTYPE_BOOL, &s), a);
    value = qn_reshape(n->g, value, &(QnShape){ 0 });
    return qn_onnx_out0(n, qn_where(n->g, inside, qn_pad(n->g, x, a), value));
}

static QnStatus pad_import(QnOnnxNode *n)
{
    QnPadAttr a = { .value = qn_onnx_float(n, "value", 0) };
    const QnType *t = qn_onnx_type(n, 0);
    const QnOnnxAttr *mode = qn_onnx_attr(n, "mode");
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QN_TRY(import_amounts(n, t->shape.rank, &a));
    while (mode && mode_names[a.mode] && !qn_onnx_is(n, "mode", mode_names[a.mode], ""))
        a.mode++;
    if (!mode_names[a.mode])
        return qn_onnx_refuse(n, "mode '%.*s'", (int)QN_MIN(mode->s.n, 40), mode->s.s);
    if (qn_onnx_has(n, 2) && a.mode == QN_PAD_CONSTANT && !qn_onnx_constant(n, 2, &a.value))
        return import_value(n, &a);
    return qn_onnx_out0(n, qn_pad(n->g, qn_onnx_in(n, 0), &a));
}

static const QnOnnxMap pad_onnx[] = { { .name = "Pad", .since = 1, .import = pad_import } };

static QnStatus pad_put(QnOnnxPut *p, const QnNode *n)
{
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
    const QnPadAttr *a = n->attr;
    int64_t pads[2 * QN_MAX_RANK] = { 0 };
    int rank = n->in[0]->type.shape.rank;
    for (int i = 0; i < rank; i++) {
        pads[i] = i < a->before.n ? a->before.v[i] : 0;
        pads[rank + i] = i < a->after.n ? a->after.v[i] : 0;
    }
    if (a->mode == QN_PAD_WRAP && qn_put_opset(p) < 19)
        return qn_fail(QN_EUNSUPPORTED, "padding by wrapping around before opset 19");
    const char *in[] = { qn_put_value(p, n->in[0]), qn_put_ints(p, pads, 2 * rank),
                         a->mode == QN_PAD_CONSTANT
                             ? qn_put_number(p, n->out[0].type.dtype, a->value)
                             : NULL };
    qn_put_attr_text(p, qn_put_as(p, &n->out[0], "Pad", in, 3), "mode", modes[a->mode]);
    return qn_put_status(p);
}

const QnOp qn_op_pad = {
    .name = "pad",
    .version = 1,
    .doc = "elements added around a tensor",
    .n_in = 1,
    .traits = QN_MOVES_DATA,
    QN_ATTRS(QnPadAttr, pad_fields),
    .infer = pad_infer,
    .ref = pad_ref,
    .grad = pad_grad,
    .device = QN_TEXT(pad),
    .call = pad_call,
    .onnx_put = pad_put,
    .onnx_writes = "Pad",
    QN_ONNX(pad_onnx),
    QN_SAMPLES(pad_samples),
};
#endif
