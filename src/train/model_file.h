/* A recipe's model that comes from an ONNX file. */
#ifndef QN_TRAIN_MODEL_FILE_H
#define QN_TRAIN_MODEL_FILE_H

#include "base/str.h"
#include "nn/net.h"
#include "onnx/onnx.h"
#include "train/model.h"
#include "train/recipe.h"

typedef struct QnModelFile {
    const QnRecipe *recipe; /* borrowed */
    QnDevice *device;       /* borrowed; computes the file's constants */
    QnOnnxModel *model;     /* with its new head, if there is one */
    const QnOnnxGraph *original;
    QnOnnxNetOptions options;
    QnOnnxProblems *problems; /* what keeps it from being trained; or NULL */
    QnStr notes;              /* what was changed of the model, a line each; may be empty */
} QnModelFile;

/* NULL for recipes whose model is no file. path: in place of the recipe's, or NULL; outputs: what
 * the data asks for. */
QnStatus qn_model_file_open(const QnRecipe *r, const char *path, QnDevice *d, int64_t outputs,
                            QnModelFile **out);
void qn_model_file_free(QnModelFile *f);

/* The model on x; *y is (N, outputs), or (N*T, outputs) for language models. */
QnStatus qn_model_file_build(const QnModelFile *f, QnNet *net, const QnModelIo *io, QnValue *x,
                             QnValue **y);
/* The file's weights into the store, averaged ones included. */
QnStatus qn_model_file_fill(const QnModelFile *f, QnStore *store);

/* The file as it was read, so that a run's folder stands alone. */
QnStatus qn_model_file_copy(const QnModelFile *f, const char *path);
/* The file with the store's weights: the inputs and outputs that it had, or logits after a new
 * head. */
int64_t qn_model_file_count(const QnModelFile *f); /* numbers among its weights */
QnStatus qn_model_file_write(const QnModelFile *f, const QnStore *store, const char *path,
                             bool outside);

#endif
