/* Copies from pinned memory on a stream of their own, ordered with what computes by events. */
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"

void *qn_cuda_host_alloc(QnDevice *d, size_t bytes)
{
    QnCuda *c = d->impl;
    void *p = NULL;
    if (qn_cuda_enter(c) != QN_OK)
        return NULL;
    CUresult err = c->cu.cuMemHostAlloc(&p, bytes ? bytes : 1, 0);
    if (err == CUDA_SUCCESS)
        return p;
    qn_cuda_fail(&c->cu, err, "cuMemHostAlloc");
    qn_fail_prefix("%zu bytes of pinned memory", bytes);
    return NULL;
}

/* Even after a failure nothing may still read from it. */
void qn_cuda_host_free(QnDevice *d, void *p, size_t bytes)
{
    QnCuda *c = d->impl;
    (void)bytes;
    c->cu.cuCtxSetCurrent(c->context);
    c->cu.cuStreamSynchronize(c->copies);
    c->cu.cuMemFreeHost(p);
}

QnStatus qn_cuda_copy_ahead(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QnCuda *c = d->impl;
    if (bytes == 0)
        return QN_OK;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)dst, src, bytes, c->copies));
    return QN_OK;
}

QnStatus qn_cuda_event_new(QnDevice *d, void **event)
{
    QnCuda *c = d->impl;
    CUevent e;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    *event = e;
    return QN_OK;
}

void qn_cuda_event_free(QnDevice *d, void *event)
{
    QnCuda *c = d->impl;
    c->cu.cuCtxSetCurrent(c->context);
    c->cu.cuEventDestroy(event);
}

static CUstream stream_of(const QnCuda *c, QnQueue q)
{
    return q == QN_QUEUE_COPY ? c->copies : c->stream;
}

QnStatus qn_cuda_event_record(QnDevice *d, QnQueue q, void *event)
{
    QnCuda *c = d->impl;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuEventRecord(event, stream_of(c, q)));
    return QN_OK;
}

QnStatus qn_cuda_event_order(QnDevice *d, QnQueue q, void *event)
{
    QnCuda *c = d->impl;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuStreamWaitEvent(stream_of(c, q), event, 0));
    return QN_OK;
}

QnStatus qn_cuda_event_wait(QnDevice *d, void *event)
{
    QnCuda *c = d->impl;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuEventSynchronize(event));
    return QN_OK;
}
