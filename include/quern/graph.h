/* Graphs: building, checking, text, gradients, passes. quern/ops.h has the operators.
 *
 * A graph owns everything in it: values and nodes are borrowed pointers, valid until
 * qn_graph_free, and belong to that graph alone. Nodes stay in the order of their making, which is
 * an order they can run in.
 *
 * Builders are sticky: after a failure every one of them returns a value that stands for it, so
 * that a model is written without checks; qn_graph_check then reports the first cause, once. */
#ifndef QUERN_GRAPH_H
#define QUERN_GRAPH_H

#include <quern/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QnGraph QnGraph;
typedef struct QnNode QnNode;   /* one use of an operator */
typedef struct QnValue QnValue; /* one output of a node */
typedef struct QnOp QnOp;       /* an operator; static storage */
typedef struct QnBody QnBody;   /* a fused group of maps; the compiler's own */

/* NULL: out of memory. */
QN_API QnGraph *qn_graph_new(void);
QN_API void qn_graph_free(QnGraph *g);
/* QN_OK, or the first failure (which becomes this thread's last error). */
QN_API QnStatus qn_graph_check(QnGraph *g);
/* Checks order, arity, types and attributes of every node. An error names the node. */
QN_API QnStatus qn_graph_verify(QnGraph *g);

/* Names a value for the caller of a plan; a second one of that name replaces the first. */
QN_API QnStatus qn_graph_output(QnGraph *g, const char *name, QnValue *v);
QN_API QnValue *qn_graph_output_find(const QnGraph *g, const char *name); /* or NULL */

/* Names for nodes: push("layer1"), push("conv") makes "layer1.conv" the name of those that follow,
 * in errors and in text. */
QN_API void qn_scope_push(QnGraph *g, const char *name);
QN_API void qn_scope_pop(QnGraph *g);

/* ---- values ---- */

QN_API const QnType *qn_value_type(const QnValue *v); /* never NULL */
/* Output i of a node: of a builder that returns a node because it has several. */
QN_API QnValue *qn_node_out(QnGraph *g, QnNode *n, int i);
QN_API const QnOp *qn_value_op(const QnValue *v); /* that computes it */
QN_API const char *qn_op_name(const QnOp *op);
QN_API const char *qn_op_doc(const QnOp *op); /* one line */
/* NULL: no operator has that name. */
QN_API const QnOp *qn_op_find(const char *name);
/* All operators, sorted by name; static storage. */
QN_API const QnOp *const *qn_op_all(int *n);

/* ---- dims that are known later ---- */

/* The dim named so, e.g. "batch"; the same name gives the same dim. */
QN_API QnDim qn_dim_symbol(QnGraph *g, const char *name);
/* A copy of g with every symbol set to a number and all types inferred again: what plans need.
 * Symbols left out are an error that lists them. */
QN_API QnStatus qn_graph_bind(QnGraph *g, const char *const *names, const int64_t *values, int n,
                              QnGraph **out);

/* ---- text ---- */

/* The graph as text, to be freed by qn_free:
 *   %0 = input() {name="x", dims=[8,10]} : f32[8,10]
 *   %1 = softmax(%0) {axis=1} "head" : f32[8,10]
 *   output "probabilities" = %1                                                             */
QN_API QnStatus qn_graph_print_text(QnGraph *g, char **text);
/* Finds an operator by name, NULL where there is none: qn_op_find, or one's own choice. */
typedef const QnOp *QnOpFind(const char *name);
/* Reads n bytes of such text. An error names line and column. Takes memory in proportion to the
 * text alone, whatever it says. */
QN_API QnStatus qn_graph_parse(const char *text, size_t n, QnOpFind *find, QnGraph **out);

/* ---- gradients ---- */

/* out[i] = d sum(y) / d wrt[i], of wrt[i]'s shape and dtype; zeros where y does not depend on it.
 * Gradients are nodes of the same graph, so that their gradients are the same call again. An
 * operator on the way without a gradient is an error that lists all such nodes; the graph is then
 * failed. */
QN_API QnStatus qn_grad(QnGraph *g, QnValue *y, QnValue *const *wrt, int n, QnValue **out);
/* The same from a given dy of y's type (NULL: ones). */
QN_API QnStatus qn_grad_from(QnGraph *g, QnValue *y, QnValue *dy, QnValue *const *wrt, int n,
                             QnValue **out);

/* ---- passes ---- */

typedef enum QnLevel {
    QN_O0, /* only what a device needs: composites are lowered */
    QN_O1, /* what never hurts */
    QN_O2, /* everything */
} QnLevel;

typedef struct QnPipelineReport {
    int64_t nodes_before, nodes_after;
    int64_t fused_groups, fused_maps;
    double fused_bytes_saved; /* reads and writes of memory that fusion removes */
    int64_t recomputed_nodes; /* clones that stand before late uses */
    int64_t peak_bytes_before,
        peak_bytes_after; /* of recompute and schedule; as the passes count it */
    bool scheduled;       /* a new order was taken */
    int64_t relayouts;    /* turns of images put in */
} QnPipelineReport;

#define QN_RECOMPUTE_SHARE 0.02 /* what devices and recipes ask for where nobody says otherwise */

typedef struct QnPipelineOptions {
    QnLevel level;
    const char *off;   /* names of passes to leave out, "fuse,cse"; NULL: none */
    bool verify;       /* check the graph after each pass (always done in debug builds) */
    bool fast_math;    /* identities that NaN and infinity break, such as x*0 = 0 */
    bool keep_inputs;  /* input nodes stay though nothing uses them */
    bool keep_states;  /* state nodes likewise */
    int64_t fold_most; /* elements of a result that is computed at compile time; 0: 4,096 */
    /* optional: whether a composite node stays as it is, because the device has a kernel for it.
     * NULL: those with a reference stay. */
    bool (*keep)(void *ctx, const QnNode *n);
    void *keep_ctx;
    /* optional: whether the device runs `one`, made of `part` and what follows it, by as good a
     * kernel as `part` alone. Called with keep_ctx. NULL: products take in no maps. */
    bool (*prefers)(void *ctx, const QnNode *one, const QnNode *part);
    /* optional: whether the device has a tuned kernel for a node in the layouts it has now. NULL:
     * images stay in the plain layout. */
    bool (*tuned)(void *ctx, const QnNode *n);
    void *tuned_ctx;
    /* optional: called with the text of the graph after each pass, and first with "input" */
    void (*dump)(void *ctx, const char *pass, const char *text);
    void *dump_ctx;
    int64_t memory_budget_bytes; /* recompute until the peak fits; 0: as the next two say */
    /* Recompute what lowers the peak while it adds at most this share to the time of a step; 0: do
     * not. Time is what each node's operations or bytes take on a device that does `balance`
     * floating-point operations for each byte that it moves. */
    double recompute_share, balance;
    QnPipelineReport *report; /* optional */
} QnPipelineOptions;

/* What a graph goes through before it is planned: composites are lowered to what the device has,
 * then what `level` says. An error names the pass; the graph is then no longer of use. A name in
 * `off` that no pass has is an error. NULL: level 2, nothing else. */
QN_API QnStatus qn_pipeline_run(QnGraph *g, const QnPipelineOptions *o);

#ifdef __cplusplus
}
#endif

#endif
