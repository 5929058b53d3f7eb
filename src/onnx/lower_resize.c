/* Resize and Upsample. The forms that our resize has become one; the others are separable too, so
 * that each axis is a gather (nearest) or a product with a matrix of weights. */
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

typedef struct Form {
    QnResizeMode mode;
    const char *coord; /* as ONNX names it */
    QnResizeRound round;
    bool down_up; /* opset 10: nearest rounds up where an axis shrinks */
    double cubic, outside;
    bool antialias, exclude_outside;
} Form;

typedef struct Axis {
    int64_t n, m;    /* elements before and after */
    double scale;    /* m / n, or what the file says where that is no whole number */
    double from, to; /* region of interest */
} Axis;

/* ---- attributes ------------------------------------------------------------------------------ */

static QnStatus read_form(const QnOnnxNode *n, Form *f)
{
    static const char *const coords[] = {
        "half_pixel",           "pytorch_half_pixel", "align_corners",        "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize", "half_pixel_symmetric",
    };
    static const char *const rounds[] = { "round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil" }; /* as QnResizeRound */
    bool old = n->opset < 11;
    *f = (Form){ .mode = QN_RESIZE_NEAREST,
                 .round = QN_RESIZE_FLOOR,
                 .down_up = old && !strcmp(n->op, "Resize"),
                 .cubic = qn_onnx_float(n, "cubic_coeff_a", -0.75),
                 .outside = qn_onnx_float(n, "extrapolation_value", 0),
                 .antialias = qn_onnx_int(n, "antialias", 0) != 0,
                 .exclude_outside = qn_onnx_int(n, "exclude_outside", 0) != 0 };
    if (qn_onnx_is(n, "mode", "linear", "nearest") || qn_onnx_is(n, "mode", "bilinear", "nearest"))
        f->mode = QN_RESIZE_LINEAR;
    else if (qn_onnx_is(n, "mode", "cubic", "nearest"))
        f->mode = QN_RESIZE_CUBIC;
    else if (!qn_onnx_is(n, "mode", "nearest", "nearest"))
        return qn_onnx_refuse(n, "this mode of interpolation");
    for (int i = 0; i < (int)QN_COUNT(coords); i++)
        if (qn_onnx_is(n, "coordinate_transformation_mode", coords[i],
                       old ? "asymmetric" : "half_pixel"))
            f->coord = coords[i];
    if (!f->coord)
        return qn_onnx_refuse(n, "this coordinate_transformation_mode");
    if (old)
        return QN_OK;
    for (int i = 0; i < (int)QN_COUNT(rounds); i++)
        if (qn_onnx_is(n, "nearest_mode", rounds[i], "round_prefer_floor")) {
            f->round = (QnResizeRound)i;
            return QN_OK;
        }
    return qn_onnx_refuse(n, "this nearest_mode");
}

/* Numbers of a known tensor of floats, or of the attribute of Upsample-7. */
static QnStatus read_floats(QnOnnxNode *n, int input, int count, double *out)
{
    const QnTensor *t = qn_onnx_known(n, input);
    if (!t)
        return qn_onnx_wait();
    if (t->text || qn_shape_count(&t->type.shape) != count)
        return qn_fail(QN_ESHAPE, "input %d must have %d numbers", input, count);
    qn_dtype_to_f64(t->type.dtype, t->data, out, count);
    return QN_OK;
}

static int64_t known_count(QnOnnxNode *n, int i)
{
    const QnType *t = qn_onnx_type(n, i);
    return t ? qn_shape_count(&t->shape) : 0;
}

static QnStatus set_scales(QnOnnxNode *n, const int *axes, int count, const double *scale,
                           Axis *out)
{
    for (int i = 0; i < count; i++) {
        Axis *a = &out[axes[i]];
        double m = floor((double)((float)a->n * (float)scale[i]));
        if (!(scale[i] > 0) || m < 1 || m > 1 << 30)
            return qn_onnx_refuse(n, "scale %g of an axis of %lld elements", scale[i],
                                  (long long)a->n);
        a->m = (int64_t)m;
        a->scale = m / (double)a->n;
        if (fabs(a->scale - scale[i]) > 1e-6 * scale[i])
            a->scale = scale[i];
    }
    return QN_OK;
}

