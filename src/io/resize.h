/* Antialiased bilinear resize: half-pixel centres; shrinking averages all that a pixel covers. */
#ifndef QN_IO_RESIZE_H
#define QN_IO_RESIZE_H

#include "io/augment.h"

enum {
    QN_RESIZE_SHRINK_MAX = 1000, /* beyond it a pixel would not see all that it covers */
    QN_RESIZE_COLUMNS = 128,
    QN_RESIZE_WEIGHTS = 4096,
};

/* A run of output columns: which source columns each sees, and how much of them. */
typedef struct QnResize {
    int64_t count;        /* columns in the run */
    int64_t source, span; /* first source column that any sees, and how many there are */
    int64_t first[QN_RESIZE_COLUMNS];
    int taps[QN_RESIZE_COLUMNS];
    float weights[QN_RESIZE_WEIGHTS]; /* of all columns, one after the other */
} QnResize;

/* Prepares output columns x … x+count-1, as many as there is room for up to x_end. */
void qn_resize_columns(QnResize *r, int64_t in_width, int64_t out_width, int64_t x, int64_t x_end);
/* Row y of the output at those columns: count * channels values from 0 to 255. */
void qn_resize_row(const QnResize *r, const QnPixels *in, int64_t out_height, int64_t y,
                   float *value);
/* A whole image of 8-bit pixels; out: (height, width, C). */
void qn_resize_image(const QnPixels *in, int64_t height, int64_t width, uint8_t *out);

#endif
