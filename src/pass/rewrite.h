/* Rewriting by a table of rules, to a fixed point; and what rules share. */
#ifndef QN_PASS_REWRITE_H
#define QN_PASS_REWRITE_H

#include "pass/pipeline.h"

/* Replaces outputs of n by qn_rewrite_to, and returns whether it did. New nodes are emitted before
 * n and take its name. */
typedef bool QnRuleFn(QnGraph *g, QnNode *n, const QnPipelineOptions *o);

typedef struct QnRule {
    const QnOp *op; /* NULL: any operator */
    QnRuleFn *run;
} QnRule;

/* Applies the rules until none fires; dead nodes go. */
QnStatus qn_rewrite_run(QnGraph *g, const QnRule *rules, int n_rules, const QnPipelineOptions *o);

/* Output 0 of n becomes v, which must have its dtype and shape. Always true. */
bool qn_rewrite_to(QnGraph *g, QnNode *n, QnValue *v);

/* v is a `full` of this number. */
bool qn_rewrite_is_full(const QnValue *v, double number);

/* List attributes by name; NULL: the operator has none of that name. */
const QnInts *qn_rewrite_ints(const QnNode *n, const char *name);
bool qn_rewrite_bool(const QnNode *n, const char *name);

#endif
