/* Writing our nodes as ONNX's: what the operators' .put functions use. Failures are sticky: they
 * show in the status that the writer ends with. */
#ifndef QN_OPS_ONNX_PUT_H
#define QN_OPS_ONNX_PUT_H

#include "ops/onnx.h"

typedef struct QnOnnxDef QnOnnxDef; /* a node of a file */
struct QnOnnxDef {                  /* a node */
    const char *name;        /* its own, else that of its first output, else its operator's */
    const char *op, *domain; /* domain "" for ai.onnx */
    int n_in, n_out;
    const char *const *in; /* "": absent */
    const char *const *out;
    int n_attr;
    const QnOnnxAttr *attr;
};

typedef struct QnOnnxInit {
    const char *name;
    const QnTensor *tensor;
} QnOnnxInit;

/* What has been written so far; src/onnx/export.c begins and ends it. */
typedef struct QnOnnxPut {
    QnArena *arena;
    int64_t opset;
    const char **name; /* by the values' ids; NULL: not named yet */
    int64_t n_names, n_fresh;
    QnOnnxDef **node;
    int64_t n_node, cap_node;
    QnOnnxInit *init;
    int64_t n_init, cap_init;
    const char *writes; /* what the operator at hand says it writes; NULL: anything */
    QnStatus st;
} QnOnnxPut;

/* The name of a value that stands before the node that is written. */
const char *qn_put_value(QnOnnxPut *p, const QnValue *v);
/* A name that nobody has; `what` says for what. */
const char *qn_put_fresh(QnOnnxPut *p, const char *what);

/* Initialisers. The name is kept, not copied. */
const char *qn_put_tensor(QnOnnxPut *p, const char *name, const QnTensor *t);
const char *qn_put_ints(QnOnnxPut *p, const int64_t *v, int n);
const char *qn_put_int(QnOnnxPut *p, int64_t v);                  /* rank 0 */
const char *qn_put_number(QnOnnxPut *p, QnDtype dtype, double v); /* rank 0 */
/* A shape as Reshape takes it: a symbolic dim is -1; two of them are an error. */
const char *qn_put_shape(QnOnnxPut *p, const QnShape *s);

/* A node. NULL in `in`: an absent input. Returns NULL after a failure, which the others take. */
QnOnnxDef *qn_put_node(QnOnnxPut *p, const char *op, const char *const *in, int n_in,
                       const char *const *out, int n_out);
void qn_put_attr_int(QnOnnxPut *p, QnOnnxDef *d, const char *name, int64_t v);
void qn_put_attr_float(QnOnnxPut *p, QnOnnxDef *d, const char *name, double v);
void qn_put_attr_text(QnOnnxPut *p, QnOnnxDef *d, const char *name, const char *v);
void qn_put_attr_ints(QnOnnxPut *p, QnOnnxDef *d, const char *name, const int64_t *v, int n);

/* Shorthands: a node with one output, of a fresh name (returned), or that computes value v. */
const char *qn_put_1(QnOnnxPut *p, const char *op, const char *const *in, int n_in);
QnOnnxDef *qn_put_as(QnOnnxPut *p, const QnValue *v, const char *op, const char *const *in,
                     int n_in);
/* Our node with its inputs in order, as one ONNX node. */
QnOnnxDef *qn_put_same(QnOnnxPut *p, const QnNode *n, const char *op);
/* A reduction (its attributes are a QnReduceAttr), whose axes are an input from opset `axes_in` on.
 */
void qn_put_reduce(QnOnnxPut *p, const QnNode *n, const char *op, int64_t axes_in);
QnStatus qn_put_status(const QnOnnxPut *p);
QnStatus qn_put_fail(QnOnnxPut *p, QnStatus st); /* remembers it; returns it */
int64_t qn_put_opset(const QnOnnxPut *p);

#endif