static QnStatus set_sizes(QnOnnxNode *n, const int *axes, int count, const QnInts *size, Axis *out)
{
    bool less = qn_onnx_is(n, "keep_aspect_ratio_policy", "not_larger", "stretch");
    bool more = qn_onnx_is(n, "keep_aspect_ratio_policy", "not_smaller", "stretch");
    double one = less ? INFINITY : 0;
    if (size->n != count)
        return qn_fail(QN_ESHAPE, "%d sizes for %d axes", size->n, count);
    for (int i = 0; i < count; i++) {
        Axis *a = &out[axes[i]];
        if (size->v[i] < 1 || size->v[i] > 1 << 30)
            return qn_onnx_refuse(n, "size %lld", (long long)size->v[i]);
        a->m = size->v[i];
        a->scale = (double)a->m / (double)a->n;
        one = less ? fmin(one, a->scale) : fmax(one, a->scale);
    }
    for (int i = 0; (less || more) && i < count; i++) {
        Axis *a = &out[axes[i]];
        a->scale = one;
        a->m = QN_MAX((int64_t)(one * (double)a->n + 0.5), 1);
    }
    return QN_OK;
}

static QnStatus read_axes(QnOnnxNode *n, int rank, int axes[QN_MAX_RANK], int *count)
{
    QnInts given;
    bool seen[QN_MAX_RANK] = { false };
    *count = rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (!qn_onnx_ints(n, "axes", &given) || !given.n)
        return QN_OK;
    *count = given.n;
    for (int i = 0; i < given.n; i++) {
        QN_TRY(i < rank ? qn_onnx_axis(given.v[i], rank, &axes[i])
                        : qn_fail(QN_EFORMAT, "%d axes of a tensor of rank %d", given.n, rank));
        if (seen[axes[i]])
            return qn_fail(QN_EFORMAT, "axis %d is named twice", axes[i]);
        seen[axes[i]] = true;
    }
    return QN_OK;
}

static QnStatus read_region(QnOnnxNode *n, const int *axes, int count, Axis *out)
{
    double roi[2 * QN_MAX_RANK];
    QN_TRY(read_floats(n, 1, 2 * count, roi));
    for (int i = 0; i < count; i++) {
        out[axes[i]].from = roi[i];
        out[axes[i]].to = roi[count + i];
    }
    return QN_OK;
}

static QnStatus read_target(QnOnnxNode *n, const QnShape *x, const Form *f, Axis out[QN_MAX_RANK])
{
    int axes[QN_MAX_RANK], count;
    double scale[QN_MAX_RANK];
    QnInts size;
    bool old = n->opset < 11 || !strcmp(n->op, "Upsample");
    int at = old ? 1 : 2;
    for (int i = 0; i < x->rank; i++) {
        out[i] = (Axis){ x->dim[i], x->dim[i], 1, 0, 1 };
        if (!x->dim[i])
            return qn_onnx_refuse(n, "axis %d has no elements", i);
    }
    QN_TRY(read_axes(n, x->rank, axes, &count));
    if (!strcmp(f->coord, "tf_crop_and_resize"))
        QN_TRY(read_region(n, axes, count, out));
    if (!old && known_count(n, 3)) {
        QN_TRY(qn_onnx_in_ints(n, 3, &size));
        return set_sizes(n, axes, count, &size, out);
    }
    const QnOnnxAttr *a = qn_onnx_attr(n, "scales");
    if (!a || a->kind != QN_ONNX_FLOATS) {
        QN_TRY(read_floats(n, at, count, scale));
        return set_scales(n, axes, count, scale, out);
    }
    if (a->n != count)
        return qn_fail(QN_EFORMAT, "attribute 'scales' has %lld numbers for %d axes",
                       (long long)a->n, count);
    for (int i = 0; i < count; i++)
        scale[i] = (double)a->floats[i];
    return set_scales(n, axes, count, scale, out);
}

/* ---- our operator ---------------------------------------------------------------------------- */

static bool is_same(const Axis *a)
{
    return a->m == a->n && a->scale == 1 && a->from == 0 && a->to == 1;
}

