/* ONNX nodes as the operators' mappings see them. An operator's file says which ONNX operators it
 * stands for (QnOp.onnx); src/onnx reads the files and calls what is found there.
 *
 * Shapes are always concrete while a model is imported. A mapping that must know an input's
 * elements (a shape, an axis, a number of repetitions) asks for them by qn_onnx_known; where they
 * are not known yet it returns what QN_ONNX_NEED gives, and is called again once they are. */
#ifndef QN_OPS_ONNX_H
#define QN_OPS_ONNX_H

#include "ir/graph.h"
#include "ops/onnx_blocks.h"

typedef struct QnText { /* bytes of a string tensor's element; not NUL-terminated */
    const char *s;
    size_t n;
} QnText;

/* A tensor in the host's memory: row-major elements of type.dtype, or strings. */
typedef struct QnTensor {
    QnType type; /* of strings: only the shape counts */
    const void *data;
    const QnText *text; /* strings; NULL: numbers */
} QnTensor;

/* What a name of a model stands for. */
typedef enum QnItemKind {
    QN_ITEM_TENSOR,
    QN_ITEM_SEQUENCE,
    QN_ITEM_OPTIONAL, /* n is 0 or 1 */
} QnItemKind;

typedef struct QnItem QnItem;
struct QnItem {
    QnItemKind kind;
    QnValue *value; /* in the graph of number `epoch`; NULL: not there yet */
    int64_t epoch;
    const QnTensor *known; /* its elements; NULL: only the graph can tell */
    bool is_model;         /* an initialiser: its elements last as long as the model */
    bool is_state;         /* a weight that lives in a store: a state of this name … */
    bool is_statistic;     /* … that runs keep, not an optimizer */
    bool is_frozen;        /* … that nothing changes */
    const char *prefix;    /* … before its name, where it is trained ("ema."); or NULL */
    bool is_fed;      /* known now, but another run may bring others: an input, not a constant */
    const char *name; /* for errors; never NULL */
    QnItem **item;    /* of a sequence or an optional */
    int64_t n;
    int64_t round; /* of the importer's last walk over live items that met it */
};

typedef enum QnOnnxAttrKind { /* numbers as in the files' AttributeProto.type */
                              QN_ONNX_NONE = 0,
                              QN_ONNX_FLOAT = 1,
                              QN_ONNX_INT = 2,
                              QN_ONNX_STRING = 3,
                              QN_ONNX_TENSOR = 4,
                              QN_ONNX_GRAPH = 5,
                              QN_ONNX_FLOATS = 6,
                              QN_ONNX_INTS = 7,
                              QN_ONNX_STRINGS = 8,
                              QN_ONNX_TENSORS = 9,
                              QN_ONNX_GRAPHS = 10,
                              QN_ONNX_SPARSE = 11,
                              QN_ONNX_TYPE = 13,
} QnOnnxAttrKind;

typedef struct QnOnnxAttr {
    const char *name;
    const char *ref; /* in a function's body: the name of the caller's attribute; else NULL */
    QnOnnxAttrKind kind;
    int64_t i;
    float f;
    QnText s;  /* a NUL follows */
    int64_t n; /* of ints, floats, strings, tensors, graphs */
    const int64_t *ints;
    const float *floats;
    const QnText *strings;
    const QnTensor *tensor; /* or an array of n */
    const struct QnOnnxGraph *graph;
    const struct QnOnnxType *type;
} QnOnnxAttr;

typedef struct QnOnnxNode {
    QnGraph *g;         /* to emit into */
    QnArena *arena;     /* for tensors and items that outlive the call */
    const char *domain; /* "" for the default one */
    const char *op;
    const char *name; /* never NULL */
    int64_t opset;    /* of the domain */
    int n_in, n_out;
    QnItem **in;  /* NULL: absent */
    QnItem **out; /* to be filled; an output that is not asked for may be left NULL */
    const bool *out_used;
    const QnOnnxAttr *attr;
    int n_attr;
    bool training;  /* BatchNormalization and Dropout as for training … */
    bool inference; /* … or as for inference, whatever the node says */
    uint64_t want;  /* inputs whose elements were asked for in vain */
    int64_t epoch;
    QnOnnxBlocks *blocks; /* for elements and lists; NULL: the arena */
    void *importer;       /* src/onnx's own */
} QnOnnxNode;

/* A row of an operator's mapping. */
typedef struct QnOnnxMap {
    const char *name;   /* "Relu" */
    const char *domain; /* NULL: the default one */
    int since, until;   /* opsets, inclusive; until 0: the newest */
    /* NULL: inputs in their order, attributes by the name of the operator's field, or by `rename`:
     * "alpha=slope,axes=axis". ONNX attributes that are left out have the field's default. */
    QnStatus (*import)(QnOnnxNode *n);
    const char *rename;
} QnOnnxMap;

#define QN_ONNX(table) .onnx = (table), .n_onnx = QN_COUNT(table)

/* ---- inputs ---- */

bool qn_onnx_has(const QnOnnxNode *n, int i);
/* As a value of the graph; poison (with an error that names the input) if it is absent or no
 * tensor of numbers. */
