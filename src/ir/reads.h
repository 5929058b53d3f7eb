/* Whose memory a value is, and who reads that memory. */
#ifndef QN_IR_READS_H
#define QN_IR_READS_H

#include "ir/graph.h"

/* The node's output is its operand's memory. */
bool qn_reads_is_view(const QnNode *n);
/* The value whose memory v is, through views; the output of an assign is its value. */
const QnValue *qn_reads_root(const QnValue *v);

typedef struct QnRead {
    QnNode *node;
    int in; /* the input that is read */
} QnRead;

/* Reads of root id stand at list[start[id]] to list[start[id + 1]], in the order of the nodes and
 * of their inputs. A view reads nothing: those of its output do. */
typedef struct QnReads {
    const QnValue **root; /* by value id */
    int64_t *start;
    QnRead *list;
} QnReads;

/* The graph must be numbered, and in order. In the arena. */
QnStatus qn_reads_init(const QnGraph *g, QnArena *arena, QnReads *out);

#endif
