/* Parts of nets that find, outline and enhance things. Everything takes and gives values that may
 * stand for a failure, as all builders do. */
#ifndef QN_PLAN_MODELS_PARTS_H
#define QN_PLAN_MODELS_PARTS_H

#include "plan/models/blocks.h"

typedef QnValue *QnActivation(QnGraph *g, QnValue *x); /* qn_relu, qn_silu, qn_mish … */
QnActivation qn_leaky_tenth, qn_leaky_hundredth;       /* slopes below zero */

typedef enum QnPartNorm {
    QN_PART_PLAIN,    /* none */
    QN_PART_BATCH,    /* statistics of the batch while training */
    QN_PART_INSTANCE, /* of each example and channel */
    QN_PART_GIVEN,    /* of an earlier training, and its scale and shift with it */
} QnPartNorm;

/* A convolution, what norms it and what bends it. */
typedef struct QnPart {
    int64_t out, kernel, stride, dilation, groups; /* 0: 1 */
    QnPartNorm norm;
    QnActivation *act; /* NULL: none */
    bool bias;
    bool valid;  /* no padding, else (kernel - 1) * dilation / 2 */
    bool frozen; /* not trained */
} QnPart;
QnValue *qn_part(QnNet *net, const char *name, QnValue *x, const QnPart *p);

/* A convolution with bias whose weights several features share. */
typedef struct QnShared {
    QnValue *weight, *bias;
    QnConvAttr conv;
} QnShared;
QnShared qn_part_share(QnNet *net, const char *name, int64_t in, int64_t out, int64_t kernel);
QnValue *qn_part_apply(QnNet *net, const QnShared *s, QnValue *x);

QnValue *qn_part_join(QnNet *net, QnValue *a, QnValue *b); /* along the channels */
/* To height and width by the nearest neighbour, or linearly. */
QnValue *qn_part_resize(QnNet *net, QnValue *x, int64_t height, int64_t width, bool linear);
/* Transposed convolution with bias that doubles every spatial axis; kernel 2, 3 or 4. */
QnValue *qn_part_double(QnNet *net, const char *name, QnValue *x, int64_t out, int64_t kernel);

/* A width of 1333 is no width: COCO's pictures are resized to a short side of 800 and a long one of
 * at most 1333. They are 5 by 7 in the mean: work that Detectron2 has counted over pictures (Carion
 * et al. 2020, table 1) is met within 2 %. Sides are filled up to multiples of 32. */
enum { QN_COCO_WIDTH = 1333 };
QnValue *qn_part_picture(QnNet *net, const QnStepInput *in);
/* Input "x" of images or volumes, or an error where a side is no multiple of `multiple`, or less
 * than `least`. */
QnValue *qn_part_sides(QnNet *net, const QnStepInput *in, int64_t multiple, int64_t least);
/* Scores of a head (N,A*k,H,W) as rows (N,H*W*A,k), one for each anchor. */
QnValue *qn_part_rows(QnNet *net, QnValue *x, int64_t k);

/* ---- losses, scalars; what is wanted comes from inputs ---- */

/* Cross-entropy and overlap (Dice) of scores (N,classes,spatial...) with input `name` of the same
 * shape. */
QnValue *qn_part_overlap_loss(QnNet *net, const char *name, QnValue *scores);
/* Focal loss (Lin et al. 2017) of any scores with input `name` of the same shape. */
QnValue *qn_part_focal_loss(QnNet *net, const char *name, QnValue *scores);
/* Logistic loss of any scores likewise. */
QnValue *qn_part_binary_loss(QnNet *net, const char *name, QnValue *scores);
/* Smooth L1 of boxes (N,rows,4), or (N,4,rows), with input `name`, where a second input "NAME.mask"
 * counts them: a number for all four. */
QnValue *qn_part_box_loss(QnNet *net, const char *name, QnValue *boxes);

/* How much each of `most` boxes of each image, input "boxes" (N,most,4), overlaps each of the
 * anchors, and the best for each anchor, which decides what that should find: output "matched". */
void qn_part_match(QnNet *net, int64_t batch, int64_t anchors, int64_t most);

/* ---- residual nets as a base ---- */

typedef struct QnBase {
    int depth; /* 18, 34, 50, 101 */
    int64_t groups, group_width;
    bool given_norms;  /* norms are not trained */
    int frozen;        /* 1: what comes before the stages is not trained; 2: nor is the first */
    int stages;        /* 0: 4 */
    bool keep_third;   /* no stride in the third stage */
    bool dilate_last;  /* in the fourth stage, in place of its stride */
    bool stride_first; /* in the 1x1 convolution of a block, else in the 3x3 one */
} QnBase;
/* Features of an image after each stage. */
void qn_part_base(QnNet *net, QnValue *x, const QnBase *b, QnValue *out[4]);
/* Stage `number` (0 to 3) alone. */
QnValue *qn_part_stage(QnNet *net, QnValue *x, const QnBase *b, int number);

/* Feature pyramid (Lin et al. 2017): n levels of `width` channels, from features of which each has
 * half the side of the one before; bias, no norms. */
void qn_part_pyramid(QnNet *net, QnValue *const *features, int n, int64_t width, QnValue **out);

#endif
