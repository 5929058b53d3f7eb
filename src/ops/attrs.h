/* Attribute structs that builders take, where an operator has too many for plain parameters. */
#ifndef QN_OPS_ATTRS_H
#define QN_OPS_ATTRS_H

#include "ir/graph.h"

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

#endif
