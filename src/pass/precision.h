/* Mixed precision: a forward graph rewritten to compute matrix products in a 16-bit type, and to
 * keep activations in it. Made before differentiation, so that gradients follow by themselves: the
 * gradient of a cast is a cast.
 *
 * States stay float32 (they are the master weights); products read casts of them.
 * Micikevicius et al. 2018. */
#ifndef QN_PASS_PRECISION_H
#define QN_PASS_PRECISION_H

#include "ir/graph.h"

typedef struct QnPrecisionReport {
    int64_t low_nodes;  /* compute in the 16-bit type */
    int64_t high_nodes; /* kept in, or brought back to, float32: losses, powers, sums */
    int64_t f8_nodes;   /* products by 8-bit operands */
    int64_t casts;      /* inserted */
} QnPrecisionReport;

typedef struct QnPrecisionOptions {
    QnDtype
        low; /* f16, bf16 or f8e4m3fn, where `of` is NULL. f8e4m3fn: products of matrices that
              * qn_precision_takes_f8 by 8-bit operands (ops/f8.h), everything else as in bf16 */
    /* optional: one of these or f32 for a product (qn_precision_is_product) or an embedding */
    QnDtype (*of)(void *ctx, const QnNode *n);
    void *ctx;
    bool updates; /* 8 bits: what tensors hold at this run enters their histories (training) */
    QnValue *key; /* optional: i64 (step, seed); parameters are rounded to 16 bits by chance then,
                   * anew at each step (ops/cast_random.c) */
    QnValue *result; /* optional: the model's; what is computed from it is a loss, in float32 */
} QnPrecisionOptions;

/* A new graph that computes what g does, with products in 16 bits. What lies between them stays in
 * 16 bits where it loses nothing by it; norms, softmax and cross-entropy read and write 16 bits but
 * sum in float32; the rest works on float32. Graph outputs keep their dtypes. *map (from the new
 * graph's arena) gives new values by old ids. report may be NULL. */
QnStatus qn_precision(QnGraph *g, const QnPrecisionOptions *o, QnGraph **out, QnValue ***map,
                      QnPrecisionReport *report);

/* Whether nodes of this operator are what the pass chooses a dtype for. */
bool qn_precision_is_product(const QnOp *op);
bool qn_precision_takes_f8(const QnNode *n);

#endif
