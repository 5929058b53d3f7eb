/* Attribute structs that builders take: quern/attrs.h. */
#ifndef QN_OPS_ATTRS_H
#define QN_OPS_ATTRS_H

#include "ir/graph.h"
#include "quern/attrs.h"

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

#endif
