/* ONNX models: opened once, run many times.
 *
 *   QnModel *m;  qn_model_open("net.onnx", device, &m);
 *   qn_model_set(m, "image", &type, pixels);  qn_model_run(m);
 *   qn_model_get(m, "scores", &type, &scores);
 *
 * A model is compiled at the first run with inputs of some shapes, and kept for the next one with
 * the same. Where what it computes depends on the inputs' elements beyond that (loops, NonZero), a
 * run takes it piece by piece. */
#ifndef QUERN_ONNX_H
#define QUERN_ONNX_H

#include <quern/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QnModel QnModel;

/* The device is borrowed. EFORMAT: a broken file; EUNSUPPORTED: not one for this version of Quern;
 * the error names file and place. */
QN_API QnStatus qn_model_open(const char *path, QnDevice *d, QnModel **out);
QN_API void qn_model_close(QnModel *m); /* NULL is fine */
/* Kernels as `quern tune` has measured them for this machine, from the file that it keeps
 * (kernels.json in $XDG_CACHE_HOME/quern or ~/.cache/quern). Before the first run. A file that is
 * not there leaves all as it is. */
QN_API QnStatus qn_model_load_choices(QnModel *m, const char *path);

/* Inputs that have to be set, and outputs, in the file's order; NULL: there is no i-th. */
QN_API const char *qn_model_input_name(const QnModel *m, int64_t i);
QN_API const char *qn_model_output_name(const QnModel *m, int64_t i);

/* What the file says of input i; batch > 0: its first dim. A dim that the file leaves open is an
 * error that says its name. */
QN_API QnStatus qn_model_input_type(const QnModel *m, int64_t i, int64_t batch, QnType *out);
/* An input's elements, row-major, of a concrete type; borrowed until the next run has ended. */
QN_API QnStatus qn_model_set(QnModel *m, const char *name, const QnType *type, const void *data);
/* EUNSUPPORTED lists the nodes that are not supported. */
QN_API QnStatus qn_model_run(QnModel *m);
/* An output of the last run, in memory that is valid until the next. */
QN_API QnStatus qn_model_get(const QnModel *m, const char *name, QnType *type, const void **data);
/* Graphs compiled so far; runs taken piece by piece do not count. */
QN_API int64_t qn_model_plan_count(const QnModel *m);

#ifdef __cplusplus
}
#endif

#endif
