/* Optimizer steps over a run of elements, one pass over memory. */
#ifndef QN_BACKEND_CPU_UPDATE_H
#define QN_BACKEND_CPU_UPDATE_H

#include "base/isa_list.h"
#include "base/compiler.h"

/* p: parameter, m and v: moments, g: gradient. Outputs may be the inputs of the same name. */
typedef struct QnUpdate {
    const float *p, *m, *v, *g;
    float *p1, *m1, *v1;
    float lr, decay, keep_m, keep_v; /* keep: share of a moment that is kept */
    float root;                      /* Adam: 1 / sqrt(1 - b2^t) */
    float eps, shrink;               /* shrink: AdamW's 1 - lr * decay */
    bool nesterov;
} QnUpdate;

typedef void QnUpdateFn(const QnUpdate *u, int64_t begin, int64_t end);

typedef struct QnUpdateFns {
    QnUpdateFn *sgd, *sgd_moment, *adam, *adagrad, *rmsprop, *rmsprop_moment;
} QnUpdateFns;

#define QN_X(name) extern const QnUpdateFns qn_update_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnUpdateFns *qn_update_find(const char *isa);

#endif
