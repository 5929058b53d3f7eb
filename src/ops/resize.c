/* The spatial axes of (N,C,spatial…) brought to another size by the nearest element, linear or
 * cubic interpolation (Keys 1981), one to three of them. With `adjoint` the transposed map: x then
 * has the size that the map would give, `size` is the one it would start from. */
#include "ops/dialect.h"

#ifdef QN_DEVICE
/* The taps of output o of m among n elements: index[k], weight[k] for k < the number returned. */
QN_SCALAR int resize_taps(qn_long o, qn_long m, qn_long n, qn_long mode, qn_long coord,
                          qn_long round, float a, qn_long *index, float *weight)
{
    /* the centre as a fraction num / den, exact */
    qn_long num = coord == 0 ? (2 * o + 1) * n - m : coord == 1 ? o * (n - 1) : o * n;
    qn_long den = coord == 0 ? 2 * m : coord == 1 ? m - 1 : m;
    num = den <= 0 ? 0 : num;
    den = den <= 0 ? 1 : den;
    qn_long whole = num >= 0 ? num / den : -((-num + den - 1) / den), rest = num - whole * den;
    float f = (float)rest / (float)den;
    int taps = mode == 0 ? 1 : mode == 1 ? 2 : 4;
    if (mode == 0) {
        int up = round == 0   ? 2 * rest > den
                 : round == 1 ? 2 * rest >= den
                              : round == 3 && rest > 0;
        index[0] = whole + up;
        weight[0] = 1.0f;
    } else if (mode == 1) {
        index[0] = whole;
        weight[0] = 1.0f - f;
        weight[1] = f;
    } else {
        float g = 1.0f - f;
        index[0] = whole - 1;
        weight[0] = ((a * (f + 1.0f) - 5.0f * a) * (f + 1.0f) + 8.0f * a) * (f + 1.0f) - 4.0f * a;
        weight[1] = ((a + 2.0f) * f - (a + 3.0f)) * f * f + 1.0f;
        weight[2] = ((a + 2.0f) * g - (a + 3.0f)) * g * g + 1.0f;
        weight[3] = ((a * (g + 1.0f) - 5.0f * a) * (g + 1.0f) + 8.0f * a) * (g + 1.0f) - 4.0f * a;
    }
    for (int k = taps - 1; k >= 0; k--) {
        qn_long i = index[0] + k;
        index[k] = i < 0 ? 0 : i >= n ? n - 1 : i;
    }
    return taps;
}

/* x: (planes, n0, n1, n2), y: (planes, m0, m1, m2); one item an element of y. */
QN_KERNEL resize_any(QN_GLOBAL QN_T *y, QN_GLOBAL const QN_T *x, qn_long count, qn_long n0,
                     qn_long n1, qn_long n2, qn_long m0, qn_long m1, qn_long m2, qn_long mode,
                     qn_long coord, qn_long round, float a)
{
    qn_long i = qn_item(), at0[4], at1[4], at2[4];
    float w0[4], w1[4], w2[4], s = 0.0f;
    if (i >= count)
        return;
    qn_long plane = i / m2 / m1 / m0 * n0;
    int t0 = resize_taps(i / m2 / m1 % m0, m0, n0, mode, coord, round, a, at0, w0);
    int t1 = resize_taps(i / m2 % m1, m1, n1, mode, coord, round, a, at1, w1);
    int t2 = resize_taps(i % m2, m2, n2, mode, coord, round, a, at2, w2);
    for (int p = 0; p < t0; p++) {
        for (int q = 0; q < t1; q++) {
            for (int r = 0; r < t2; r++)
                s += w0[p] * w1[q] * w2[r] *
                     qn_load(x, ((plane + at0[p]) * n1 + at1[q]) * n2 + at2[r]);
        }
    }
    qn_store(y, i, s);
}
#endif

#ifdef QN_HOST
#include "ops/onnx_put.h"
#include "ops/region.h"
#include "ops/resize.h"

static const char *const mode_names[] = { "nearest", "linear", "cubic", NULL };
static const char *const coord_names[] = { "half_pixel", "align_corners", "asymmetric", NULL };
static const char *const round_names[] = { "ties_down", "ties_up", "floor", "ceil", NULL };

