/* Products of 8-bit floats: scales by tensor, delayed (Micikevicius et al. 2022). A tensor is
 * multiplied by a power of two that brings its largest element below the format's largest, and
 * rounded; e4m3 forward, e5m2 for gradients. The largest elements of the last QN_F8_HISTORY steps
 * say how large; at the first step the tensor itself does. */
#ifndef QN_OPS_F8_H
#define QN_OPS_F8_H

#include "ir/graph.h"

enum { QN_F8_HISTORY = 16 };

/* The f32 scalar to multiply x by before it is rounded to `to`. state: name of the state that holds
 * the history, NULL: none, x alone decides. update: this step enters the history. */
QnValue *qn_f8_scale(QnGraph *g, QnValue *x, const char *state, QnDtype to, bool update);
/* x times the scale in the 8-bit type, saturating. */
QnValue *qn_f8_round(QnGraph *g, QnValue *x, QnValue *scale, QnDtype to);

#endif
