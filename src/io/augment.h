/* Image augmentation: 8-bit (H,W,C) pixels to normalised float (C,H,W), in one pass and without
 * scratch memory. Order: resize, pad, crop, flip, scale to 0…1, cutout, normalise. */
#ifndef QN_IO_AUGMENT_H
#define QN_IO_AUGMENT_H

#include "base/status.h"

enum { QN_IMAGE_MAX_CHANNELS = 4 };

/* Pixels borrowed from elsewhere: row-major (H,W,C) without gaps. */
typedef struct QnPixels {
    const uint8_t *data;
    int64_t height, width, channels;
} QnPixels;

/* All zero: pixels scaled to 0…1 and nothing else. */
typedef struct QnAugment {
    int64_t resize_height, resize_width; /* 0: the image's own */
    int64_t resize_short;                /* instead: the shorter side, keeping the proportions */
    int64_t pad;                         /* zero pixels added on each side before the crop */
    int64_t crop_height, crop_width;     /* 0: all of it (without the padding) */
    bool random_crop;                    /* else from the centre */
    bool flip;                           /* left to right, every second time */
    int64_t cutout;                      /* side of a square set to the mean; 0: none */
    int normalize_channels;              /* 0: none; else the image's channels */
    float mean[QN_IMAGE_MAX_CHANNELS], std[QN_IMAGE_MAX_CHANNELS];
} QnAugment;

/* Checks the options, and against an image of this size; all 0: only the options. On success
 * *out_height and *out_width (may be NULL) say what comes out. */
QnStatus qn_augment_check(const QnAugment *a, int64_t height, int64_t width, int64_t channels,
                          int64_t *out_height, int64_t *out_width);

/* The same options without their random parts, for evaluation: the crop from the centre. */
QnAugment qn_augment_without_random(const QnAugment *a);

/* out: float (C, out_height, out_width). Random draws depend on (seed, epoch, index) alone. The
 * caller has checked the options against the size. */
void qn_augment_apply(const QnAugment *a, const QnPixels *in, uint64_t seed, uint64_t epoch,
                      int64_t index, float *out);

#endif
