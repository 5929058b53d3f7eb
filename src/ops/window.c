#include "ops/window.h"
#include "ops/onnx_put.h"
#include "ops/util.h"

#include <string.h>

enum { MOST = 1 << 30 }; /* of strides, pads, dilations, kernels: keeps products in 64 bits */

static int64_t entry(const QnInts *list, int i, int64_t def)
{
    return i < list->n ? list->v[i] : def;
}

static QnStatus check_list(const char *op, const char *name, const QnInts *list, int n, int64_t min)
{
    if (list->n && list->n != n)
        return qn_fail(QN_EARG, "%s: %s has %d entries; give none or %d", op, name, list->n, n);
    for (int i = 0; i < list->n; i++) {
        if (list->v[i] < min || list->v[i] > MOST)
            return qn_fail(QN_EARG, "%s: %s holds %lld; it must be in %lld..%d", op, name,
                           (long long)list->v[i], (long long)min, MOST);
    }
    return QN_OK;
}

static QnStatus check_lists(const char *op, int n, const QnInts *strides, const QnInts *pads,
                            const QnInts *dilations)
{
    QN_TRY(check_list(op, "strides", strides, n, 1));
    QN_TRY(check_list(op, "pads", pads, 2 * n, 0));
    return check_list(op, "dilations", dilations, n, 1);
}

/* floor((in + pads - (dil * (k - 1) + 1)) / stride) + 1, k and in perhaps symbolic. */
static QnStatus out_dim(QnGraph *g, const char *op, int axis, QnDim in, QnDim k, int64_t stride,
                        int64_t begin, int64_t end, int64_t dil, QnDim *out)
{
    QnDim extent = qn_dim_add(g, qn_dim_mul(g, dil, qn_dim_sub(g, k, 1)), 1);
    QnDim padded = qn_dim_add(g, in, begin + end);
    if (extent >= 0 && padded >= 0 && padded < extent)
        return qn_fail(QN_ESHAPE,
                       "%s: the window spans %lld elements along spatial axis %d, the padded input "
                       "has %lld; pad more or use a smaller window",
                       op, (long long)extent, axis, (long long)padded);
    *out = qn_dim_add(g, qn_dim_div(g, qn_dim_sub(g, padded, extent), stride), 1);
    return QN_OK;
}

void qn_window_args(QnDeviceCall *c, const QnWindow *w)
{
    const int64_t *const lists[] = { w->in, w->k, w->out, w->stride, w->pad, w->dil };
    for (int l = 0; l < QN_COUNT(lists); l++) {
        for (int d = 0; d < 3; d++)
            qn_device_int(c, lists[l][d]);
    }
}

static QnWindow unit_window(void)
{
    return (QnWindow){ .in = { 1, 1, 1 },
                       .k = { 1, 1, 1 },
                       .out = { 1, 1, 1 },
                       .stride = { 1, 1, 1 },
                       .dil = { 1, 1, 1 } };
}

/* ---- convolutions ---- */

QnStatus qn_window_conv_shape(QnGraph *g, const char *op, const QnConvAttr *a, const QnShape *x,
                              const QnShape *w, QnShape *y)
{
    char xt[QN_TYPE_TEXT_BYTES], wt[QN_TYPE_TEXT_BYTES];
    int n = x->rank - 2;
    if (n < 1 || n > 3 || w->rank != x->rank)
        return qn_fail(
            QN_ESHAPE,
            "%s: x %s and w %s; they must be (N,C,spatial...) and (M,C/groups,window...) "
            "of one rank, 3 to 5",
            op, qn_shape_text(x, xt), qn_shape_text(w, wt));
    QN_TRY(check_lists(op, n, &a->strides, &a->pads, &a->dilations));
    int64_t groups = QN_MAX(a->groups, 1);
    if (x->dim[1] >= 0 && w->dim[1] >= 0 && (x->dim[1] % groups || x->dim[1] / groups != w->dim[1]))
        return qn_fail(QN_ESHAPE,
                       "%s: x %s has %lld channels in %lld groups, w %s takes %lld a group", op,
                       qn_shape_text(x, xt), (long long)x->dim[1], (long long)groups,
                       qn_shape_text(w, wt), (long long)w->dim[1]);
    if (w->dim[0] >= 0 && w->dim[0] % groups)
        return qn_fail(QN_ESHAPE, "%s: %lld output channels do not fall into %lld groups", op,
                       (long long)w->dim[0], (long long)groups);
    *y = (QnShape){ .rank = x->rank, .dim = { x->dim[0], w->dim[0] } };
    for (int i = 0; i < n; i++) {
        if (w->dim[2 + i] == 0)
            return qn_fail(QN_ESHAPE, "%s: w %s has an empty window", op, qn_shape_text(w, wt));
        QN_TRY(out_dim(g, op, i, x->dim[2 + i], w->dim[2 + i], entry(&a->strides, i, 1),
                       entry(&a->pads, i, 0), entry(&a->pads, n + i, 0), entry(&a->dilations, i, 1),
                       &y->dim[2 + i]));
    }
    return QN_OK;
}