static const QnAttrField resize_fields[] = {
    { .name = "size",
      .kind = QN_ATTR_DIMS,
      .offset = offsetof(QnResizeAttr, size),
      .doc = "new spatial dims" },
    { .name = "mode",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnResizeAttr, mode),
      .names = mode_names,
      .doc = "interpolation" },
    { .name = "coord",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnResizeAttr, coord),
      .names = coord_names,
      .doc = "where output elements lie in the input" },
    { .name = "round",
      .kind = QN_ATTR_ENUM,
      .offset = offsetof(QnResizeAttr, round),
      .names = round_names,
      .doc = "how the nearest mode rounds" },
    { .name = "cubic",
      .kind = QN_ATTR_FLOAT,
      .offset = offsetof(QnResizeAttr, cubic),
      .def = -0.75,
      .doc = "coefficient of the cubic kernel" },
    { .name = "adjoint",
      .kind = QN_ATTR_BOOL,
      .offset = offsetof(QnResizeAttr, adjoint),
      .doc = "the transposed map" },
};

static QnStatus resize_infer(QnInfer *c)
{
    const QnResizeAttr *a = c->attr;
    const QnShape *s = &c->in[0]->shape;
    QnShape to = *s;
    bool fits = a->size.n >= 1 && a->size.n <= 3 && s->rank == a->size.n + 2;
    for (int i = 0; fits && i < a->size.n; i++) {
        to.dim[i + 2] = a->size.d[i];
        fits = s->dim[i + 2] != 0 && a->size.d[i] != 0;
    }
    if (!fits) {
        char text[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE,
                       "resize: %s with %d new dims; it takes (N,C,spatial...) of one to "
                       "three spatial axes, none of length 0",
                       qn_shape_text(s, text), a->size.n);
    }
    if (!qn_dtype_is_float(c->in[0]->dtype))
        return qn_fail(QN_EDTYPE, "resize: needs a floating-point operand, not %s",
                       qn_dtype_name(c->in[0]->dtype));
    c->out[0].dtype = c->in[0]->dtype;
    c->out[0].shape = to;
    return QN_OK;
}

static double taps_each(int mode)
{
    return mode == QN_RESIZE_NEAREST ? 1 : mode == QN_RESIZE_LINEAR ? 2 : 4;
}

static QnCost resize_cost(const QnNode *n)
{
    const QnResizeAttr *a = n->attr;
    const QnType *big = a->adjoint ? &n->in[0]->type : &n->out[0].type;
    return (QnCost){ .flops = 2 * (double)qn_shape_count(&big->shape) *
                              pow(taps_each(a->mode), a->size.n),
                     .bytes_read = (double)qn_type_bytes(&n->in[0]->type),
                     .bytes_written = (double)qn_type_bytes(&n->out[0].type) };
}

/* The centre of output o as a fraction, exact in integers. */
static void centre(int coord, int64_t o, int64_t m, int64_t n, int64_t *num, int64_t *den)
{
    switch (coord) {
    case QN_RESIZE_HALF_PIXEL:
        *num = (2 * o + 1) * n - m;
        *den = 2 * m;
        break;
    case QN_RESIZE_ALIGN_CORNERS:
        *num = m > 1 ? o * (n - 1) : 0;
        *den = m > 1 ? m - 1 : 1;
        break;
    default:
        *num = o * n;
        *den = m;
        break;
    }
}

