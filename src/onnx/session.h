/* Sessions as our own commands use them; quern/onnx.h has the rest. */
#ifndef QN_ONNX_SESSION_H
#define QN_ONNX_SESSION_H

#include "onnx/onnx.h"
#include "quern/onnx.h"

/* As qn_model_open; profile: plans measure each step. */
QnStatus qn_model_open_with(const char *path, QnDevice *d, bool profile, QnModel **out);
/* The plan of the last run; NULL: it was taken piece by piece. */
const QnPlan *qn_model_plan(const QnModel *m);
/* What the file says of input i. batch > 0: its first dim. A dim without a number is an error that
 * says its name. */
QnStatus qn_model_input_type(const QnModel *m, int64_t i, int64_t batch, QnType *out);

#endif