QnValue *qn_onnx_in(QnOnnxNode *n, int i);
QnValue *qn_onnx_in_or(QnOnnxNode *n, int i, QnValue *otherwise); /* otherwise: where absent */
/* The numbers that random draws of a training graph take: one input "key" (i64, 2: step, seed). */
QnValue *qn_onnx_key(QnOnnxNode *n);
/* Its type without putting it into the graph; NULL if it is absent or no tensor of numbers. */
const QnType *qn_onnx_type(const QnOnnxNode *n, int i);
int qn_onnx_rank(const QnOnnxNode *n, int i); /* -1: as above */
/* Its elements; NULL where they are not known yet, which is remembered in n->want. */
const QnTensor *qn_onnx_known(QnOnnxNode *n, int i);
/* After a NULL of the above. */
QnStatus qn_onnx_wait(void);
#define QN_ONNX_NEED(n, i)                                                                         \
    do {                                                                                           \
        if (!qn_onnx_known((n), (i)))                                                              \
            return qn_onnx_wait();                                                                 \
    } while (0)
/* Known integers of any integer type, at most 2 QN_MAX_RANK; an error names the input. */
QnStatus qn_onnx_in_ints(QnOnnxNode *n, int i, QnInts *out);
QnStatus qn_onnx_in_int(QnOnnxNode *n, int i, int64_t *out);   /* one of them */
QnStatus qn_onnx_in_double(QnOnnxNode *n, int i, double *out); /* one number of any type */

/* The same as an array, of any length. */
QnStatus qn_onnx_in_array(QnOnnxNode *n, int i, const int64_t **v, int64_t *count);
/* A constant, no input of a run, of one number that a double holds exactly. */
bool qn_onnx_constant(const QnOnnxNode *n, int i, double *out);

/* ---- attributes ---- */

const QnOnnxAttr *qn_onnx_attr(const QnOnnxNode *n, const char *name); /* NULL: not given */
int64_t qn_onnx_int(const QnOnnxNode *n, const char *name, int64_t otherwise);
double qn_onnx_float(const QnOnnxNode *n, const char *name, double otherwise);
bool qn_onnx_is(const QnOnnxNode *n, const char *name, const char *text, const char *otherwise);
/* false: not given (out->n is 0 then), or too long. */
bool qn_onnx_ints(const QnOnnxNode *n, const char *name, QnInts *out);
/* An ONNX element type (TensorProto.DataType) as ours; false: strings, complex, unknown. */
bool qn_onnx_dtype(int64_t number, QnDtype *out);
int qn_onnx_dtype_number(QnDtype dtype);
bool qn_onnx_is_packed(QnDtype dtype); /* two elements share a byte of a file */
enum { QN_ONNX_DTYPE_STRING = 8 };
/* Axis in -rank..rank-1 to 0..rank-1. */
QnStatus qn_onnx_axis(int64_t axis, int rank, int *out);

/* ---- forms that several operators share ---- */

/* Axes by the attribute "axes" or, where it is not given, by input i; neither: out->n is 0. */
QnStatus qn_onnx_axes(QnOnnxNode *n, int i, QnInts *out);
/* A reduction with axes, keepdims and noop_with_empty_axes. Integers go through f64 and back where
 * `floats`; what has no elements folds to `empty`. */
typedef QnValue *QnOnnxFold(QnGraph *g, QnValue *x, QnInts axes, bool keepdims);
QnStatus qn_onnx_reduce(QnOnnxNode *n, QnOnnxFold *fold, bool floats, double empty);
/* ArgMax and ArgMin. */
typedef QnValue *QnOnnxArg(QnGraph *g, QnValue *x, int64_t axis, bool keepdims);
QnStatus qn_onnx_arg(QnOnnxNode *n, QnOnnxArg *f);
/* Softmax and its like: along an axis; before opset 13, over it and all that follow as one. */
QnStatus qn_onnx_rowwise(QnOnnxNode *n, QnValue *(*f)(QnGraph *g, QnValue *x, int64_t axis));
/* Any number of inputs, two by two. */
QnStatus qn_onnx_pairs(QnOnnxNode *n, QnValue *(*f)(QnGraph *g, QnValue *a, QnValue *b));
/* The shape that two broadcast to; an error names both. */
QnStatus qn_onnx_broadcast(const QnShape *a, const QnShape *b, QnShape *out);
/* Strings, whose elements must be known (ops/onnx_text.c). */
QnStatus qn_onnx_cast_text(QnOnnxNode *n, bool to_text, QnDtype dtype);
QnStatus qn_onnx_equal_text(QnOnnxNode *n);

/* ---- results ---- */

/* Output i, where it is asked for. v may be poison: the node then fails. */
QnStatus qn_onnx_out(QnOnnxNode *n, int i, QnValue *v);
QnStatus qn_onnx_out0(QnOnnxNode *n, QnValue *v); /* the first */
QnStatus qn_onnx_out_known(QnOnnxNode *n, int i, const QnTensor *t);
QnStatus qn_onnx_out_item(QnOnnxNode *n, int i, QnItem *item);
/* Zeroed memory that lasts as long as an item's list or its tensor's elements are it. */
void *qn_onnx_room(QnOnnxNode *n, size_t bytes);
/* Zeroed elements to be filled; NULL: no memory, or a shape that overflows. */
QnTensor *qn_onnx_tensor(QnOnnxNode *n, QnDtype dtype, const QnShape *shape);
QnTensor *qn_onnx_tensor_text(QnOnnxNode *n, const QnShape *shape);
/* A one-dimensional i64 constant. */
QnStatus qn_onnx_out_ints(QnOnnxNode *n, int i, const int64_t *v, int count);
/* What an item is in this graph; emits a constant or an input where it is only known. */
QnValue *qn_item_value(QnGraph *g, int64_t epoch, QnItem *item);

/* A refusal of this form of the operator: names the node, its operator and opset. */
QnStatus qn_onnx_refuse(const QnOnnxNode *n, const char *fmt, ...) QN_PRINTF(2, 3);

#endif