/* Keys' kernel at distance d. */
static double keys(double d, double a)
{
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

QnTaps qn_resize_taps(const QnResizeAttr *a, int64_t o, int64_t m, int64_t n)
{
    int64_t num, den;
    centre(a->coord, o, m, n, &num, &den);
    int64_t whole = num >= 0 ? num / den : -((-num + den - 1) / den), rest = num - whole * den;
    double f = (double)rest / (double)den;
    QnTaps t = { .n = (int)taps_each(a->mode) };
    int64_t first = whole;
    if (a->mode == QN_RESIZE_NEAREST) {
        bool up = a->round == QN_RESIZE_TIES_DOWN ? 2 * rest > den
                  : a->round == QN_RESIZE_TIES_UP ? 2 * rest >= den
                                                  : a->round == QN_RESIZE_CEIL && rest > 0;
        first += up;
        t.weight[0] = 1;
    } else if (a->mode == QN_RESIZE_LINEAR) {
        t.weight[0] = 1 - f;
        t.weight[1] = f;
    } else {
        first--;
        for (int k = 0; k < 4; k++)
            t.weight[k] = keys(f + 1 - k, a->cubic);
    }
    for (int k = 0; k < t.n; k++)
        t.at[k] = QN_MAX(0, QN_MIN(first + k, n - 1));
    return t;
}

/* One output element of the map: y[o] += w x[i], or for the adjoint x'[i] += w y'[o]. */
static void spread(const QnResizeAttr *a, const QnTaps t[3], const int64_t n[3], int64_t plane,
                   int64_t o, const double *from, double *to)
{
    for (int p = 0; p < t[0].n; p++) {
        for (int q = 0; q < t[1].n; q++) {
            for (int r = 0; r < t[2].n; r++) {
                double w = t[0].weight[p] * t[1].weight[q] * t[2].weight[r];
                int64_t i = ((plane * n[0] + t[0].at[p]) * n[1] + t[1].at[q]) * n[2] + t[2].at[r];
                if (a->adjoint)
                    to[i] += w * from[o];
                else
                    to[o] += w * from[i];
            }
        }
    }
}

/* Spatial dims of the small and the large side, as (planes, n0, n1, n2); leading ones are 1. */
static int64_t spatial(const QnShape *s, int64_t n[3])
{
    for (int i = 0; i < 3; i++)
        n[i] = i + s->rank - 3 >= 2 ? s->dim[i + s->rank - 3] : 1;
    return s->dim[0] * s->dim[1];
}

static QnStatus resize_ref(const QnRefArgs *a)
{
    const QnResizeAttr *attr = a->attr;
    int64_t n[3], m[3], o = 0;
    int64_t planes = spatial(&a->in_type[0]->shape, attr->adjoint ? m : n);
    spatial(&a->out_type[0]->shape, attr->adjoint ? n : m);
    memset(a->out[0], 0, (size_t)qn_shape_count(&a->out_type[0]->shape) * sizeof(double));
    for (int64_t plane = 0; plane < planes; plane++) {
        for (int64_t i = 0; i < m[0]; i++) {
            for (int64_t j = 0; j < m[1]; j++) {
                for (int64_t k = 0; k < m[2]; k++) {
                    QnTaps t[3] = { qn_resize_taps(attr, i, m[0], n[0]),
                                    qn_resize_taps(attr, j, m[1], n[1]),
                                    qn_resize_taps(attr, k, m[2], n[2]) };
                    spread(attr, t, n, plane, o++, a->in[0], a->out[0]);
                }
            }
        }
    }
    return QN_OK;
}

static void resize_grad(QnGraph *g, QnNode *n, QnValue *const *dy, QnValue **dx)
{
    QnResizeAttr a = *(const QnResizeAttr *)n->attr;
    a.adjoint = !a.adjoint;
    for (int i = 0; i < a.size.n; i++)
        a.size.d[i] = n->in[0]->type.shape.dim[i + 2];
    dx[0] = qn_resize(g, dy[0], &a);
}

static QnStatus resize_call(const QnNode *n, QnDeviceCall *c)
{
    const QnResizeAttr *a = n->attr;
    int64_t from[3], to[3];
    if (a->adjoint)
        return qn_fail(QN_EUNSUPPORTED, "resize: the device text has no adjoint");
    spatial(&n->in[0]->type.shape, from);
    spatial(&n->out[0].type.shape, to);
    *c =
        (QnDeviceCall){ .kernel = "resize_any", .n_groups = qn_shape_count(&n->out[0].type.shape) };
    qn_device_int(c, c->n_groups);
    for (int i = 0; i < 3; i++)
        qn_device_int(c, from[i]);
    for (int i = 0; i < 3; i++)
        qn_device_int(c, to[i]);
    qn_device_int(c, a->mode);
    qn_device_int(c, a->coord);
    qn_device_int(c, a->round);
    qn_device_float(c, a->cubic);
    return QN_OK;
}

#define ATTR(...)                                                                                  \
    .attr = &(QnResizeAttr)                                                                        \
    {                                                                                              \
        .cubic = -0.5, __VA_ARGS__                                                                 \
    }
static const QnSample resize_samples[] = {
    { .in = { { 3, { 2, 3, 5 } } }, .n_in = 1, ATTR(.size = { 1, { 13 } }) },
    { .in = { { 4, { 1, 2, 5, 6 } } },
      .n_in = 1,
      ATTR(.size = { 2, { 3, 11 } }, .coord = QN_RESIZE_ASYMMETRIC, .round = QN_RESIZE_FLOOR) },
    { .in = { { 4, { 1, 2, 4, 5 } } },
      .n_in = 1,
      ATTR(.size = { 2, { 8, 3 } }, .mode = QN_RESIZE_LINEAR) },
    { .in = { { 5, { 1, 2, 3, 4, 2 } } },
      .n_in = 1,
      ATTR(.size = { 3, { 5, 2, 4 } }, .mode = QN_RESIZE_LINEAR,
           .coord = QN_RESIZE_ALIGN_CORNERS) },
    { .in = { { 4, { 2, 1, 5, 4 } } },
      .n_in = 1,
      ATTR(.size = { 2, { 7, 9 } }, .mode = QN_RESIZE_CUBIC) },
    { .in = { { 3, { 1, 2, 130 } } },
      .n_in = 1,
      ATTR(.size = { 1, { 77 } }, .mode = QN_RESIZE_CUBIC, .coord = QN_RESIZE_ALIGN_CORNERS) },
    { .in = { { 4, { 1, 2, 6, 7 } } },
      .n_in = 1,
      ATTR(.size = { 2, { 4, 3 } }, .mode = QN_RESIZE_LINEAR, .adjoint = true) },
    { .in = { { 3, { 1, 2, 9 } } },
      .n_in = 1,
      ATTR(.size = { 1, { 4 } }, .round = QN_RESIZE_CEIL, .coord = QN_RESIZE_ASYMMETRIC) },
};
#undef ATTR

QN_API QnValue *qn_resize(QnGraph *g, QnValue *x, const QnResizeAttr *attr)
{
    return qn_emit1(g, &qn_op_resize, attr, x);
}

/* Sizes for all axes; the spatial ones are given. */
static QnStatus resize_put(QnOnnxPut *p, const QnNode *n)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    static const char *const coords[] = { "half_pixel", "align_corners", "asymmetric" };
    static const char *const rounds[] = { "round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil" };
    const QnResizeAttr *a = n->attr;
    const QnShape *y = &n->out[0].type.shape;
    if (a->adjoint || !qn_shape_is_concrete(y))
        return qn_fail(QN_EUNSUPPORTED, a->adjoint ? "the gradient of a resize"
                                                   : "a resize of symbolic dims; give --batch");
    const char *in[] = { qn_put_value(p, n->in[0]), NULL, NULL, qn_put_ints(p, y->dim, y->rank) };
    QnOnnxDef *d = qn_put_as(p, &n->out[0], "Resize", in, 4);
    qn_put_attr_text(p, d, "mode", modes[a->mode]);
    qn_put_attr_text(p, d, "coordinate_transformation_mode", coords[a->coord]);
    if (a->mode == QN_RESIZE_NEAREST)
        qn_put_attr_text(p, d, "nearest_mode", rounds[a->round]);
    if (a->mode == QN_RESIZE_CUBIC)
        qn_put_attr_float(p, d, "cubic_coeff_a", a->cubic);
    return qn_put_status(p);
}

const QnOp qn_op_resize = {
    .name = "resize",
    .version = 1,
    .doc = "spatial axes brought to another size by interpolation",
    .n_in = 1,
    QN_ATTRS(QnResizeAttr, resize_fields),
    .infer = resize_infer,
    .cost = resize_cost,
    .ref = resize_ref,
    .grad = resize_grad,
    .device = QN_TEXT(resize),
    .call = resize_call,
    .onnx_put = resize_put,
    .onnx_writes = "Resize",
    QN_SAMPLES(resize_samples),
};
#endif
