/* Names of a graph that is being imported, and what they stand for. */
#ifndef QN_ONNX_SCOPE_H
#define QN_ONNX_SCOPE_H

#include "io/onnx.h"

typedef struct QnScope QnScope;
typedef struct QnScopeEntry {
    const char *name;
    QnItem *item; /* NULL: absent, or not made yet */
    int64_t uses; /* that are still to come */
    bool is_set;
} QnScopeEntry;

struct QnScope {
    QnScope *outer;        /* whose names are seen from here; NULL: none */
    const QnScope *caller; /* of a function's body: where it was called; for what is live */
    const QnOnnxFunction *function; /* whose attributes are meant by references; NULL: none */
    const QnOnnxAttr *attr;         /* of the call */
    int n_attr;
    const QnOnnxOpset *opset;
    int n_opset;
    QnScopeEntry *entry; /* open addressing; a power of two */
    int64_t n, cap;
};

/* Counts the uses of all names that the graph reads, its outputs for ever. */
QnStatus qn_scope_open(QnScope *s, const QnOnnxGraph *g, QnScope *outer);
void qn_scope_close(QnScope *s);
QnStatus qn_scope_set(QnScope *s, const char *name, QnItem *item);
/* A further use of a name, beyond what the graph says. */
QnStatus qn_scope_hold(QnScope *s, const char *name);
/* false: nobody has made it. *item may be NULL: an absent optional. */
bool qn_scope_find(const QnScope *s, const char *name, QnItem **item);
/* One use less of what the node reads here; items that nobody needs any more are let go. */
void qn_scope_used(QnScope *s, const QnOnnxDef *d);
/* An attribute as the node has it: references are replaced by what the call gave. false: left out.
 */
bool qn_scope_attr(const QnScope *s, const QnOnnxAttr *a, QnOnnxAttr *out);

#endif
