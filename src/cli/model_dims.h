/* `--dim NAME=N`: numbers for dims that a model has left open. */
#ifndef QN_CLI_MODEL_DIMS_H
#define QN_CLI_MODEL_DIMS_H

#include "cli/cli.h"
#include "onnx/onnx.h"

enum { QN_CLI_DIMS_MOST = 64 };
typedef struct QnCliDims {
    const char *name[QN_CLI_DIMS_MOST]; /* the model's, or in text */
    char text[QN_CLI_DIMS_MOST][QN_ONNX_DIM_NAME_BYTES];
    int64_t length[QN_CLI_DIMS_MOST];
    int n;
} QnCliDims;

#define QN_CLI_DIM_OPTION                                                                          \
    {                                                                                              \
        "--dim", 0, QN_OPTION_MANY, "NAME=N",                                                      \
            "ONNX models: the length of an open dim; INPUT:AXIS=N of one without a name", 0, 0     \
    }

/* The words of option number `option`. Refused: a name that no input of the model has (the error
 * lists those it has), a length that is no whole number from 1 on, a second one for a name. */
QnStatus qn_cli_dims(const QnArgs *a, int option, const QnOnnxModel *m, QnCliDims *out);
/* Types for all inputs that have to be given and are tensors of known rank, as
 * QnOnnxImportOptions.given takes them: what in[i] holds, if that is not NULL; else open dims by
 * *dims, first ones by `batch` if it is not 0; all others are 1, and the first of those is named in
 * *assumed ("": there is none). */
QnStatus qn_cli_dims_types(const QnOnnxModel *m, QnItem *const *in, const QnCliDims *dims,
                           int64_t batch, QnArena *arena, const QnTensor ***given,
                           const char **assumed);
/* The inputs that were given are as long as *dims says. */
QnStatus qn_cli_dims_check(const QnOnnxModel *m, QnItem *const *in, const QnCliDims *dims);

#endif
