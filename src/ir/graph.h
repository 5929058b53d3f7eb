/* The graph: nodes in a list that is always in topological order, joined by values. What builds
 * models is in quern/graph.h; here is what operators and passes need beside it.
 *
 * Ownership: everything a graph holds lives in its arena; qn_graph_free frees it whole. Values and
 * nodes are borrowed pointers, valid until then. A graph is used by one thread at a time; several
 * graphs in several threads are independent.
 *
 * Builders are sticky: after a failure every builder returns the graph's poison value, and
 * qn_graph_check reports the first cause once. Passing a poison or NULL value is harmless. */
#ifndef QN_IR_GRAPH_H
#define QN_IR_GRAPH_H

#include "base/mem.h"
#include "ir/op.h"
#include "quern/graph.h"

struct QnStr; /* base/str.h */

struct QnValue {
    QnNode *node; /* that computes it */
    int index;    /* which of its outputs */
    QnType type;
    int64_t id;       /* dense, 0 .. graph->n_values-1; renumbered by qn_graph_number */
    QnValue *forward; /* replaced by this one, until qn_graph_sweep */
};

struct QnNode {
    const QnOp *op;
    const void *attr; /* of op->attr_bytes, never NULL when attr_bytes > 0; immutable */
    int n_in, n_out;
    QnValue **in;
    QnValue *out;     /* array of n_out */
    const char *name; /* scope path or file's node name; may be NULL */
    int64_t id;       /* dense, in list order after qn_graph_number */
    QnNode *prev, *next;
    int mark; /* scratch of the pass that runs */
};

typedef struct QnOutput {
    const char *name;
    QnValue *value;
} QnOutput;

struct QnGraph {
    QnArena *arena;
    QnNode *first, *last;
    int64_t n_nodes, n_values;
    QnOutput *outputs;
    int64_t n_outputs, cap_outputs;
    struct QnSymbols *symbols; /* ir/symbol.c */
    QnValue *poison;
    QnNode *cursor;      /* emit before this node; NULL: at the end */
    QnError error;       /* first cause; code QN_OK while sound */
    char scope[256];     /* "layer1.conv" */
    int64_t next_stream; /* random streams handed out */
};

/* Marks the graph failed with this thread's last error; returns the poison value. */
QnValue *qn_graph_poison(QnGraph *g);
bool qn_value_is_poison(const QnValue *v);

/* Emits a node; NULL if the graph is (or thereby becomes) failed. attr is copied, strings, data
 * and bodies it points to included; NULL means defaults. */
QnNode *qn_emit(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in);
/* The first output of a node emitted with these inputs, or poison. */
QnValue *qn_emit0(QnGraph *g, const QnOp *op, const void *attr);
QnValue *qn_emit1(QnGraph *g, const QnOp *op, const void *attr, QnValue *a);
QnValue *qn_emit2(QnGraph *g, const QnOp *op, const void *attr, QnValue *a, QnValue *b);
QnValue *qn_emit3(QnGraph *g, const QnOp *op, const void *attr, QnValue *a, QnValue *b, QnValue *c);
QnValue *qn_emitn(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in);
/* Sets a node's name to scope + name. */
void qn_node_name(QnGraph *g, QnNode *n, const char *name);

/* The string attribute "name" of an input or state node; NULL: the operator has none. */
const char *qn_node_label(const QnNode *n);

/* ---- for emission (ir/build.c) and passes ---- */
void qn_graph_link(QnGraph *g, QnNode *n); /* links at the cursor and numbers */
/* Arity and output types of a node with these inputs (NULL: absent), into c->n_out, c->out. */
QnStatus qn_graph_infer(QnGraph *g, const QnOp *op, const void *attr, QnValue *const *in, int n_in,
                        QnInfer *c);
/* All uses of `old` become uses of `new` at the next sweep; types must agree. */
void qn_value_replace(QnValue *old, QnValue *replacement);
/* Follows forwards. */
QnValue *qn_value_resolve(QnValue *v);
/* Applies replacements to inputs and outputs and renumbers. */
void qn_graph_sweep(QnGraph *g);
void qn_graph_remove(QnGraph *g, QnNode *n); /* its values must be unused */
void qn_graph_number(QnGraph *g);
/* Moves n to stand before `before` (NULL: at the end). */
void qn_graph_move(QnGraph *g, QnNode *n, QnNode *before);
/* New nodes go before `before` until the next call; NULL: to the end. */
void qn_graph_set_cursor(QnGraph *g, QnNode *before);
/* Uses of every value, outputs of the graph counted; array of n_values from the graph's arena;
 * NULL: out of memory. Call qn_graph_number first if nodes were added. */
int32_t *qn_graph_uses(QnGraph *g);
/* Deep copy into a new graph; *map (optional, from the new graph's arena) gives new values by old
 * ids. NULL on failure. */
QnGraph *qn_graph_clone(QnGraph *g, QnValue ***map);
/* Copies one node of another graph, its inputs given. */
QnNode *qn_graph_copy_node(QnGraph *g, const QnNode *n, QnValue *const *in);

#define QN_GRAPH_EACH(g, n) for (QnNode *n = (g)->first; n; n = n->next)

/* A deep copy of an attribute struct into the arena; dims pass through `dim` if given. */
void *qn_attr_copy(QnArena *arena, const QnOp *op, const void *attr,
                   QnDim (*dim)(void *ctx, QnDim d), void *ctx);

/* ---- symbolic dims (ir/symbol.c) ---- */
QnDim qn_dim_add(QnGraph *g, QnDim a, QnDim b);
QnDim qn_dim_sub(QnGraph *g, QnDim a, QnDim b);
QnDim qn_dim_mul(QnGraph *g, QnDim a, QnDim b);
QnDim qn_dim_div(QnGraph *g, QnDim a, QnDim b);                         /* floor; concrete b > 0 */
QnDim qn_shape_product(QnGraph *g, const QnShape *s, int from, int to); /* dims [from,to) */
/* A count, or an expression over this graph's symbols. */
bool qn_dim_is_valid(const QnGraph *g, QnDim d);
/* "B", "(B*4)", "28". */
const char *qn_dim_text(const QnGraph *g, QnDim d, char buf[64]);
/* Inverse of qn_dim_text. */
QnStatus qn_dim_parse(QnGraph *g, const char *text, const char **end, QnDim *out);
/* The text whole, however long: qn_dim_text may cut it. Adds to *out. */
QnStatus qn_dim_print(const QnGraph *g, QnDim d, struct QnStr *out);
/* Expressions over symbols that the graph knows; they are the dims -1 to -n. */
int64_t qn_dim_count(const QnGraph *g);
/* Gives a graph without symbols those of another, with the same numbers. */
QnStatus qn_dims_copy(const QnGraph *from, QnGraph *to);
#endif