QnConvAttr qn_window_conv_full(const QnConvAttr *a, int n_spatial)
{
    QnConvAttr f = { .groups = QN_MAX(a->groups, 1) };
    f.strides.n = f.dilations.n = n_spatial;
    f.pads.n = 2 * n_spatial;
    for (int i = 0; i < n_spatial; i++) {
        f.strides.v[i] = entry(&a->strides, i, 1);
        f.dilations.v[i] = entry(&a->dilations, i, 1);
    }
    for (int i = 0; i < 2 * n_spatial; i++)
        f.pads.v[i] = entry(&a->pads, i, 0);
    return f;
}

QnConvGeom qn_window_conv(const QnConvAttr *a, const QnShape *x, const QnShape *w, const QnShape *y)
{
    QnConvGeom g = { .n = x->dim[0],
                     .c = x->dim[1],
                     .m = w->dim[0],
                     .groups = QN_MAX(a->groups, 1),
                     .w = unit_window() };
    int n = x->rank - 2;
    for (int i = 0; i < n; i++) {
        int d = 3 - n + i;
        g.w.in[d] = x->dim[2 + i];
        g.w.k[d] = w->dim[2 + i];
        g.w.out[d] = y->dim[2 + i];
        g.w.stride[d] = entry(&a->strides, i, 1);
        g.w.pad[d] = entry(&a->pads, i, 0);
        g.w.end[d] = entry(&a->pads, n + i, 0);
        g.w.dil[d] = entry(&a->dilations, i, 1);
    }
    return g;
}

QnStatus qn_window_conv_operand(QnInfer *c, const char *op, const QnShape *want)
{
    const QnType *a = c->in[0], *b = c->in[1];
    if (!qn_dtype_is_float(a->dtype) || a->dtype != b->dtype)
        return qn_fail(QN_EDTYPE, "%s: operands are %s and %s; both must be of one float type", op,
                       qn_dtype_name(a->dtype), qn_dtype_name(b->dtype));
    bool fits = !want || a->shape.rank == want->rank;
    for (int i = 0; want && fits && i < want->rank; i++) {
        QnDim d = a->shape.dim[i], e = want->dim[i];
        fits = d == e || d < 0 || e < 0;
    }
    if (!fits) {
        char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "%s: dy is %s, the convolution gives %s", op,
                       qn_shape_text(&a->shape, x), qn_shape_text(want, y));
    }
    return QN_OK;
}

static int64_t product(const int64_t v[3])
{
    return v[0] * v[1] * v[2];
}

double qn_window_conv_flops(const QnConvGeom *g)
{
    return 2.0 * (double)g->n * (double)g->m * (double)(g->c / g->groups) *
           (double)product(g->w.out) * (double)product(g->w.k);
}

void qn_window_conv_args(QnDeviceCall *c, const QnConvGeom *g)
{
    qn_device_int(c, g->n);
    qn_device_int(c, g->c);
    qn_device_int(c, g->m);
    qn_device_int(c, g->groups);
    qn_window_args(c, &g->w);
}

QnStatus qn_window_conv_device(const char *op, const QnConvGeom *g)
{
    const QnWindow *w = &g->w;
    const double most = 1 << 30;
    double cells = 1, windows = 1, depth = (double)QN_MAX(g->c, g->m);
    bool fits = true;
    for (int d = 0; d < 3; d++) {
        cells *= (double)w->in[d];
        windows *= (double)w->out[d];
        depth *= (double)w->k[d];
        fits &= (double)w->out[d] * (double)w->stride[d] < most && (double)w->pad[d] < most &&
                (double)w->k[d] * (double)w->dil[d] < most;
    }
    if (fits && cells < most && windows < most && depth < most)
        return QN_OK;
    return qn_fail(QN_EUNSUPPORTED, "%s: device text counts the places of an image in 32 bits", op);
}

int qn_window_conv_rows(int64_t channels)
{
    enum { FEW = 8 };
    return channels < FEW ? 0 : channels <= 64 ? 1 : 2;
}

QnStatus qn_window_conv_call(const char *op, const QnConvGeom *g, const char *const kernels[3],
                             QnDeviceCall *c)
{
    int64_t windows = product(g->w.out), mg = g->m / g->groups;
    int rows = qn_window_conv_rows(mg);
    QN_TRY(qn_window_conv_device(op, g));
    *c = (QnDeviceCall){ .kernel = kernels[rows],
                         .n_groups = g->n * g->m * ((windows + QN_GROUP - 1) / QN_GROUP),
                         .group_size = QN_GROUP };
    if (rows)
        c->n_groups =
            g->groups * ((mg + 64 * rows - 1) / (64 * rows)) * ((g->n * windows + 63) / 64);
    qn_window_conv_args(c, g);
    return QN_OK;
}

