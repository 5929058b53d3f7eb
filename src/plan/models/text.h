/* What language models share: rotary positions, attention with a cache, feed-forward nets, experts.
 */
#ifndef QN_PLAN_MODELS_TEXT_H
#define QN_PLAN_MODELS_TEXT_H

#include "plan/models.h"

/* A number as the name of what is built until the pop. */
void qn_text_push(QnNet *net, const char *prefix, int64_t number);
/* Length of the last axis, 1 where there is none. */
int64_t qn_text_width(const QnValue *x);
/* The last of the tokens of x (B,T,C), as (B,C). */
QnValue *qn_text_last(QnGraph *g, QnValue *x);

/* (B,T,H*D) to (B,H,T,D), and back. */
QnValue *qn_text_split_heads(QnGraph *g, QnValue *x, int64_t heads);
QnValue *qn_text_join_heads(QnGraph *g, QnValue *x);

/* Angles of positions, as cosines and signed sines (T,1,D), for all layers. */
typedef struct QnAngles {
    QnValue *cosines, *sines;
} QnAngles;
QnAngles qn_text_angles(QnNet *net, int64_t first, int64_t tokens, int64_t width);
/* x (B,T,H,D) turned by them (Su et al. 2021). */
QnValue *qn_text_rotate(QnGraph *g, QnValue *x, const QnAngles *a);

typedef struct QnSelfSpec {
    int64_t heads, kv_heads, head; /* kv_heads 0: heads; head 0: width / heads */
    bool bias_in, bias_out;
    bool norm;              /* RMS norms of each head's queries and keys */
    const QnAngles *angles; /* NULL: positions are not turned */
    const QnStepInput *in;  /* of generation, else NULL */
    int64_t adapter;        /* rank of what is added to the products and trained alone; 0: none */
    QnValue *order; /* i64 (B): which sequence each one goes on from, where several answers are
                     * followed: what is kept is copied so; NULL: each from itself */
} QnSelfSpec;
/* What is kept, x (B,…), in that order. */
QnValue *qn_text_reorder(QnGraph *g, QnValue *x, QnValue *order);
/* Causal self-attention of x (B,T,C). */
QnValue *qn_text_self(QnNet *net, const char *name, QnValue *x, const QnSelfSpec *spec);

/* down(act(gate(x)) * up(x)), the first two in one product. */
QnValue *qn_text_gated(QnNet *net, const char *name, QnValue *x, int64_t hidden, bool bias);

typedef struct QnExpertSpec {
    int64_t experts, active, hidden; /* active: of each token */
    bool bias;
} QnExpertSpec;
/* Gated nets of which each token goes through a few (Shazeer et al. 2017), x (B,T,C). Work is that
 * of evenly chosen experts: with few tokens some get none, and their weights are not read. */
QnValue *qn_text_experts(QnNet *net, const char *name, QnValue *x, const QnExpertSpec *spec);

#endif
