/* Evaluates a graph by the operators' float64 references: slow and right. The oracle of tests, and
 * the evaluator of constant folding. Types must be concrete. */
#ifndef QN_IR_EVAL_H
#define QN_IR_EVAL_H

#include "ir/graph.h"

typedef struct QnEval QnEval;

/* round: results are rounded to their dtype, as a real run would store them (otherwise everything
 * but integers and bools stays float64). The graph must outlive it and not change. NULL: no memory.
 */
QnEval *qn_eval_new(QnGraph *g, bool round);
void qn_eval_free(QnEval *e);
/* Gives a value its elements (copied), e.g. an input or a state. Forgets all computed values. */
QnStatus qn_eval_set(QnEval *e, const QnValue *v, const double *elements);
/* Computes v and what it needs. *elements is borrowed until the next set or free. An error names
 * the node; a leaf without elements is one. */
QnStatus qn_eval_get(QnEval *e, const QnValue *v, const double **elements);

/* Whether the elements of input `input` (-1: of an output) of type t are bit patterns to the node
 * when it is run with i64_bits: of integers of 64 bits, which doubles cannot hold. */
bool qn_eval_is_bits(const QnNode *n, const QnType *t, int input);

/* One node: in[i] (NULL where absent) to out[i], which the caller has allocated. Runs .map, .ref
 * or .lower, whichever the operator has. */
QnStatus qn_eval_node(const QnNode *n, const double *const *in, double *const *out, bool i64_bits);

#endif
