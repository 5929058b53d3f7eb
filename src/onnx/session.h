/* Sessions as our own commands use them; quern/onnx.h has the rest. */
#ifndef QN_ONNX_SESSION_H
#define QN_ONNX_SESSION_H

#include "onnx/onnx.h"
#include "quern/onnx.h"

/* As qn_model_open; profile: plans measure each step. */
QnStatus qn_model_open_with(const char *path, QnDevice *d, bool profile, QnModel **out);
/* The plan of the last run; NULL: it was taken piece by piece. */
const QnPlan *qn_model_plan(const QnModel *m);

#endif
