/* Bodies of maps as oneDNN's post-operations. */
#ifndef QN_BACKEND_CPU_DNN_POST_H
#define QN_BACKEND_CPU_DNN_POST_H

#include "backend/cpu/dnn.h"

/* NULL if the body on the node's product (operand 0) and its inputs from number `first` on is a
 * chain of operations that the library has, else a reason. */
const char *qn_dnn_post_refuses(const QnNode *n, const QnBody *b, int first);

#ifdef QN_HAVE_ONEDNN
/* Appends them to `post`, and to args what they read. */
QnStatus qn_dnn_post_add(const QnNode *n, const QnBody *b, int first, dnnl_post_ops_t post,
                         QnDnnArg *args, int *n_args);
#endif
#endif
