/* One oneDNN primitive made ready for a node, with the turns of its operands into the formats that
 * the library prefers. */
#ifndef QN_BACKEND_CPU_DNN_H
#define QN_BACKEND_CPU_DNN_H

#include "rt/kernel.h"

/* NULL if the library may run the node; without the library a reason too. */
const char *qn_dnn_refuses(const QnNode *n, const QnKernelEnv *env);
QnStatus qn_dnn_run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace);
/* Constant operands into the library's format. */
QnStatus qn_dnn_pack(const QnPrepared *p, const void *const *in, void *packed);
void qn_dnn_fini(QnPrepared *p);

#ifdef QN_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

enum { QN_DNN_MAX_POST = 8, QN_DNN_MAX_ARG = 4 + QN_DNN_MAX_POST };

typedef struct QnDnnArg {
    int arg;               /* DNNL_ARG_… */
    dnnl_memory_desc_t md; /* as the tensor lies in memory */
    int index;             /* of the node's input or output */
    bool is_output;
} QnDnnArg;

typedef struct QnDnn QnDnn;

/* How a tensor lies in memory; of weights with groups > 1, axis 0 is (groups, rest). */
QnStatus qn_dnn_md(const QnType *t, int64_t groups, dnnl_memory_desc_t *md);
/* The same, but in whatever format the library likes best. */
QnStatus qn_dnn_any(const QnType *t, int64_t groups, dnnl_memory_desc_t *md);

/* Begins: sets p->state. Needed for hints before the primitive itself. */
QnStatus qn_dnn_new(QnPrepared *p, QnDnn **out);
/* Makes the primitive and sets p->workspace_bytes. hint: of the forward pass, for gradients; post:
 * what follows the product; NULL: none. */
QnStatus qn_dnn_prepare(QnPrepared *p, const_dnnl_op_desc_t desc, const_dnnl_op_desc_t hint,
                        const_dnnl_post_ops_t post, const QnDnnArg *args, int n_args);

/* QN_OK, or an error that names the call. */
QnStatus qn_dnn_check(dnnl_status_t status, const char *call);
#define QN_DNN(call) QN_TRY(qn_dnn_check((call), #call))

#endif
#endif
