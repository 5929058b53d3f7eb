/* The importer: walks a model's nodes and emits our graph. Shapes are concrete from the start, so
 * that shape arithmetic is constant and folds away. Where a node needs elements that only a run can
 * tell (a loop's condition, the shape of what NonZero finds), and the inputs have been given, the
 * graph so far is run, what is still needed of it becomes constants, and a new graph begins;
 * without given inputs that is an error. So a model without such nodes is one graph and one plan.
 */
#ifndef QN_ONNX_IMPORTER_H
#define QN_ONNX_IMPORTER_H

#include "base/str.h"
#include "onnx/onnx.h"
#include "onnx/scope.h"

typedef struct QnHeld { /* items that a control-flow node keeps beside the scopes */
    QnItem *const *item;
    int64_t n;
    struct QnHeld *outer;
} QnHeld;

typedef struct QnImporter {
    const QnOnnxModel *model;
    QnDevice *device;
    QnArena *arena;      /* items */
    QnOnnxBlocks blocks; /* their elements and lists */
    QnGraph *graph;
    int64_t epoch;      /* number of the graph */
    int64_t round;      /* of walks over live items */
    int64_t most_bytes; /* of a value, and of all that is made while importing */
    int64_t n_run, most_nodes;
    QnItem *const *fed; /* what the model's inputs were given */
    int64_t n_fed;
    bool is_fed; /* the elements of inputs are known */
    bool plain;
    bool training, inference; /* BatchNormalization and Dropout; neither: as the file says */
    const QnOnnxImportOptions *options; /* of an import; NULL: a run */
    bool has_open;                      /* a node needed elements that only a run can tell */
    QnItem *const *made;                /* outputs of the last node; NULL: it was passed over */
    int64_t batch_from, batch_to; /* of Reshape's constants (onnx/batch.c); 0: as the file says */
    const QnChoices *choices;     /* of kernels, for runs; or NULL */
    QnScope *scope;               /* the innermost */
    QnHeld *held;
    int depth;      /* of graphs in graphs */
    QnStr problems; /* nodes that are not supported, a line each */
    int64_t n_problems;
} QnImporter;

/* Opens the model's outermost scope, its initialisers set. On failure too, it is to be closed.
 * limits may be NULL. */
QnStatus qn_importer_open(QnImporter *m, QnScope *s, const QnOnnxModel *model, QnDevice *d,
                          const QnOnnxLimits *limits);
/* The same over a graph of the caller's, to be taken out of *m before it is closed. */
QnStatus qn_importer_enter(QnImporter *m, QnScope *s, const QnOnnxModel *model, QnDevice *d,
                           const QnOnnxLimits *limits, QnGraph *g);
void qn_importer_close(QnImporter *m, QnScope *s);
void qn_importer_limit(QnImporter *m, const QnOnnxLimits *limits);
/* Before each node and each turn of a loop: counts, and cuts where the graph has grown long. */
QnStatus qn_importer_step(QnImporter *m);
/* The values of all nodes behind `last` (NULL: of all): none takes more than it may. */
QnStatus qn_importer_check(QnImporter *m, const QnNode *last);
/* Runs the graph so far for all that is still needed, and for `also` (may be NULL); frees what is
 * not; a new graph begins. */
QnStatus qn_importer_cut(QnImporter *m, QnItem *also);
/* A given input is what the model declares. */
QnStatus qn_importer_check_input(const char *name, const QnOnnxType *t, const QnItem *item);
/* A copy that needs nothing but its arena. */
QnStatus qn_importer_take(QnArena *to, const QnItem *from, QnItem **out);
/* Files made for one batch hold it in the shapes of Reshape nodes: where such a node reshapes what
 * hangs on the inputs, batch_from at the shape's front becomes batch_to. */
QnStatus qn_importer_rebatch(QnImporter *m, QnOnnxNode *n);
/* The error of n_problems > 0; the list goes to *out, if there is one. */
QnStatus qn_importer_refuse(QnImporter *m, QnOnnxProblems *out);
/* Made by a node that is not supported. */
bool qn_importer_is_unknown(const QnItem *item);
/* The items' elements, computed. */
QnStatus qn_importer_force(QnImporter *m, QnItem *item, const char *why);
/* The same for all that an item holds. */
QnStatus qn_importer_finish(QnImporter *m, QnItem *item);
/* Runs the nodes of an open scope. */
QnStatus qn_importer_nodes(QnImporter *m, const QnOnnxGraph *g);
/* Nodes that only move elements, on strings: is_move, then number replaces the strings of the
 * inputs by numbers, the node runs, and name makes strings of its outputs. */
typedef struct QnTextPool {
    const QnText *text;
    int64_t n;
} QnTextPool;
bool qn_text_is_move(const QnOnnxNode *n);
QnStatus qn_text_number(QnOnnxNode *n, QnTextPool *out);
QnStatus qn_text_name(QnOnnxNode *n, const QnTextPool *pool);
/* A graph inside a node, which sees the names around it: in[i] to its inputs, its outputs to out.
 */
QnStatus qn_importer_graph(QnImporter *m, const QnOnnxGraph *g, QnItem *const *in, int64_t n_in,
                           QnItem **out);
/* A tensor item of a known tensor. NULL: out of memory. */
QnItem *qn_importer_item(QnImporter *m, const char *name, const QnTensor *known);

/* Computes the items' elements by running their graph; a new one begins. */
QnStatus qn_compute(QnImporter *m, QnItem **items, int64_t n);
/* The same for one value that hangs on constants alone; *is_constant false: it does not. */
QnStatus qn_compute_constant(QnImporter *m, QnItem *item, bool *is_constant);

#endif
