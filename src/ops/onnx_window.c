#include "ops/onnx_window.h"

QnStatus qn_onnx_window_input(const QnOnnxNode *n, const QnShape **x)
{
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    if (t->shape.rank < 3)
        return qn_fail(QN_ESHAPE, "input 0 must be (N,C,spatial...), not of rank %d",
                       t->shape.rank);
    if (t->shape.rank > 5)
        return qn_onnx_refuse(n, "windows over %d spatial axes, at most 3 are supported",
                              t->shape.rank - 2);
    *x = &t->shape;
    return QN_OK;
}

/* One number for each of `count`, all `def` where the attribute is left out. */
static QnStatus read_list(const QnOnnxNode *n, const char *name, int count, int64_t def,
                          int64_t least, QnInts *out)
{
    bool given = qn_onnx_ints(n, name, out);
    if (given && out->n != count)
        return qn_fail(QN_EFORMAT, "attribute '%s' has %d numbers, %d are needed", name, out->n,
                       count);
    out->n = count;
    for (int i = 0; i < count; i++) {
        out->v[i] = given ? out->v[i] : def;
        if (out->v[i] < least || out->v[i] > 1 << 30)
            return qn_onnx_refuse(n, "attribute '%s' holds %lld", name, (long long)out->v[i]);
    }
    return QN_OK;
}

/* SAME: so much padding that ceil(in / stride) windows fit, an odd one at the end or the beginning;
 * VALID: none. */
static void auto_pads(const QnShape *x, const QnInts *kernel, const QnInts *strides,
                      const QnInts *dilations, bool upper, QnInts *pads)
{
    for (int i = 0; i < kernel->n; i++) {
        int64_t in = x->dim[2 + i], stride = strides->v[i];
        int64_t extent = dilations->v[i] * (kernel->v[i] - 1) + 1;
        int64_t windows = (in + stride - 1) / stride;
        int64_t all = QN_MAX((windows - 1) * stride + extent - in, 0);
        pads->v[i] = upper ? all / 2 : all - all / 2;
        pads->v[kernel->n + i] = all - pads->v[i];
    }
}

static QnStatus read_window(const QnOnnxNode *n, const QnShape *x, const QnInts *kernel,
                            QnInts *strides, QnInts *dilations, QnInts *pads)
{
    int axes = x->rank - 2;
    bool upper = qn_onnx_is(n, "auto_pad", "SAME_UPPER", "NOTSET");
    QN_TRY(read_list(n, "strides", axes, 1, 1, strides));
    QN_TRY(read_list(n, "dilations", axes, 1, 1, dilations));
    QN_TRY(read_list(n, "pads", 2 * axes, 0, 0, pads));
    for (int i = 0; i < axes; i++)
        if (kernel->v[i] < 1 || kernel->v[i] > 1 << 30)
            return qn_fail(QN_EFORMAT, "a window of %lld elements", (long long)kernel->v[i]);
    if (qn_onnx_is(n, "auto_pad", "VALID", "NOTSET"))
        *pads = (QnInts){ .n = 2 * axes };
    else if (upper || qn_onnx_is(n, "auto_pad", "SAME_LOWER", "NOTSET"))
        auto_pads(x, kernel, strides, dilations, upper, pads);
    else if (!qn_onnx_is(n, "auto_pad", "NOTSET", "NOTSET"))
        return qn_fail(QN_EFORMAT, "attribute 'auto_pad' is none of NOTSET, SAME_UPPER, "
                                   "SAME_LOWER and VALID");
    return QN_OK;
}

QnStatus qn_onnx_window_conv(const QnOnnxNode *n, const QnShape *x, const QnShape *w,
                             QnConvAttr *out)
{
    QnInts kernel = { .n = x->rank - 2 }, given;
    if (w->rank != x->rank)
        return qn_fail(QN_ESHAPE, "the weights are of rank %d, x is of rank %d", w->rank, x->rank);
    for (int i = 0; i < kernel.n; i++)
        kernel.v[i] = w->dim[2 + i];
    if (qn_onnx_ints(n, "kernel_shape", &given))
        for (int i = 0; i < kernel.n; i++)
            if (given.n != kernel.n || given.v[i] != kernel.v[i])
                return qn_fail(QN_ESHAPE, "attribute 'kernel_shape' is not that of the weights");
    *out = (QnConvAttr){ .groups = qn_onnx_int(n, "group", 1) };
    if (out->groups < 1)
        return qn_fail(QN_EFORMAT, "attribute 'group' is %lld", (long long)out->groups);
    return read_window(n, x, &kernel, &out->strides, &out->dilations, &out->pads);
}

QnStatus qn_onnx_window_pool(const QnOnnxNode *n, const QnShape *x, QnPoolAttr *out)
{
    /* SAME and VALID say how many windows there are, rounded or not */
    bool rounds =
        qn_onnx_int(n, "ceil_mode", 0) != 0 && qn_onnx_is(n, "auto_pad", "NOTSET", "NOTSET");
    *out = (QnPoolAttr){ .ceil_mode = rounds,
                         .count_include_pad = qn_onnx_int(n, "count_include_pad", 0) != 0 };
    if (!qn_onnx_ints(n, "kernel_shape", &out->kernel) || out->kernel.n != x->rank - 2)
        return qn_fail(QN_EFORMAT, "attribute 'kernel_shape' must hold %d numbers", x->rank - 2);
    return read_window(n, x, &out->kernel, &out->strides, &out->dilations, &out->pads);
}