void qn_window_conv_ref(const QnConvGeom *g, QnConvPart part, const double *x, const double *w,
                        const double *y, double *out)
{
    const QnWindow *q = &g->w;
    int64_t cg = g->c / g->groups, mg = g->m / g->groups;
    int64_t taps = product(q->k), windows = product(q->out), cells = product(q->in);
    int64_t count[] = { g->n * g->m * windows, g->n * g->c * cells, g->m * cg * taps };
    memset(out, 0, (size_t)count[part] * sizeof *out);
    for (int64_t yi = 0; yi < count[QN_CONV_Y]; yi++) {
        int64_t o[3] = { yi / q->out[2] / q->out[1] % q->out[0], yi / q->out[2] % q->out[1],
                         yi % q->out[2] };
        int64_t m = yi / windows % g->m, n = yi / windows / g->m;
        for (int64_t t = 0; t < cg * taps; t++) {
            int64_t k[3] = { t / q->k[2] / q->k[1] % q->k[0], t / q->k[2] % q->k[1], t % q->k[2] };
            int64_t c = m / mg * cg + t / taps, xi = n * g->c + c;
            bool inside = true;
            for (int d = 0; d < 3; d++) {
                int64_t at = qn_window_at(q, d, o[d], k[d]);
                inside &= at >= 0 && at < q->in[d];
                xi = xi * q->in[d] + at;
            }
            int64_t wi = m * cg * taps + t;
            if (!inside)
                continue;
            if (part == QN_CONV_Y)
                out[yi] += x[xi] * w[wi];
            else if (part == QN_CONV_X)
                out[xi] += y[yi] * w[wi];
            else
                out[wi] += y[yi] * x[xi];
        }
    }
}

/* ---- pools ---- */

/* With ceil_mode a window is added where one would stick out, if it starts before the end padding
 * (PyTorch's rule, so that no window lies in padding alone). */
static void round_up(const QnPoolAttr *a, int i, int n, QnDim in, QnDim *out)
{
    int64_t k = a->kernel.v[i], stride = entry(&a->strides, i, k), begin = entry(&a->pads, i, 0);
    int64_t extent = entry(&a->dilations, i, 1) * (k - 1) + 1;
    int64_t rest = (in + begin + entry(&a->pads, n + i, 0) - extent) % stride;
    if (rest && *out * stride < in + begin)
        ++*out;
}

QnStatus qn_window_pool_shape(QnGraph *g, const char *op, const QnPoolAttr *a, const QnShape *x,
                              QnShape *y)
{
    int n = x->rank - 2;
    char xt[QN_TYPE_TEXT_BYTES];
    if (n < 1 || n > 3)
        return qn_fail(QN_ESHAPE, "%s: x %s must be (N,C,spatial...) of rank 3 to 5", op,
                       qn_shape_text(x, xt));
    if (a->kernel.n != n)
        return qn_fail(QN_EARG, "%s: the kernel has %d entries, x %s needs %d", op, a->kernel.n,
                       qn_shape_text(x, xt), n);
    QN_TRY(check_list(op, "kernel", &a->kernel, n, 1));
    QN_TRY(check_lists(op, n, &a->strides, &a->pads, &a->dilations));
    *y = (QnShape){ .rank = x->rank, .dim = { x->dim[0], x->dim[1] } };
    for (int i = 0; i < n; i++) {
        int64_t k = a->kernel.v[i], begin = entry(&a->pads, i, 0), end = entry(&a->pads, n + i, 0);
        int64_t dil = entry(&a->dilations, i, 1);
        if (QN_MAX(begin, end) > dil * (k - 1))
            return qn_fail(QN_EARG, "%s: pads (%lld, %lld) hide a whole window of %lld; pad less",
                           op, (long long)begin, (long long)end, (long long)(dil * (k - 1) + 1));
        QN_TRY(out_dim(g, op, i, x->dim[2 + i], k, entry(&a->strides, i, k), begin, end, dil,
                       &y->dim[2 + i]));
        if (a->ceil_mode && x->dim[2 + i] >= 0)
            round_up(a, i, n, x->dim[2 + i], &y->dim[2 + i]);
    }
    return QN_OK;
}

