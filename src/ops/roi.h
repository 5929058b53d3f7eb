/* Where roi_align samples: a region of an image in a grid of bins, each with points of its own, and
 * the four elements about each point. */
#ifndef QN_OPS_ROI_H
#define QN_OPS_ROI_H

#include "ops/attrs.h"
#include "ops/util.h"

#define QN_ROI_FIELDS                                                                              \
    { .name = "size",                                                                              \
      .kind = QN_ATTR_INTS,                                                                        \
      .offset = offsetof(QnRoiAttr, size),                                                         \
      .doc = "bins along the two spatial axes" },                                                  \
        { .name = "mode",                                                                          \
          .kind = QN_ATTR_ENUM,                                                                    \
          .offset = offsetof(QnRoiAttr, mode),                                                     \
          .names = qn_roi_mode_names,                                                              \
          .doc = "avg: mean of the points; max: greatest weighted element about them" },           \
        { .name = "sampling",                                                                      \
          .kind = QN_ATTR_INT,                                                                     \
          .offset = offsetof(QnRoiAttr, sampling),                                                 \
          .max = 1 << 12,                                                                          \
          .doc = "points along each axis of a bin; 0: as many as it has elements, rounded up" },   \
        { .name = "scale",                                                                         \
          .kind = QN_ATTR_FLOAT,                                                                   \
          .offset = offsetof(QnRoiAttr, scale),                                                    \
          .def = 1,                                                                                \
          .doc = "from the regions' coordinates to elements" },                                    \
    {                                                                                              \
        .name = "half_pixel", .kind = QN_ATTR_BOOL, .offset = offsetof(QnRoiAttr, half_pixel),     \
        .doc = "element i covers [i - 1/2, i + 1/2], not [i, i + 1], and regions may be small"     \
    }
extern const char *const qn_roi_mode_names[];

/* Checks attributes, regions (R,4) and their images (R), operands i and i + 1, for x (N,C,H,W). */
QnStatus qn_roi_check(const QnInfer *c, const char *op, const QnRoiAttr *a, const QnType *x, int i);
/* (R,C,bins). */
QnShape qn_roi_shape(const QnRoiAttr *a, const QnShape *x, const QnShape *rois);

typedef struct QnRoiPoint {
    int64_t at[4]; /* offsets in the plane */
    double weight[4];
} QnRoiPoint;

typedef struct QnRoi {
    int64_t image;
    int64_t in[2], n[2]; /* of the image, points along a bin */
    double start[2], bin[2];
} QnRoi;

/* Region r; an error names it, where its image does not exist or its size is beyond reason. */
QnStatus qn_roi_at(const char *op, const QnRoiAttr *a, const QnShape *x, const double *rois,
                   const double *images, int64_t r, QnRoi *out);
/* Point (i, j) of bin (p, q); false: it lies outside, where everything is 0. */
bool qn_roi_point(const QnRoi *roi, int64_t p, int64_t q, int64_t i, int64_t j, QnRoiPoint *out);

/* The mean over points is linear in x: y += A x, or backward x += A' y. Both hold whole tensors. */
QnStatus qn_roi_avg(const char *op, const QnRoiAttr *a, const QnShape *x, const double *rois,
                    const double *images, int64_t n_rois, const double *from, double *to,
                    bool backward);
/* Additions and multiplications for regions of some four points a bin, or `sampling`. */
double qn_roi_flops(const QnRoiAttr *a, const QnShape *y);

#endif
