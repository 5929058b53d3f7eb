#include "ops/roi.h"

#include "ops/region.h"

#include <math.h>

enum { ROI_MOST_BINS = 1 << 12, ROI_MOST_POINTS = 1 << 12 };

const char *const qn_roi_mode_names[] = { "avg", "max", NULL };

QnStatus qn_roi_check(const QnInfer *c, const char *op, const QnRoiAttr *a, const QnType *x, int i)
{
    const QnType *rois = c->in[i], *images = c->in[i + 1];
    char s[QN_TYPE_TEXT_BYTES], t[QN_TYPE_TEXT_BYTES];
    if (!qn_dtype_is_float(x->dtype) || rois->dtype != x->dtype)
        return qn_fail(QN_EDTYPE, "%s: x is %s, regions are %s; both must be of one float type", op,
                       qn_dtype_name(x->dtype), qn_dtype_name(rois->dtype));
    QN_TRY(qn_region_check_index(op, images));
    if (x->shape.rank != 4 || x->shape.dim[2] == 0 || x->shape.dim[3] == 0)
        return qn_fail(QN_ESHAPE, "%s: x %s must be (N,C,H,W), no image empty", op,
                       qn_shape_text(&x->shape, s));
    if (rois->shape.rank != 2 || rois->shape.dim[1] != 4 || images->shape.rank != 1 ||
        !qn_region_may_equal(rois->shape.dim[0], images->shape.dim[0]))
        return qn_fail(QN_ESHAPE,
                       "%s: regions are %s, their images %s; they must be (R,4) of x1,y1,x2,y2 and "
                       "(R)",
                       op, qn_shape_text(&rois->shape, s), qn_shape_text(&images->shape, t));
    for (int k = 0; k < 2; k++) {
        if (a->size.n != 2 || a->size.v[k] < 1 || a->size.v[k] > ROI_MOST_BINS)
            return qn_fail(QN_EARG, "%s: size must name bins along two axes, each in 1..%d", op,
                           ROI_MOST_BINS);
    }
    if (!isfinite(a->scale))
        return qn_fail(QN_EARG, "%s: the scale is %g", op, a->scale);
    return QN_OK;
}

QnShape qn_roi_shape(const QnRoiAttr *a, const QnShape *x, const QnShape *rois)
{
    return QN_SHAPE(rois->dim[0], x->dim[1], a->size.v[0], a->size.v[1]);
}

QnStatus qn_roi_at(const char *op, const QnRoiAttr *a, const QnShape *x, const double *rois,
                   const double *images, int64_t r, QnRoi *out)
{
    double offset = a->half_pixel ? 0.5 : 0;
    QN_TRY(qn_region_index(op, images[r], r, x->dim[0], false, &out->image));
    for (int d = 0; d < 2; d++) { /* y first; a region is x1, y1, x2, y2 */
        double from = rois[4 * r + 1 - d] * a->scale - offset;
        double size = rois[4 * r + 3 - d] * a->scale - offset - from;
        if (!a->half_pixel)
            size = fmax(size, 1);
        out->in[d] = x->dim[2 + d];
        out->start[d] = from;
        out->bin[d] = size / (double)a->size.v[d];
        double points = a->sampling ? (double)a->sampling : ceil(out->bin[d]);
        if (!isfinite(from) || !(points <= ROI_MOST_POINTS))
            return qn_fail(QN_EARG, "%s: region %lld has a side from %g of length %g", op,
                           (long long)r, from, size);
        out->n[d] = points > 0 ? (int64_t)points : 0;
    }
    return QN_OK;
}

bool qn_roi_point(const QnRoi *roi, int64_t p, int64_t q, int64_t i, int64_t j, QnRoiPoint *out)
{
    const int64_t bin[2] = { p, q }, point[2] = { i, j };
    int64_t low[2], high[2];
    double f[2];
    for (int d = 0; d < 2; d++) {
        double n = (double)roi->n[d];
        double v = roi->start[d] + (double)bin[d] * roi->bin[d] +
                   ((double)point[d] + 0.5) * roi->bin[d] / n;
        if (!(v >= -1 && v <= (double)roi->in[d]))
            return false;
        v = fmin(fmax(v, 0), (double)(roi->in[d] - 1));
        low[d] = (int64_t)v;
        high[d] = QN_MIN(low[d] + 1, roi->in[d] - 1);
        f[d] = v - (double)low[d];
    }
    for (int k = 0; k < 4; k++) {
        bool down = k >> 1, right = k & 1;
        out->at[k] = (down ? high[0] : low[0]) * roi->in[1] + (right ? high[1] : low[1]);
        out->weight[k] = (down ? f[0] : 1 - f[0]) * (right ? f[1] : 1 - f[1]);
    }
    return true;
}

/* One bin of one plane: returns the mean, or backward spreads v over x. */
static double bin_avg(const QnRoi *roi, int64_t p, int64_t q, const double *x, double v, double *dx)
{
    double sum = 0, count = (double)QN_MAX(roi->n[0] * roi->n[1], 1);
    for (int64_t i = 0; i < roi->n[0]; i++) {
        for (int64_t j = 0; j < roi->n[1]; j++) {
            QnRoiPoint at;
            if (!qn_roi_point(roi, p, q, i, j, &at))
                continue;
            for (int k = 0; k < 4; k++) {
                if (dx)
                    dx[at.at[k]] += at.weight[k] * v / count;
                else
                    sum += at.weight[k] * x[at.at[k]] / count;
            }
        }
    }
    return sum;
}

QnStatus qn_roi_avg(const char *op, const QnRoiAttr *a, const QnShape *x, const double *rois,
                    const double *images, int64_t n_rois, const double *from, double *to,
                    bool backward)
{
    int64_t c = x->dim[1], plane = x->dim[2] * x->dim[3], o = 0;
    for (int64_t r = 0; r < n_rois; r++) {
        QnRoi roi;
        QN_TRY(qn_roi_at(op, a, x, rois, images, r, &roi));
        for (int64_t k = 0; k < c; k++) {
            int64_t base = (roi.image * c + k) * plane;
            for (int64_t p = 0; p < a->size.v[0]; p++) {
                for (int64_t q = 0; q < a->size.v[1]; q++, o++) {
                    if (backward)
                        bin_avg(&roi, p, q, NULL, from[o], to + base);
                    else
                        to[o] = bin_avg(&roi, p, q, from + base, 0, NULL);
                }
            }
        }
    }
    return QN_OK;
}

double qn_roi_flops(const QnRoiAttr *a, const QnShape *y)
{
    double points = a->sampling ? (double)(a->sampling * a->sampling) : 4;
    return 8 * points * (double)qn_shape_count(y);
}
