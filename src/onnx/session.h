/* Sessions as our own commands use them; quern/onnx.h has the rest. */
#ifndef QN_ONNX_SESSION_H
#define QN_ONNX_SESSION_H

#include "onnx/onnx.h"
#include "quern/onnx.h"

typedef struct QnModelOptions {
    bool profile;             /* plans measure each step */
    const QnChoices *choices; /* measured kernels, borrowed; NULL: ranks decide */
} QnModelOptions;
/* As qn_model_open. */
QnStatus qn_model_open_with(const char *path, QnDevice *d, const QnModelOptions *o, QnModel **out);
const QnOnnxModel *qn_model_file(const QnModel *m);
/* The plan of the last run; NULL: it was taken piece by piece. */
const QnPlan *qn_model_plan(const QnModel *m);
/* As qn_model_input_type, with the dims and the batch of *o. */
QnStatus qn_model_input_type_with(const QnModel *m, int64_t i, const QnOnnxImportOptions *o,
                                  QnType *out);

#endif