/* false: not in this form. */
static bool as_resize(const Form *f, const Axis *axis, const QnType *x, QnResizeAttr *out)
{
    int spatial = x->shape.rank - 2;
    bool fits = qn_dtype_is_float(x->dtype) && spatial >= 1 && spatial <= 3 && !f->down_up &&
                is_same(&axis[0]) && is_same(&axis[1]) && !f->antialias && !f->exclude_outside;
    *out = (QnResizeAttr){ .mode = (int)f->mode, .round = (int)f->round, .cubic = f->cubic };
    out->size.n = fits ? spatial : 0;
    for (int i = 0; i < out->size.n; i++) {
        const Axis *a = &axis[2 + i];
        out->size.d[i] = a->m;
        fits &= a->scale == (double)a->m / (double)a->n;
        if (!strcmp(f->coord, "pytorch_half_pixel"))
            fits &= a->m > 1;
    }
    out->coord = !strcmp(f->coord, "align_corners") ? QN_RESIZE_ALIGN_CORNERS
                 : !strcmp(f->coord, "asymmetric")  ? QN_RESIZE_ASYMMETRIC
                                                    : QN_RESIZE_HALF_PIXEL;
    return fits && strcmp(f->coord, "tf_half_pixel_for_nn") &&
           strcmp(f->coord, "tf_crop_and_resize");
}

/* ---- one axis -------------------------------------------------------------------------------- */

/* Where the centre of output o lies among the inputs. */
static double centre(const Form *f, const Axis *a, int64_t o)
{
    double n = (double)a->n, wide = a->scale * n, at = (double)o;
    if (!strcmp(f->coord, "align_corners"))
        return wide == 1 ? 0 : at * (n - 1) / (wide - 1);
    if (!strcmp(f->coord, "asymmetric"))
        return at / a->scale;
    if (!strcmp(f->coord, "tf_half_pixel_for_nn"))
        return (at + 0.5) / a->scale;
    if (!strcmp(f->coord, "tf_crop_and_resize"))
        return a->from * (n - 1) +
               (a->to - a->from) * (n - 1) * (wide == 1 ? 0.5 : at / (wide - 1));
    if (!strcmp(f->coord, "pytorch_half_pixel") && a->m == 1)
        return 0;
    if (!strcmp(f->coord, "half_pixel_symmetric"))
        return n / 2 * (1 - (double)a->m / wide) + (at + 0.5) / a->scale - 0.5;
    return (at + 0.5) / a->scale - 0.5;
}

