/* One step of ONNX's recurrent operators in their general form: any activations, clipping,
 * peepholes, coupled gates. Compositions unroll it over time; the usual form has operators of its
 * own (ops/recurrent.h). */
#ifndef QN_ONNX_RECURRENT_H
#define QN_ONNX_RECURRENT_H

#include "ops/onnx.h"

typedef enum QnCellKind { QN_CELL_RNN, QN_CELL_GRU, QN_CELL_LSTM } QnCellKind;

typedef struct QnCellAct {
    const char *name; /* one of a table's, in lower case */
    double alpha, beta;
} QnCellAct;

typedef struct QnCell {
    QnCellKind kind;
    int gates;        /* 1, 3 (z, r, h) or 4 (i, o, f, c) */
    int64_t hidden;   /* H */
    QnCellAct act[3]; /* f, g, h */
    double clip;      /* 0: none */
    bool input_forget, linear_before_reset;
    QnValue *w, *r;   /* (gates*H,I), (gates*H,H) */
    QnValue *wb, *rb; /* (gates*H); NULL: none */
    QnValue *p;       /* peepholes i, o, f: (3*H); NULL: none */
} QnCell;

/* Activation number `at` of the node for this cell, by attributes activations, activation_alpha and
 * activation_beta; *alpha and *beta count the numbers that were taken so far. */
QnStatus qn_cell_activation(const QnOnnxNode *n, int at, const char *usual, int *alpha, int *beta,
                            QnCellAct *out);
/* Whether it is the plain function of this name. */
bool qn_cell_acts(const QnCellAct *a, const char *name);

/* x (B,gates*H): w x with its bias. *h and *c (B,H) are replaced by the next step's. */
void qn_cell_step(QnGraph *g, const QnCell *c, QnValue *x, QnValue **h, QnValue **state);

#endif
