/* Shared by session.c (compiling, running) and session_graph.c (building). */
#ifndef QN_TRAIN_SESSION_IMPL_H
#define QN_TRAIN_SESSION_IMPL_H

#include "train/session.h"

enum { QN_IGNORED_LABEL = -100 }; /* of samples that do not count; cross-entropy leaves them out */

/* What the data asks of the model. */
int64_t qn_session_outputs(const QnSession *s);

/* Fills the session's graphs and takes their states into its store. */
QnStatus qn_session_build(QnSession *s, const QnSessionOptions *o);
/* The passes of the recipe. */
QnStatus qn_session_optimise(const QnSession *s, QnGraph *g, bool no_passes);
/* Outputs "loss" and "grad_norm" of a training step on `rows` samples that updates nothing. */
QnStatus qn_session_build_probe(const QnSession *s, QnPrecision precision, int64_t rows,
                                QnGraph **out);
/* The same in fp32, with what `precision: auto` looks at (qn_auto_watch). */
QnStatus qn_session_build_watch(const QnSession *s, int64_t rows, QnGraph **out);
/* A training step of the session's own size in another precision. */
QnStatus qn_session_build_step(const QnSession *s, QnPrecision precision, QnGraph **out);
/* Loss and norm of the gradients by a plan of such a graph. */
QnStatus qn_session_run_probe(QnSession *s, QnPlan *p, const QnBatch *b, int64_t rows, double *loss,
                              double *grad_norm);
/* Plans for the graphs that there are. */
QnStatus qn_session_plan(QnSession *s);
QnStatus qn_session_feed(QnPlan *p, QnDevice *d, const char *name, const void *src, size_t bytes);
QnStatus qn_session_scalar(QnPlan *p, QnDevice *d, const char *name, double *out);

#endif
