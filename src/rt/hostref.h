/* The float64 reference as a kernel of devices with memory of their own: for nodes that have no
 * device text. Right, slow, and shown as such by `quern explain`. */
#ifndef QN_RT_HOSTREF_H
#define QN_RT_HOSTREF_H

#include "ir/graph.h"

/* Copies between the host and the device; complete on return, after all that was enqueued. */
typedef struct QnHostrefIo {
    void *ctx;
    QnStatus (*read)(void *ctx, void *dst, const void *src, size_t bytes);
    QnStatus (*write)(void *ctx, void *dst, const void *src, size_t bytes);
} QnHostrefIo;

/* Why the reference cannot run the node; NULL: it can. */
const char *qn_hostref_refuses(const QnNode *n);
/* in and out are addresses of the device, in[i] NULL where the input is absent. */
QnStatus qn_hostref_run(const QnNode *n, const QnHostrefIo *io, const void *const *in,
                        void *const *out);

#endif
