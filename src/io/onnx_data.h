/* The file beside an ONNX model that is written, for weights that do not fit into it. */
#ifndef QN_IO_ONNX_DATA_H
#define QN_IO_ONNX_DATA_H

#include "base/file.h"
#include "io/onnx.h"

typedef struct QnOnnxData {
    QnFileOut out;
    const char *location; /* its name as the model says it */
    const char *path;     /* of the model */
    char *name;           /* path of the file */
    QnOnnxModel *older;   /* the model that is at the path now; NULL: none that can be read */
    uint64_t before;      /* which file that is */
} QnOnnxData;

/* A new file, PATH.data or, where that is there already, PATH.1.data and so on: the model that is
 * at the path stays whole until it is replaced. `path` is borrowed until finish. */
QnStatus qn_onnx_data_create(QnOnnxData *d, const char *path);
/* After the model has been written, or has not: the file of weights that nobody reads any more
 * goes, the older model's or the new one. All zeros is fine. */
void qn_onnx_data_finish(QnOnnxData *d, bool is_written);

#endif
