/* What the device says of itself, and memory of the host at its addresses: managed where the
 * driver moves pages on demand, else pinned, which every access reaches over the bus. */
#include "backend/cuda/cuda.h"

#include <stdio.h>

#include "backend/cuda/host.h"

static int attribute(const QnCuda *c, CUdevice_attribute what)
{
    int value = 0;
    return c->cu.cuDeviceGetAttribute(&value, what, c->id) == CUDA_SUCCESS ? value : 0;
}

/* More than the device has can be managed only where pages fault. */
void qn_cuda_find_far(QnCuda *c)
{
    c->is_managed = attribute(c, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) &&
                    attribute(c, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
}

QnStatus qn_cuda_info(QnDevice *d, QnDeviceInfo *out)
{
    const QnCuda *c = d->impl;
    size_t bytes = 0;
    QN_CUDA_TRY(&c->cu, cuDeviceTotalMem(&bytes, c->id));
    *out = (QnDeviceInfo){ .kind = QN_DEVICE_GPU,
                           .units = attribute(c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                           .clock_hz = 1e3 * attribute(c, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                           .memory_bytes = (int64_t)bytes,
                           .far = c->is_managed ? "managed memory" : "pinned memory of the host",
                           .far_moves = c->is_managed };
    snprintf(out->name, sizeof out->name, "%s", c->name);
    return QN_OK;
}

static void *alloc_pinned(QnCuda *c, size_t bytes)
{
    void *p = NULL;
    CUdeviceptr at = 0;
    CUresult err = c->cu.cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
    if (err != CUDA_SUCCESS) {
        qn_cuda_fail(&c->cu, err, "cuMemHostAlloc");
        return NULL;
    }
    err = c->cu.cuMemHostGetDevicePointer(&at, p, 0);
    if (err == CUDA_SUCCESS && at == (CUdeviceptr)(uintptr_t)p)
        return p;
    if (err != CUDA_SUCCESS)
        qn_cuda_fail(&c->cu, err, "cuMemHostGetDevicePointer");
    else /* without one address space for both */
        qn_fail(QN_EUNSUPPORTED, "cuda: the device has other addresses than the host");
    c->cu.cuMemFreeHost(p);
    return NULL;
}

void *qn_cuda_alloc_far(QnDevice *d, size_t bytes)
{
    QnCuda *c = d->impl;
    CUdeviceptr p = 0;
    bytes = bytes ? bytes : 1;
    if (qn_cuda_enter(c) != QN_OK)
        return NULL;
    if (!c->is_managed)
        return alloc_pinned(c, bytes);
    CUresult err = c->cu.cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL);
    if (err == CUDA_SUCCESS)
        return (void *)(uintptr_t)p;
    qn_cuda_fail(&c->cu, err, "cuMemAllocManaged");
    return NULL;
}

/* Neither call waits for the streams. */
void qn_cuda_free_far(QnDevice *d, void *p, size_t bytes)
{
    QnCuda *c = d->impl;
    (void)bytes;
    c->cu.cuCtxSetCurrent(c->context);
    c->cu.cuStreamSynchronize(c->copies);
    c->cu.cuStreamSynchronize(c->stream);
    if (c->is_managed)
        c->cu.cuMemFree((CUdeviceptr)(uintptr_t)p);
    else
        c->cu.cuMemFreeHost(p);
}
