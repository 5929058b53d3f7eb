/* Windows that slide over 1 to 3 spatial axes: the geometry that convolutions and pools share. */
#ifndef QN_OPS_WINDOW_H
#define QN_OPS_WINDOW_H

#include "ir/graph.h"
#include "ops/attrs.h"

/* Rows of the attribute tables of convolutions; the struct's first member is a QnConvAttr. */
#define QN_CONV_FIELDS                                                                             \
    { .name = "strides",                                                                           \
      .kind = QN_ATTR_INTS,                                                                        \
      .offset = offsetof(QnConvAttr, strides),                                                     \
      .doc = "steps of the window along each spatial axis; none: all 1" },                         \
        { .name = "pads",                                                                          \
          .kind = QN_ATTR_INTS,                                                                    \
          .offset = offsetof(QnConvAttr, pads),                                                    \
          .doc = "zeros before each spatial axis, then those after each; none: all 0" },           \
        { .name = "dilations",                                                                     \
          .kind = QN_ATTR_INTS,                                                                    \
          .offset = offsetof(QnConvAttr, dilations),                                               \
          .doc = "distance of neighbouring taps along each spatial axis; none: all 1" },           \
    {                                                                                              \
        .name = "groups", .kind = QN_ATTR_INT, .offset = offsetof(QnConvAttr, groups), .def = 1,   \
        .min = 0, .max = 1 << 30, .doc = "channels fall into as many independent groups"           \
    }

/* Rows of the attribute tables of pools; the struct's first member is a QnPoolAttr. */
#define QN_POOL_FIELDS                                                                             \
    { .name = "kernel",                                                                            \
      .kind = QN_ATTR_INTS,                                                                        \
      .offset = offsetof(QnPoolAttr, kernel),                                                      \
      .doc = "size of the window along each spatial axis" },                                       \
        { .name = "strides",                                                                       \
          .kind = QN_ATTR_INTS,                                                                    \
          .offset = offsetof(QnPoolAttr, strides),                                                 \
          .doc = "steps of the window; none: the kernel's size" },                                 \
        { .name = "pads",                                                                          \
          .kind = QN_ATTR_INTS,                                                                    \
          .offset = offsetof(QnPoolAttr, pads),                                                    \
          .doc = "padding before each spatial axis, then that after each; none: all 0" },          \
        { .name = "dilations",                                                                     \
          .kind = QN_ATTR_INTS,                                                                    \
          .offset = offsetof(QnPoolAttr, dilations),                                               \
          .doc = "distance of neighbouring taps; none: all 1" },                                   \
        { .name = "ceil_mode",                                                                     \
          .kind = QN_ATTR_BOOL,                                                                    \
          .offset = offsetof(QnPoolAttr, ceil_mode),                                               \
          .doc = "a last window may stick out at the end of an axis" },                            \
    {                                                                                              \
        .name = "count_include_pad", .kind = QN_ATTR_BOOL,                                         \
        .offset = offsetof(QnPoolAttr, count_include_pad),                                         \
        .doc = "averages divide by the padding's elements too"                                     \
    }

/* Concrete geometry in three axes; with fewer, the first ones have length and window 1. */
typedef struct QnWindow {
    int64_t in[3], k[3], out[3], stride[3], pad[3], end[3], dil[3];
} QnWindow;

/* Tap t of window o along axis d reads this element; outside [0, in[d]) lies padding. */
static inline int64_t qn_window_at(const QnWindow *w, int d, int64_t o, int64_t t)
{
    return o * w->stride[d] - w->pad[d] + t * w->dil[d];
}

/* Appends in, k, out, stride, pad, dil (three each) to a device call. */
void qn_window_args(QnDeviceCall *c, const QnWindow *w);

typedef struct QnConvGeom {
    int64_t n, c, m, groups;
    QnWindow w;
} QnConvGeom;

/* Output shape of a convolution of x (N,C,in...) by w (M,C/groups,k...), or why there is none. */
QnStatus qn_window_conv_shape(QnGraph *g, const char *op, const QnConvAttr *a, const QnShape *x,
                              const QnShape *w, QnShape *y);
/* For concrete shapes that qn_window_conv_shape has accepted. */
QnConvGeom qn_window_conv(const QnConvAttr *a, const QnShape *x, const QnShape *w,
                          const QnShape *y);
/* Float operands of one dtype; `given` is operand `what` and must have the shape `want`. */
QnStatus qn_window_conv_operand(QnInfer *c, const char *op, const QnShape *want);
/* Multiply-adds count 2; taps on padding count too. */
double qn_window_conv_flops(const QnConvGeom *g);
void qn_window_conv_args(QnDeviceCall *c, const QnConvGeom *g);
/* Refuses what device text cannot count in 32 bits: places in one image or one window. */
QnStatus qn_window_conv_device(const char *op, const QnConvGeom *g);
/* How many times 64 channels of a group the blocks of device text have as rows: 0, so few that most
 * of a block would be empty, 1 or 2. */
int qn_window_conv_rows(int64_t channels);
/* Launch of the convolution's device text: by kernels[0] where qn_window_conv_rows of its results'
 * channels is 0, and so on. */
QnStatus qn_window_conv_call(const char *op, const QnConvGeom *g, const char *const kernels[3],
                             QnDeviceCall *c);
/* A copy with empty lists written out, for convolutions of n_spatial axes. */
QnConvAttr qn_window_conv_full(const QnConvAttr *a, int n_spatial);

/* y = conv(x,w) is a sum over triples; each of the three references adds up one of its members. */
typedef enum QnConvPart { QN_CONV_Y, QN_CONV_X, QN_CONV_W } QnConvPart;
void qn_window_conv_ref(const QnConvGeom *g, QnConvPart part, const double *x, const double *w,
                        const double *y, double *out);

/* Output shape of a pool of x (N,C,in...), or why there is none. */
QnStatus qn_window_pool_shape(QnGraph *g, const char *op, const QnPoolAttr *a, const QnShape *x,
                              QnShape *y);
QnWindow qn_window_pool(const QnPoolAttr *a, const QnShape *x, const QnShape *y);
/* A float operand of a pool's gradient must have this type. */
QnStatus qn_window_pool_operand(const char *op, const QnType *got, QnDtype dtype,
                                const QnShape *want);
/* Offset in its plane x of the first greatest element of window o; NaN counts as greatest. */
int64_t qn_window_argmax(const QnWindow *w, const double *x, int64_t o);
/* Means of the windows of x into y; or backwards, each y spread over its window and added to out.*/
void qn_window_avg_ref(const QnWindow *w, bool count_pad, int64_t planes, const double *in,
                       double *out, bool backward);

/* A pool's attributes as ONNX has them. */
struct QnOnnxPut;
struct QnOnnxDef;
void qn_window_pool_put(struct QnOnnxPut *p, const QnPoolAttr *a, struct QnOnnxDef *d);

#endif
