/* Sampling of images at places that are computed, as a composition: rows of channels are gathered
 * for every element that takes part, times its weight. Gradients of any order follow, to the image
 * and, but for the nearest mode, to the places. */
#ifndef QN_OPS_SAMPLER_H
#define QN_OPS_SAMPLER_H

#include "ir/graph.h"
#include "ops/attrs.h"

enum { QN_SAMPLER_AXES = 3 };

/* The elements along one axis that take part: inside it, as i64; weight NULL: 1. */
typedef struct QnSamplerTaps {
    int64_t length; /* of the axis */
    int n;
    QnValue *index[4], *weight[4];
} QnSamplerTaps;

/* at: places in elements of an axis of length n > 0, in f32 or wider. */
QnSamplerTaps qn_sampler_taps(QnGraph *g, QnValue *at, int64_t n, const QnGridSampleAttr *a);

/* x (rows,C) holds images as rows of channels; first (i64) says at which row an image begins and
 * broadcasts to the places. Results are (places...,C) of dtype t. taps: of `axes` axes. */
QnValue *qn_sampler_rows(QnGraph *g, QnValue *x, QnValue *first, const QnSamplerTaps *taps,
                         int axes, QnDtype t);

#endif
