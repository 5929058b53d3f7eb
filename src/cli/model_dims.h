/* `--dim NAME=N`: numbers for dims that a model has left open. */
#ifndef QN_CLI_MODEL_DIMS_H
#define QN_CLI_MODEL_DIMS_H

#include "cli/cli.h"
#include "onnx/onnx.h"

enum { QN_CLI_DIMS_MOST = 64 };
typedef struct QnCliDims {
    const char *name[QN_CLI_DIMS_MOST]; /* the model's */
    int64_t length[QN_CLI_DIMS_MOST];
    int n;
} QnCliDims;

#define QN_CLI_DIM_OPTION                                                                          \
    {                                                                                              \
        "--dim", 0, QN_OPTION_MANY, "NAME=N", "ONNX models: the length of an open dim", 0, 0       \
    }

/* The words of option number `option`. Refused: a name that no input of the model has (the error
 * lists those it has), a length that is no whole number from 1 on, a second one for a name. */
QnStatus qn_cli_dims(const QnArgs *a, int option, const QnOnnxModel *m, QnCliDims *out);
/* All open dims that have a name and are not in *dims yet become `length`. */
void qn_cli_dims_assume(const QnOnnxModel *m, int64_t length, QnCliDims *dims);
/* The inputs that were given are as long as *dims says. */
QnStatus qn_cli_dims_check(const QnOnnxModel *m, QnItem *const *in, const QnCliDims *dims);

#endif