static double kernel_at(const Form *f, double d)
{
    double a = f->cubic;
    d = fabs(d);
    if (f->mode == QN_RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static void weights(const Form *f, const Axis *a, int64_t o, double *row)
{
    double c = centre(f, a, o), sum = 0;
    double wide = f->antialias ? fmax(1 / a->scale, 1) : 1;
    double reach = (f->mode == QN_RESIZE_LINEAR ? 1 : 2) * wide;
    for (int pass = 0; pass < 2; pass++) /* the sum, then the weights */
        for (int64_t i = (int64_t)ceil(c - reach); (double)i <= c + reach; i++) {
            double w = kernel_at(f, ((double)i - c) / wide);
            if (f->exclude_outside && (i < 0 || i >= a->n))
                continue;
            if (pass)
                row[QN_MAX(0, QN_MIN(i, a->n - 1))] += sum != 0 ? w / sum : 0;
            else
                sum += w;
        }
}

/* A centre that is an integer or a half but for the rounding of the file's f32 scales and regions
 * is taken as that. */
static int64_t nearest(const Form *f, const Axis *a, int64_t o)
{
    double c = centre(f, a, o), half = round(2 * c) / 2;
    if (fabs(c - half) < 5e-7 * (1 + fabs(c)))
        c = half;
    QnResizeRound how = f->down_up && a->scale < 1 ? QN_RESIZE_CEIL : f->round;
    double i = how == QN_RESIZE_FLOOR       ? floor(c)
               : how == QN_RESIZE_CEIL      ? ceil(c)
               : how == QN_RESIZE_TIES_DOWN ? ceil(c - 0.5)
                                            : floor(c + 0.5);
    return (int64_t)fmax(0, fmin(i, (double)(a->n - 1)));
}

static QnValue *resize_axis(QnOnnxNode *n, const Form *f, const Axis *a, QnValue *x, int axis)
{
    QnGraph *g = n->g;
    if (f->mode == QN_RESIZE_NEAREST) {
        int64_t *at = qn_arena_array(n->arena, (size_t)a->m, sizeof *at);
        for (int64_t o = 0; at && o < a->m; o++)
            at[o] = nearest(f, a, o);
        return at ? qn_gather(g, x, qn_constant(g, QN_DTYPE_I64, &QN_SHAPE(a->m), at), axis)
                  : qn_graph_poison(g);
    }
    double *w = qn_arena_array(n->arena, (size_t)(a->m * a->n), sizeof *w);
    if (!w || qn_value_is_poison(x))
        return qn_graph_poison(g);
    for (int64_t o = 0; o < a->m; o++)
        weights(f, a, o, w + o * a->n);
    QnShape to = x->type.shape;
    QnShape flat = QN_SHAPE(1, a->n, 1);
    for (int i = 0; i < to.rank; i++)
        flat.dim[i < axis ? 0 : 2] *= i == axis ? 1 : to.dim[i];
    to.dim[axis] = a->m;
    QnValue *m = qn_constant(g, QN_DTYPE_F64, &QN_SHAPE(a->m, a->n), w);
    m = qn_cast(g, m, x->type.dtype);
    if (flat.dim[2] == 1) { /* the last axis: one tall product */
        flat.rank = 2;
        return qn_reshape(g, qn_matmul(g, qn_reshape(g, x, &flat), m, NULL, false, true), &to);
    }
    return qn_reshape(g, qn_matmul(g, m, qn_reshape(g, x, &flat), NULL, false, false), &to);
}

/* tf_crop_and_resize: outputs whose centre lies outside x have a value of their own. */
static QnValue *put_outside(QnOnnxNode *n, const Form *f, const Axis *axis, QnValue *y)
{
    if (qn_value_is_poison(y))
        return y;
    int rank = y->type.shape.rank;
    for (int i = 0; i < rank; i++) {
        const Axis *a = &axis[i];
        QnShape along = { .rank = rank, .dim = { 1, 1, 1, 1, 1, 1, 1, 1 } };
        bool any = false;
        unsigned char *out = qn_arena_array(n->arena, (size_t)a->m, 1);
        for (int64_t o = 0; out && o < a->m; o++) {
            double c = centre(f, a, o);
            out[o] = c < 0 || c > (double)(a->n - 1);
            any |= out[o];
        }
        if (!out)
            return qn_graph_poison(n->g);
        along.dim[i] = a->m;
        if (any)
            y = qn_where(n->g, qn_constant(n->g, QN_DTYPE_BOOL, &along, out),
                         qn_scalar_like(n->g, y, f->outside), y);
    }
    return y;
}

static QnStatus import_resize(QnOnnxNode *n)
{
    Form f;
    Axis axis[QN_MAX_RANK];
    QnResizeAttr attr;
    const QnType *t = qn_onnx_type(n, 0);
    if (!t)
        return qn_fail(QN_EDTYPE, "input 0 must be a tensor of numbers");
    QN_TRY(read_form(n, &f));
    QN_TRY(read_target(n, &t->shape, &f, axis));
    if (as_resize(&f, axis, t, &attr))
        return qn_onnx_out0(n, qn_resize(n->g, qn_onnx_in(n, 0), &attr));
    bool crop = !strcmp(f.coord, "tf_crop_and_resize");
    for (int i = 0; i < t->shape.rank; i++)
        if (f.mode != QN_RESIZE_NEAREST && axis[i].m > (1 << 28) / axis[i].n)
            return qn_onnx_refuse(n, "from %lld to %lld elements in this form",
                                  (long long)axis[i].n, (long long)axis[i].m);
    QnValue *y = qn_onnx_in(n, 0);
    if (!qn_dtype_is_float(t->dtype) && f.mode != QN_RESIZE_NEAREST)
        y = qn_cast(n->g, y, QN_DTYPE_F32);
    for (int i = 0; i < t->shape.rank; i++)
        if (!is_same(&axis[i]))
            y = resize_axis(n, &f, &axis[i], y, i);
    if (crop)
        y = put_outside(n, &f, axis, y);
    return qn_onnx_out0(n, qn_cast(n->g, y, t->dtype));
}

const QnOnnxMap qn_onnx_resize[] = {
    { "Resize", NULL, 10, 0, import_resize, NULL },
    { "Upsample", NULL, 7, 9, import_resize, NULL },
    { 0 },
};
