/* Bodies: groups of maps as an attribute of the operators that fusion makes. */
#ifndef QN_OPS_BODY_H
#define QN_OPS_BODY_H

#include "ir/graph.h"

/* Whether the body is sound for operands of these types: every instruction a map whose dtype is
 * what the operator makes of its operands'. `op` names the node in errors. */
QnStatus qn_body_check(const char *op, QnGraph *g, const QnBody *b, const QnType *const *in,
                       int n_in);
/* The dtype of its output number i. */
QnDtype qn_body_dtype(const QnBody *b, int i);
/* Flops of one element. */
double qn_body_flops(const QnBody *b);
/* The maps as nodes again: values of the body's outputs. NULL in `out`, if the graph is failed. */
void qn_body_emit(QnGraph *g, const QnBody *b, QnValue *const *in, QnValue **out);

/* The body attribute of a fused node of any kind; NULL: another operator. */
const QnBody *qn_body_of(const QnNode *n);

/* A map as a body of one instruction. */
typedef struct QnBodyOne {
    QnBodyInstr instr;
    QnBody body;
    int out;
} QnBodyOne;
/* The body of a map (made in `one`) or a group of maps; NULL: the node is neither. */
const QnBody *qn_body_of_maps(const QnNode *n, QnBodyOne *one);

/* The body with operand `first` in front of the others; NULL: out of memory. */
const QnBody *qn_body_with_first(QnArena *arena, const QnBody *b, int first);

#endif
