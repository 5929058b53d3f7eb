/* How long values live, as passes need to know it: an estimate of what rt/blocks.h decides when a
 * plan is made. Views and assigns lie in their operand's memory, updates of states in the states,
 * an elementwise result over an operand of its size that dies there. Workspaces are not counted. */
#ifndef QN_PASS_LIVE_H
#define QN_PASS_LIVE_H

#include "ir/reads.h"

/* The largest sum of bytes alive at one node in the list's order; types must be concrete, else the
 * answer is -1. *at, if given, becomes that node. Numbers the graph. */
QnStatus qn_live_peak(QnGraph *g, int64_t *bytes, QnNode **at);

/* Who uses a value: users of value id stand at users[start[id]] to users[start[id + 1]], in order,
 * a node as often as it reads it. Outputs of the graph are not among them. In tmp. */
typedef struct QnUsers {
    int64_t *start;
    QnNode **users;
    bool *is_output; /* by value id */
} QnUsers;
QnStatus qn_live_users(QnGraph *g, QnArena *tmp, QnUsers *out);

/* Sets mark to 1 in n and in all nodes that need it, directly or by others, and to 0 elsewhere. Who
 * needs nothing but its output number `but` (-1: none) does not count. */
void qn_live_mark_after(QnGraph *g, const QnNode *n, int but);

/* Puts the list into topological order again, with as few moves as it takes. Fails on a cycle. */
QnStatus qn_live_restore_order(QnGraph *g);

#endif
