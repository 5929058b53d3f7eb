/* What the files of data movement share: regions of tensors, padded indices, run-time indices. */
#ifndef QN_OPS_REGION_H
#define QN_OPS_REGION_H

#include "ops/attrs.h"
#include "ops/util.h"

/* Shape of the sliced region; for concrete s also the first element and step of every axis. */
typedef struct QnRegion {
    QnShape shape;
    int64_t start[QN_MAX_RANK], step[QN_MAX_RANK];
} QnRegion;
QnStatus qn_region_slice(QnGraph *g, const char *op, const QnShape *s, const QnSliceAttr *a,
                         QnRegion *out);

/* Checks pads against shape s and gives the padded shape, or with `back` the one before padding. */
QnStatus qn_region_pad(QnGraph *g, const char *op, const QnShape *s, const QnPadAttr *a, bool back,
                       QnShape *out);
/* Element of an axis of length n that stands at padded index i; -1: the constant. */
int64_t qn_region_pad_index(int64_t i, int64_t before, int64_t n, int mode);

/* Copies the region of x with these strides and offset to row-major y. */
void qn_region_copy(const QnShape *s, const int64_t *stride, int64_t offset, const double *x,
                    double *y);

/* Launch of one item an element of shape s: scalars are the count, eight dims, eight strides. */
QnStatus qn_region_call(const char *kernel, const QnNode *n, const QnShape *s,
                        const int64_t *stride, QnDeviceCall *c);
/* Adds eight more dims or strides, leading with `fill`. */
void qn_region_args(QnDeviceCall *c, int rank, const int64_t *v, int64_t fill);

/* Run-time index v, the element-th of the index tensor, for an axis of length n. Negative ones
 * count from the end if `wrap`; out of range is an error that names the element. */
QnStatus qn_region_index(const char *op, double v, int64_t element, int64_t n, bool wrap,
                         int64_t *out);
/* Indices must be i32 or i64. */
QnStatus qn_region_check_index(const char *op, const QnType *t);

/* Shape s without axis `axis`, and with `in` in its place: what gathering along it gives. */
QnStatus qn_region_replace(const char *op, const QnShape *s, int axis, const QnShape *in,
                           QnShape *out);
/* Whether two dims may be equal: they are, or a symbol is among them. */
bool qn_region_may_equal(QnDim a, QnDim b);

/* Shapes of gather_elements and scatter_elements: ranks agree, and indices are no longer than x but
 * along `axis`. */
QnStatus qn_region_check_elements(const char *op, const QnShape *x, const QnShape *indices,
                                  int64_t axis);

/* Tuples of indices (…,k) into x, after b batch axes: which slices they name. */
typedef struct QnTuples {
    int64_t n;          /* tuples */
    int64_t k;          /* indices in each */
    int64_t per_batch;  /* tuples */
    int64_t batch_size; /* elements of x */
    int64_t slice;      /* elements that a tuple names */
    const int64_t *dim; /* of x, from axis b on */
    int64_t stride[QN_MAX_RANK];
} QnTuples;
QnTuples qn_region_tuples(const QnShape *x, const QnShape *indices, int64_t batch_dims);
/* Offset in x of the slice that tuple p names. */
QnStatus qn_region_tuple(const char *op, const QnTuples *t, const double *indices, int64_t p,
                         int64_t *offset);
/* Shape of all the slices together; an error if the shapes do not fit. */
QnStatus qn_region_tuple_shape(const char *op, const QnShape *x, const QnShape *indices,
                               int64_t batch_dims, QnShape *out);

#endif
