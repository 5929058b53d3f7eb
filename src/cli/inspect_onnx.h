/* `quern inspect MODEL.onnx`: what a model is made of, after import. */
#ifndef QN_CLI_INSPECT_ONNX_H
#define QN_CLI_INSPECT_ONNX_H

#include "cli/cli.h"

typedef struct QnLayer { /* a node of the model */
    const QnOnnxDef *def;
    QnOnnxFate fate;
    const char *why;       /* it is not supported; NULL: it is */
    const char *type;      /* of its first output, "f32[1,64]"; "": not known */
    bool is_constant;      /* known once the model is read */
    int64_t parameters;    /* elements of weights that it is the first to read */
    double flops, moved;   /* moved: bytes read and written */
    int64_t memory;        /* bytes of its outputs */
    int64_t weights_bytes; /* of `parameters` */
} QnLayer;

typedef struct QnInspectOnnx {
    const QnOnnxModel *model;
    QnArena *arena;
    QnLayer *layer; /* of each node, in the model's order */
    int64_t n_reached;
    int64_t n_refused, n_open; /* nodes that are not supported; that need elements of inputs */
    const char *assumed;       /* an open dim that was taken to be 1; "": none */
    const char *unplanned;     /* why there is no plan; NULL: there is one */
    QnPlanMemory memory;       /* of the plan */
    /* totals */
    int64_t parameters, weights_bytes;
    double flops, moved;
} QnInspectOnnx;

typedef struct QnInspectOnnxOptions {
    int64_t batch;                /* 0: as the file says, or 1 */
    int dim_option, input_option; /* numbers of --dim and --input */
    bool all;                     /* nodes too that are computed while the model is read */
} QnInspectOnnxOptions;

/* By the name or by how the content begins. */
bool qn_inspect_is_onnx(const char *path, const void *data, size_t size);
/* *code: QN_EXIT_UNSUPPORTED where the model has nodes that are not supported. */
QnStatus qn_inspect_onnx(const QnArgs *a, const char *path, const QnInspectOnnxOptions *o,
                         int *code);

QnStatus qn_inspect_onnx_print(const QnInspectOnnx *i, bool all); /* inspect_onnx_print.c */
QnStatus qn_inspect_onnx_print_json(const QnInspectOnnx *i);      /* inspect_onnx_json.c */
/* "f32[batch,3,?]", "sequence(f32[?])"; in the arena; NULL: no memory. */
const char *qn_inspect_onnx_type(const QnOnnxType *t, QnArena *arena);

#endif
