/* What the passes over batch norms share. */
#ifndef QN_PASS_NORMS_H
#define QN_PASS_NORMS_H

#include "pass/pipeline.h"

/* Puts `stats`, the batch_norm_stats before `norm`, and maps behind it in the place of the batch
 * norm; sweeps the graph. */
QnStatus qn_norm_split(QnGraph *g, QnNode *norm, QnNode *stats);

#endif
