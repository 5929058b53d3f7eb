/* Attributes that the builders of quern/ops.h take, where an operator has too many for plain
 * parameters. */
#ifndef QUERN_ATTRS_H
#define QUERN_ATTRS_H

#include <quern/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum QnInit {
    QN_INIT_ZEROS,
    QN_INIT_CONSTANT,     /* a */
    QN_INIT_UNIFORM,      /* [a, b) */
    QN_INIT_NORMAL,       /* mean a, standard deviation b */
    QN_INIT_TRUNC_NORMAL, /* the same, redrawn beyond 2 b from the mean */
} QnInit;

typedef struct QnStateAttr {
    const char *name; /* "layer1.conv.weight"; unique */
    QnDtype dtype;
    QnDims dims;
    bool trainable;
    int init; /* QnInit */
    double a, b;
} QnStateAttr;

/* Convolutions over 1 to 3 spatial axes. Empty lists mean all 1 (strides, dilations) or 0 (pads).
 */
typedef struct QnConvAttr {
    QnInts strides;
    QnInts pads; /* zeros at the beginning of each axis, then those at the end of each */
    QnInts dilations;
    int64_t groups; /* 0 stands for 1 */
} QnConvAttr;

/* Pools. Empty strides: the kernel's size. With ceil_mode a last window may stick out at the end.
 */
typedef struct QnPoolAttr {
    QnInts kernel, strides, pads, dilations;
    bool ceil_mode;
    bool count_include_pad; /* avg_pool divides by the padding's elements too */
} QnPoolAttr;

typedef enum QnReduction {
    QN_REDUCTION_MEAN,
    QN_REDUCTION_SUM,
    QN_REDUCTION_NONE,
} QnReduction;

/* For each named axis the elements start, start + step, … before end, as numpy has it: negative
 * bounds count from the end, bounds beyond the axis are cut off. A negative step runs backwards;
 * INT64_MIN as its end means: down to the first. */
typedef struct QnSliceAttr {
    QnInts axes, starts, ends, steps; /* no steps: all 1 */
} QnSliceAttr;

typedef enum QnPadMode { QN_PAD_CONSTANT, QN_PAD_REFLECT, QN_PAD_EDGE, QN_PAD_WRAP } QnPadMode;

typedef struct QnPadAttr {
    QnInts before, after; /* elements to add, one number an axis; negative ones cut (constant) */
    int mode;             /* QnPadMode */
    double value;         /* of constant padding */
} QnPadAttr;

/* How scattered updates meet what is there. */
typedef enum QnScatter {
    QN_SCATTER_NONE, /* they replace it */
    QN_SCATTER_ADD,
    QN_SCATTER_MUL,
    QN_SCATTER_MAX,
    QN_SCATTER_MIN,
} QnScatter;

typedef enum QnResizeMode { QN_RESIZE_NEAREST, QN_RESIZE_LINEAR, QN_RESIZE_CUBIC } QnResizeMode;

/* Where the centre of output element o of m lies among n input elements: (o + 1/2) n/m - 1/2;
 * o (n-1)/(m-1); o n/m. */
typedef enum QnResizeCoord {
    QN_RESIZE_HALF_PIXEL,
    QN_RESIZE_ALIGN_CORNERS,
    QN_RESIZE_ASYMMETRIC,
} QnResizeCoord;

/* How the nearest mode rounds it; ties go down or up. */
typedef enum QnResizeRound {
    QN_RESIZE_TIES_DOWN,
    QN_RESIZE_TIES_UP,
    QN_RESIZE_FLOOR,
    QN_RESIZE_CEIL,
} QnResizeRound;

typedef struct QnResizeAttr {
    QnDims size;  /* new spatial dims, one to three */
    int mode;     /* QnResizeMode */
    int coord;    /* QnResizeCoord */
    int round;    /* QnResizeRound */
    double cubic; /* coefficient a of Keys' kernel, -0.75 or -0.5 */
    bool adjoint; /* the transposed map: gradients use it */
} QnResizeAttr;

/* What lies outside an image that is sampled at any place. Reflection is about the outermost
 * elements' centres with align_corners, else about their edges. */
typedef enum QnSamplePad { QN_SAMPLE_ZEROS, QN_SAMPLE_BORDER, QN_SAMPLE_REFLECTION } QnSamplePad;

/* Places are from -1 to 1 along each axis: from the first element's centre to the last one's with
 * align_corners, else from edge to edge. */
typedef struct QnGridSampleAttr {
    int mode;    /* QnResizeMode */
    int padding; /* QnSamplePad */
    bool align_corners;
} QnGridSampleAttr;

typedef enum QnRoiMode { QN_ROI_AVG, QN_ROI_MAX } QnRoiMode;

/* Regions of images sampled in a grid of bins. */
typedef struct QnRoiAttr {
    QnInts size;      /* bins along the two spatial axes */
    int mode;         /* QnRoiMode */
    int64_t sampling; /* points along each axis of a bin; 0: as many as it has elements */
    double scale;     /* from the regions' coordinates to elements */
    bool half_pixel;
} QnRoiAttr;

typedef struct QnDeformConvAttr {
    QnConvAttr conv;       /* over two spatial axes */
    int64_t offset_groups; /* channels that share offsets; 0 stands for 1 */
} QnDeformConvAttr;

#ifdef __cplusplus
}
#endif

#endif
