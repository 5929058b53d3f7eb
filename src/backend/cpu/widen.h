/* 16-bit tensors for kernels that are written for f32: copies in f32 stand at the end of the
 * workspace, filled before the kernel runs and rounded back after it. */
#ifndef QN_BACKEND_CPU_WIDEN_H
#define QN_BACKEND_CPU_WIDEN_H

#include "rt/kernel.h"

/* NULL if all the node's floating-point tensors are f32, f16 or bf16, else the reason. */
const char *qn_widen_refuses(const QnNode *n);
/* Last in prepare: adds the copies to p->workspace_bytes. */
void qn_widen_prepare(QnPrepared *p);

typedef QnStatus QnRunFn(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace);
/* Calls fn with f32 wherever the node has 16 bits. */
QnStatus qn_widen_run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace,
                      QnRunFn *fn);

/* The same but for the operands (inputs, then outputs) whose bits `keep` has: fn takes those as
 * they are. */
void qn_widen_prepare_but(QnPrepared *p, unsigned keep);
QnStatus qn_widen_run_but(const QnPrepared *p, const void *const *in, void *const *out,
                          void *workspace, unsigned keep, QnRunFn *fn);

#endif
