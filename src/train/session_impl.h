/* Shared by session.c (compiling, running) and session_graph.c (building). */
#ifndef QN_TRAIN_SESSION_IMPL_H
#define QN_TRAIN_SESSION_IMPL_H

#include "train/session.h"

enum { QN_IGNORED_LABEL = -100 }; /* of samples that do not count; cross-entropy leaves them out */

/* What the data asks of the model. */
int64_t qn_session_outputs(const QnSession *s);

/* Fills the session's graphs and takes their states into its store. */
QnStatus qn_session_build(QnSession *s, const QnSessionOptions *o);

#endif
