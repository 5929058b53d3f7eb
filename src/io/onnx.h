/* ONNX files (onnx.ai's onnx.proto, IR versions 3 to 14) as plain structs, read and written through
 * protobuf-c. What a file says is checked before it is believed: nesting, sizes, names, order; and
 * tensors outside the file are read from the model's own folder only. An error names the file and
 * the node or tensor. */
#ifndef QN_IO_ONNX_H
#define QN_IO_ONNX_H

#include "ops/onnx_put.h"

typedef enum QnOnnxTypeKind {
    QN_ONNX_TYPE_NONE, /* not said */
    QN_ONNX_TYPE_TENSOR,
    QN_ONNX_TYPE_SEQUENCE,
    QN_ONNX_TYPE_OPTIONAL,
    QN_ONNX_TYPE_MAP,
    QN_ONNX_TYPE_SPARSE,
} QnOnnxTypeKind;

typedef struct QnOnnxType {
    QnOnnxTypeKind kind;
    int64_t elem;                      /* of tensors: TensorProto.DataType; 0: not said */
    int rank;                          /* -1: not said */
    int64_t dim[QN_MAX_RANK];          /* -1: not a number */
    const char *dim_name[QN_MAX_RANK]; /* "batch"; NULL: none */
    const struct QnOnnxType *of;       /* element of a sequence or optional */
} QnOnnxType;

typedef struct QnOnnxInfo {
    const char *name;
    const QnOnnxType *type; /* never NULL */
} QnOnnxInfo;

typedef struct QnOnnxGraph {
    const char *name;
    int64_t n_nodes, n_inits, n_inputs, n_outputs, n_infos;
    QnOnnxDef *node; /* in an order they can run in */
    const QnOnnxInit *init;
    const QnOnnxInfo *input, *output, *info;
} QnOnnxGraph;

typedef struct QnOnnxOpset {
    const char *domain;
    int64_t version;
} QnOnnxOpset;

typedef struct QnOnnxFunction {
    const char *name, *domain;
    int n_in, n_out, n_attr, n_default, n_opset;
    const char *const *in, *const *out;
    const char *const *attr;    /* names without a default */
    const QnOnnxAttr *fallback; /* attributes with one */
    const QnOnnxOpset *opset;
    QnOnnxGraph body; /* nodes only */
} QnOnnxFunction;

typedef struct QnOnnxModel {
    char *path;
    int64_t ir_version, model_version;
    const char *producer, *producer_version;
    int n_opset;
    const QnOnnxOpset *opset;
    const QnOnnxGraph *graph;
    int64_t n_functions;
    const QnOnnxFunction *function; /* sorted by domain, then name */
    int64_t n_meta;
    const char *const *meta; /* key, value, key, … */
    QnArena *arena;
    struct QnOnnxFile *file; /* what the structs point into */
} QnOnnxModel;

/* EFORMAT: broken; EUNSUPPORTED: right but not for us, or built without protobuf-c. */
QnStatus qn_onnx_read(const char *path, QnOnnxModel **out);
/* The same from memory; external tensors are looked for in `folder` (NULL: refused). */
QnStatus qn_onnx_read_bytes(const void *data, size_t bytes, const char *name, const char *folder,
                            QnOnnxModel **out);
void qn_onnx_free(QnOnnxModel *m);
/* The initialiser of that name; NULL: there is none. */
const QnTensor *qn_onnx_find_init(const QnOnnxGraph *g, const char *name);
/* 0: the model does not import the domain. */
int64_t qn_onnx_opset(const QnOnnxOpset *opset, int n, const char *domain);
/* NULL: the model has no such function. */
const QnOnnxFunction *qn_onnx_function(const QnOnnxModel *m, const char *domain, const char *name);

/* A file that holds one value of the given type (the test suites' input_0.pb): a TensorProto, a
 * SequenceProto or an OptionalProto. The item and what it points to live in the arena. */
QnStatus qn_onnx_read_value(const char *path, const QnOnnxType *type, QnArena *arena, QnItem **out);
/* Writes a model; the file is replaced in one step. Weights go to PATH.data beside it if they are
 * over 2 GB, which protobuf does not hold, or if `outside`; to PATH.1.data and so on where that is
 * there already, so that an older model at PATH stays whole until it is replaced. Then its file of
 * weights goes. */
QnStatus qn_onnx_write(const QnOnnxModel *m, const char *path, bool outside);
/* Writes a tensor as a TensorProto. */
QnStatus qn_onnx_write_tensor(const char *path, const char *name, const QnTensor *t);

#endif
