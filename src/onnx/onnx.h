/* ONNX models: run, checked, and turned into our graphs. */
#ifndef QN_ONNX_ONNX_H
#define QN_ONNX_ONNX_H

#include "base/str.h"
#include "io/onnx.h"
#include "quern/nn.h"
#include "rt/device.h"

/* Nodes that are not supported: all of them, not the first. */
typedef struct QnOnnxProblems {
    QnStr text; /* a line each: node, operator, opset, and what would be near */
    int64_t n;
} QnOnnxProblems;

/* What a model may take, whatever its file asks for. */
typedef struct QnOnnxLimits {
    int64_t bytes; /* of a value, and of all that lives while importing; 0: the machine's memory */
    int64_t nodes; /* run, turns of loops counted too; 0: 2^28 */
} QnOnnxLimits;

/* Runs the model: in[i] goes to input i of its graph, NULL where an initialiser serves; out[i] gets
 * output i, with all elements known, in the arena. EUNSUPPORTED: `problems` (may be NULL) lists all
 * that is not supported. */
QnStatus qn_onnx_run(const QnOnnxModel *m, QnDevice *d, QnItem *const *in, QnArena *arena,
                     QnItem **out, QnOnnxProblems *problems);
typedef struct QnOnnxRunOptions {
    QnOnnxLimits limits;
    const QnChoices *choices; /* measured kernels; NULL: ranks decide */
    bool plain; /* no pass but lowering: each value is computed as its node says, one by one */
} QnOnnxRunOptions;
QnStatus qn_onnx_run_with(const QnOnnxModel *m, QnDevice *d, QnItem *const *in, QnArena *arena,
                          QnItem **out, QnOnnxProblems *problems, const QnOnnxRunOptions *o);

/* A model whose outputs are all values that its nodes make, in the order of the nodes, then outputs
 * that no node makes. It shares everything else with the one that it was made of. */
typedef struct QnOnnxExposed {
    QnOnnxModel model;
    QnOnnxGraph graph;
    const int64_t *node; /* that makes output i; -1: none */
} QnOnnxExposed;
/* Lists lie in the arena; *out points into itself and must stay where it is. */
QnStatus qn_onnx_expose(const QnOnnxModel *m, QnArena *arena, QnOnnxExposed *out);

/* What became of a node while a model was imported. */
typedef enum QnOnnxFate {
    QN_ONNX_MADE,
    QN_ONNX_REFUSED, /* not supported; `why` says why */
    QN_ONNX_OPEN,    /* needs elements that only a run can tell */
    QN_ONNX_PASSED,  /* hangs on one of those */
} QnOnnxFate;
typedef struct QnOnnxSeen {
    int64_t number; /* of the node in the model's graph */
    QnOnnxFate fate;
    const char *why;     /* "", or a line's end with what is not supported */
    QnItem *const *out;  /* NULL: it was passed over; out[i] NULL: not made */
    const QnNode *first; /* what it became in the graph: this one and all after; NULL: nothing */
} QnOnnxSeen;

/* One graph with the model's inputs and outputs by their names. The model must outlive it and its
 * plans, which read the weights where they lie. EUNSUPPORTED also where it cannot
 * be one fixed graph. */
typedef struct QnOnnxImportOptions {
    /* By the number of the graph's input: its type, and if data is not NULL its elements, which are
     * then part of the graph, and no input of it is left. NULL: the file's dims and those below. */
    const QnTensor *const *given;
    const char *const *dim; /* names of the inputs' open dims (qn_onnx_dim_name), … */
    const int64_t *length;  /* … and what they are */
    int n_dim;
    int64_t batch; /* > 0: the first dim of every input of rank >= 1, whatever the file says */
    bool training; /* batch norm by the batch's statistics, dropout drops */
    bool states;   /* weights (floats of the file) become states of their names, to be filled by
                    * qn_onnx_fill; otherwise constants */
    QnOnnxLimits limits;
    /* optional: called after each node of the model's graph, also of one that is then refused; what
     * it is given is valid until it returns. A failure ends the import. */
    QnStatus (*seen)(void *ctx, const QnOnnxSeen *s);
    void *seen_ctx;
} QnOnnxImportOptions;
QnStatus qn_onnx_import(const QnOnnxModel *m, QnDevice *d, const QnOnnxImportOptions *o,
                        QnGraph **out, QnOnnxProblems *problems);

