/* Products of 8-bit floats: scales by tensor, delayed (Micikevicius et al. 2022). A tensor is
 * multiplied by a power of two that brings its largest element below the format's largest, and
 * rounded; e4m3 forward, e5m2 for gradients. The largest elements of the last QN_F8_HISTORY steps
 * say how large; at the first step the tensor itself does. */
#ifndef QN_OPS_F8_H
#define QN_OPS_F8_H

#include "ir/graph.h"

enum { QN_F8_HISTORY = 16 };

/* A matrix (M,N) as an operand of products. */
typedef struct QnF8Operand {
    QnValue *straight, *turned; /* (M,N) and (N,M), 8-bit */
    QnValue *inverse;           /* f32 scalar: times this they are the matrix */
} QnF8Operand;

/* state: name of the state that holds the history, NULL: none, x alone decides. update: this step
 * enters the history. */
QnF8Operand qn_f8_operand(QnGraph *g, QnValue *x, const char *state, QnDtype to, bool update);

/* ---- for the operators ---- */

double qn_f8_most(QnDtype dtype); /* the largest number */
/* Whether x can be rounded to the dtype; a history is a row of f32. */
QnStatus qn_f8_check(const char *op, QnDtype dtype, const QnType *x);
QnStatus qn_f8_check_history(const char *op, const QnType *history);
/* The largest |element|, f32; and whether such a number is neither infinite nor NaN. */
QnValue *qn_f8_largest(QnGraph *g, QnValue *x);
QnValue *qn_f8_is_sound(QnGraph *g, QnValue *amax);

#endif
