/* Geometry that attention and its gradient share: q (B,H,T,D), k (B,Hkv,S,D), v (B,Hkv,S,E); head h
 * reads keys and values of head h / (H/Hkv). */
#ifndef QN_OPS_HEADS_H
#define QN_OPS_HEADS_H

#include "ir/graph.h"

typedef struct QnHeadsAttr {
    bool causal;
    double scale; /* of q * k; 0 stands for 1 / sqrt(D) */
} QnHeadsAttr;

#define QN_HEADS_FIELDS                                                                            \
    { .name = "causal",                                                                            \
      .kind = QN_ATTR_BOOL,                                                                        \
      .offset = offsetof(QnHeadsAttr, causal),                                                     \
      .doc = "query t sees keys 0 .. t + S - T only" },                                            \
    {                                                                                              \
        .name = "scale", .kind = QN_ATTR_FLOAT, .offset = offsetof(QnHeadsAttr, scale), .min = 0,  \
        .max = 1e30, .doc = "factor of the scores; 0: 1 / sqrt(D)"                                 \
    }

typedef struct QnHeads {
    int64_t b, h, hkv, t, s, d, e;
    int64_t mask[4]; /* strides of the mask along (B,H,T,S); 0 where it is broadcast */
    bool causal;
    double scale;
} QnHeads;

/* Checks q, k, v (operands i, i+1, i+2) and the mask (operand m if it is given). */
QnStatus qn_heads_check(QnInfer *c, const char *op, int i, int m);
QnHeads qn_heads_make(const QnHeadsAttr *a, const QnShape *q, const QnShape *k, const QnShape *v,
                      const QnShape *mask);
/* Pairs of query and key that see each other, over all heads. */
double qn_heads_pairs(const QnHeads *h);
void qn_heads_args(const QnHeads *h, QnDeviceCall *c);
/* Score of query row (b,h,t) and key s in float64; -inf if they do not see each other. */
double qn_heads_score(const QnHeads *h, const double *q, const double *k, const double *mask,
                      int64_t row, int64_t s);

#endif