QnWindow qn_window_pool(const QnPoolAttr *a, const QnShape *x, const QnShape *y)
{
    QnWindow w = unit_window();
    int n = x->rank - 2;
    for (int i = 0; i < n; i++) {
        int d = 3 - n + i;
        w.in[d] = x->dim[2 + i];
        w.k[d] = a->kernel.v[i];
        w.out[d] = y->dim[2 + i];
        w.stride[d] = entry(&a->strides, i, w.k[d]);
        w.pad[d] = entry(&a->pads, i, 0);
        w.end[d] = entry(&a->pads, n + i, 0);
        w.dil[d] = entry(&a->dilations, i, 1);
    }
    return w;
}

QnStatus qn_window_pool_operand(const char *op, const QnType *got, QnDtype dtype,
                                const QnShape *want)
{
    if (!qn_dtype_is_float(got->dtype) || got->dtype != dtype)
        return qn_fail(QN_EDTYPE, "%s: operands are %s and %s; both must be of one float type", op,
                       qn_dtype_name(got->dtype), qn_dtype_name(dtype));
    bool fits = got->shape.rank == want->rank;
    for (int i = 0; fits && i < want->rank; i++) {
        QnDim d = got->shape.dim[i], e = want->dim[i];
        fits = d == e || d < 0 || e < 0;
    }
    if (!fits) {
        char x[QN_TYPE_TEXT_BYTES], y[QN_TYPE_TEXT_BYTES];
        return qn_fail(QN_ESHAPE, "%s: an operand is %s, the pool needs %s", op,
                       qn_shape_text(&got->shape, x), qn_shape_text(want, y));
    }
    return QN_OK;
}

/* Element of its plane that tap t of window o reads; -1: outside. *padded: it is at least in the
 * padding. */
static int64_t tap(const QnWindow *w, int64_t o, int64_t t, bool *padded)
{
    int64_t os[3] = { o / w->out[2] / w->out[1], o / w->out[2] % w->out[1], o % w->out[2] };
    int64_t ts[3] = { t / w->k[2] / w->k[1], t / w->k[2] % w->k[1], t % w->k[2] }, at = 0;
    bool inside = true;
    *padded = true;
    for (int d = 0; d < 3; d++) {
        int64_t e = qn_window_at(w, d, os[d], ts[d]);
        inside &= e >= 0 && e < w->in[d];
        *padded &= e >= -w->pad[d] && e < w->in[d] + w->end[d];
        at = at * w->in[d] + e;
    }
    return inside ? at : -1;
}

int64_t qn_window_argmax(const QnWindow *w, const double *x, int64_t o)
{
    int64_t best = -1;
    for (int64_t t = 0; t < product(w->k); t++) {
        bool padded;
        int64_t at = tap(w, o, t, &padded);
        if (at >= 0 && (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])))
            best = at;
    }
    return best;
}

void qn_window_avg_ref(const QnWindow *w, bool count_pad, int64_t planes, const double *in,
                       double *out, bool backward)
{
    int64_t windows = product(w->out), cells = product(w->in), taps = product(w->k);
    for (int64_t i = 0; i < planes * windows; i++) {
        int64_t o = i % windows, plane = i / windows * cells, count = 0;
        double sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            bool padded;
            int64_t at = tap(w, o, t, &padded);
            count += count_pad ? padded : at >= 0;
            sum += !backward && at >= 0 ? in[plane + at] : 0;
        }
        for (int64_t t = 0; backward && t < taps; t++) {
            bool padded;
            int64_t at = tap(w, o, t, &padded);
            if (at >= 0)
                out[plane + at] += in[i] / (double)count;
        }
        if (!backward)
            out[i] = sum / (double)count;
    }
}

/* ---- ONNX ------------------------------------------------------------------------------------ */

static void put_list(QnOnnxPut *p, QnOnnxDef *d, const char *name, const QnInts *v)
{
    if (v->n)
        qn_put_attr_ints(p, d, name, v->v, v->n);
}

void qn_window_pool_put(QnOnnxPut *p, const QnPoolAttr *a, QnOnnxDef *d)
{
    bool average = d && !strcmp(d->op, "AveragePool");
    put_list(p, d, "kernel_shape", &a->kernel);
    put_list(p, d, "strides", a->strides.n ? &a->strides : &a->kernel);
    put_list(p, d, "pads", &a->pads);
    for (int i = 0; i < a->dilations.n; i++)
        if (average && qn_put_opset(p) < 19 && a->dilations.v[i] != 1)
            qn_put_fail(p, qn_fail(QN_EUNSUPPORTED, "an average over a dilated window before "
                                                    "opset 19"));
    if (!average || qn_put_opset(p) >= 19)
        put_list(p, d, "dilations", &a->dilations);
    qn_put_attr_int(p, d, "ceil_mode", a->ceil_mode);
    if (average)
        qn_put_attr_int(p, d, "count_include_pad", a->count_include_pad);
}
