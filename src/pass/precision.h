/* Mixed precision: a forward graph rewritten to compute matrix products in a 16-bit type. Made
 * before differentiation, so that gradients follow by themselves: the gradient of a cast is a cast.
 *
 * States stay float32 (they are the master weights); each is cast once where products read it.
 * Micikevicius et al. 2018. */
#ifndef QN_PASS_PRECISION_H
#define QN_PASS_PRECISION_H

#include "ir/graph.h"

typedef struct QnPrecisionReport {
    int64_t low_nodes;  /* compute in the 16-bit type */
    int64_t high_nodes; /* kept in, or brought back to, float32: norms, softmax, losses, powers */
    int64_t casts;      /* inserted */
} QnPrecisionReport;

/* A new graph that computes what g does, with products in `low` (f16 or bf16). Operators that sum
 * many terms or take powers work on float32; the rest follow their inputs. Graph outputs keep their
 * dtypes. *map (from the new graph's arena) gives new values by old ids. report may be NULL. */
QnStatus qn_precision(QnGraph *g, QnDtype low, QnGraph **out, QnValue ***map,
                      QnPrecisionReport *report);

#endif