/* The type of the graph's input of that number, under these options. */
/* What an open dim of an input is called: "batch", as the file says, or, where it says nothing,
 * "INPUT:AXIS" in buf. */
enum { QN_ONNX_DIM_NAME_BYTES = 160 };
const char *qn_onnx_dim_name(const QnOnnxInfo *input, int axis, char buf[QN_ONNX_DIM_NAME_BYTES]);
/* Lines of problems as one line: "a; b". */
void qn_onnx_join_problems(const char *lines, QnStr *out);
/* What a tensor is declared to be: "f32[batch,3,?]". */
enum { QN_ONNX_DECLARED_TEXT_BYTES = 600 };
const char *qn_onnx_declared_text(const QnOnnxType *t, char buf[QN_ONNX_DECLARED_TEXT_BYTES]);
/* Whether t, given for an input that is a tensor, is what the file declares: element type, number
 * of dims, and all dims that are numbers there. */
QnStatus qn_onnx_check_tensor(const QnOnnxInfo *info, const QnTensor *t);
QnStatus qn_onnx_input_type(const QnOnnxModel *m, int64_t input, const QnOnnxImportOptions *o,
                            QnType *out);

/* A model as part of a net: `output`, any value of its graph, computed from x at `input`. Weights
 * become states of their names: the floats of the file with at least one axis (single numbers stay
 * constants; tensors with an element beyond +-9999, as masks have, are not trained). Those that a
 * gradient reaches and no pattern of `freeze` (as in fnmatch) names become the net's parameters;
 * weight decay takes in those of two axes and more. BatchNormalization and Dropout do as the net
 * trains or not; where `freeze` names the statistics of a BatchNormalization, they are taken and
 * kept in training too. A batch that the file holds in the shapes of Reshape nodes becomes x's. The
 * model must outlive the graph and its plans. EUNSUPPORTED: `problems` (may be NULL) lists all
 * nodes that are not supported, or that no gradient goes through. */
typedef struct QnOnnxNetOptions {
    const char *input, *output;
    const char *const *freeze;
    int64_t n_freeze;
    const char *head; /* weights whose names begin so are fresh, and never frozen; NULL: none */
} QnOnnxNetOptions;
QnStatus qn_onnx_net(QnNet *net, const QnOnnxModel *m, QnDevice *d, const QnOnnxNetOptions *o,
                     QnValue *x, QnValue **y, QnOnnxProblems *problems);
bool qn_onnx_is_frozen(const QnOnnxNetOptions *o, const char *name);

/* What a loss takes in place of `output`: what goes into the Softmax, LogSoftmax or Sigmoid that
 * ends the model, *last then being its node; else `output` itself, *last NULL. */
const char *qn_onnx_logits(const QnOnnxModel *m, const char *output, const QnOnnxDef **last);
/* The last Gemm, MatMul (with its Add) or 1x1 Conv before o->output becomes a fresh one with so
 * many outputs, its weights "head.weight" and "head.bias"; the model then ends where it gives
 * logits. Sets o->output and o->head. EUNSUPPORTED says what was found instead. */
QnStatus qn_onnx_new_head(QnOnnxModel *m, QnOnnxNetOptions *o, int64_t n, uint64_t seed);
/* The weights of the store, averaged ones first, in place of the file's. */
QnStatus qn_onnx_take(QnOnnxModel *m, const QnStore *store);

/* Weights that ConstantOfShape nodes make become random initialisers; *count: how many. */
QnStatus qn_onnx_randomize(QnOnnxModel *m, uint64_t seed, int64_t *count);
/* The weights of the file into the store's states of their names. */
QnStatus qn_onnx_fill(const QnOnnxModel *m, QnStore *store);

/* Writes a graph as an ONNX model: inputs and outputs by their names, states as initialisers with
 * the store's values (NULL: the graph has none). The graph is not changed. EUNSUPPORTED names the
 * node that has no ONNX form. */
enum { QN_ONNX_OPSET_LEAST = 17, QN_ONNX_OPSET_NEWEST = 23 };
typedef struct QnOnnxExportOptions {
    int64_t opset;    /* 0: the newest */
    const char *name; /* of the graph; NULL: "quern" */
    bool outside;     /* weights in PATH.data; over 2 GB always */
    bool fold;        /* batch norms go into convolutions, constants are computed */
} QnOnnxExportOptions;
QnStatus qn_onnx_export(QnGraph *g, const QnStore *store, const QnOnnxExportOptions *o,
                        const char *path);

#endif
