/* A run of a plan as one CUDA graph: captured from the stream, instantiated once, replayed. */
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"

QnStatus qn_cuda_capture_begin(QnDevice *d)
{
    QnCuda *c = d->impl;
    QN_TRY(qn_cuda_enter(c));
    /* of this thread's calls only: other threads may use other devices meanwhile */
    QN_CUDA_TRY(&c->cu, cuStreamBeginCapture(c->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    return QN_OK;
}

QnStatus qn_cuda_capture_end(QnDevice *d, void **graph)
{
    QnCuda *c = d->impl;
    CUgraph captured = NULL;
    CUgraphExec exec = NULL;
    QN_TRY(qn_cuda_enter(c));
    CUresult err = c->cu.cuStreamEndCapture(c->stream, &captured);
    if (err != CUDA_SUCCESS)
        return qn_cuda_fail(&c->cu, err, "cuStreamEndCapture");
    err = c->cu.cuGraphInstantiate(&exec, captured, 0);
    c->cu.cuGraphDestroy(captured);
    if (err != CUDA_SUCCESS)
        return qn_cuda_fail(&c->cu, err, "cuGraphInstantiate");
    *graph = exec;
    return QN_OK;
}

QnStatus qn_cuda_replay(QnDevice *d, void *graph)
{
    QnCuda *c = d->impl;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuGraphLaunch((CUgraphExec)graph, c->stream));
    return QN_OK;
}

void qn_cuda_capture_free(QnDevice *d, void *graph)
{
    QnCuda *c = d->impl;
    c->cu.cuCtxSetCurrent(c->context); /* what gives back goes on whatever fails */
    c->cu.cuGraphExecDestroy((CUgraphExec)graph);
}
