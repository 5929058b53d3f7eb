#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/host.h"
#include "backend/cuda/kernels_list.h"

static const QnKernel *const cuda_kernels[] = {
#define QN_X(name) &qn_kernel_##name,
    QN_KERNEL_LIST(QN_X)
#undef QN_X
};

QnStatus qn_cuda_enter(QnCuda *c)
{
    QN_CUDA_TRY(&c->cu, cuCtxSetCurrent(c->context));
    return QN_OK;
}

/* ---- opening ---- */

static QnStatus find_device(QnCuda *c, int index)
{
    const QnCudaDriver *cu = &c->cu;
    int n = 0, major = 0, minor = 0, pools = 0;
    QN_CUDA_TRY(cu, cuDeviceGetCount(&n));
    if (n == 0)
        return qn_fail(QN_ENOTFOUND, "cuda: the driver %s sees no device", cu->lib.path);
    if (index < 0 || index >= n)
        return qn_fail(QN_ENOTFOUND, "cuda: no device %d; there are 0 to %d", index, n - 1);
    QN_CUDA_TRY(cu, cuDeviceGet(&c->id, index));
    QN_CUDA_TRY(cu, cuDeviceGetName(c->name, (int)sizeof c->name - 1, c->id));
    QN_CUDA_TRY(cu,
                cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, c->id));
    QN_CUDA_TRY(cu,
                cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, c->id));
    QN_CUDA_TRY(cu,
                cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, c->id));
    c->sm = major * 10 + minor;
    c->arch = qn_cuda_arch_find(c->sm);
    if (!c->arch)
        return qn_fail(QN_EUNSUPPORTED,
                       "cuda: device %d, %s, has compute capability %d.%d; 7.5 is needed", index,
                       c->name, major, minor);
    if (!pools)
        return qn_fail(QN_EUNSUPPORTED, "cuda: device %d, %s, has no stream-ordered memory", index,
                       c->name);
    return QN_OK;
}

static QnStatus open_context(QnCuda *c)
{
    const QnCudaDriver *cu = &c->cu;
    QN_CUDA_TRY(cu, cuDevicePrimaryCtxRetain(&c->context, c->id));
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(cu, cuStreamCreate(&c->stream, CU_STREAM_NON_BLOCKING));
    QN_CUDA_TRY(cu, cuStreamCreate(&c->copies, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < QN_CUDA_STAGES; i++) {
        QnCudaStage *s = &c->stage[i];
        QN_CUDA_TRY(cu, cuMemHostAlloc((void **)&s->host, QN_CUDA_STAGE_BYTES, 0));
        QN_CUDA_TRY(cu, cuEventCreate(&s->done, CU_EVENT_DISABLE_TIMING));
    }
    return QN_OK;
}

/* In the opposite order; what fails now cannot be helped. */
static void cuda_close(QnDevice *d)
{
    QnCuda *c = d->impl;
    if (!c)
        return;
    if (c->context) {
        c->cu.cuCtxSetCurrent(c->context);
        if (c->copies) {
            c->cu.cuStreamSynchronize(c->copies);
            c->cu.cuStreamDestroy(c->copies);
        }
        if (c->stream)
            c->cu.cuStreamSynchronize(c->stream);
        qn_cuda_programs_free(c);
        qn_cuda_blas_close(&c->blas);
        qn_free(c->choices.items);
        for (int i = 0; i < QN_CUDA_STAGES; i++) {
            if (c->stage[i].done)
                c->cu.cuEventDestroy(c->stage[i].done);
            if (c->stage[i].host)
                c->cu.cuMemFreeHost(c->stage[i].host);
        }
        if (c->stream)
            c->cu.cuStreamDestroy(c->stream);
        c->cu.cuCtxSetCurrent(NULL);
        c->cu.cuDevicePrimaryCtxRelease(c->id);
    }
    qn_nvrtc_close(&c->rtc);
    qn_cuda_driver_close(&c->cu);
    qn_free(c);
    d->impl = NULL;
}

static QnStatus open_all(QnCuda *c, const QnDeviceOptions *o)
{
    QN_TRY(qn_cuda_driver_open(&c->cu));
    QN_TRY(find_device(c, o->index));
    qn_cuda_find_far(c);
    QN_TRY(open_context(c));
    /* without them, their kernels refuse, and the next best runs */
    if (qn_nvrtc_open(&c->rtc, c->cu.version, c->sm) != QN_OK)
        snprintf(c->rtc_error, sizeof c->rtc_error, "%s", qn_error_last()->text);
    if (qn_cuda_blas_open(&c->blas, c->cu.version) != QN_OK)
        snprintf(c->blas_error, sizeof c->blas_error, "%s", qn_error_last()->text);
    if (qn_cache_path("programs", c->cache, sizeof c->cache) != QN_OK)
        c->cache[0] = '\0';
    if (c->blas.handle)
        snprintf(c->choices_maker, sizeof c->choices_maker, "%zu, driver %d, %s, sm_%d",
                 c->blas.cublasLtGetVersion(), c->cu.version, c->name, c->sm);
    c->choices.cache = c->cache;
    c->choices.maker = c->choices_maker;
    return QN_OK;
}

static QnStatus cuda_open(QnDevice *d, const QnDeviceOptions *o)
{
    QnCuda *c = qn_alloc(sizeof *c);
    if (!c)
        return QN_ENOMEM;
    d->impl = c;
    d->env = (QnKernelEnv){ .n_threads = 1, .isa = "cuda", .strict = o->strict, .impl = c };
    QnStatus st = open_all(c, o);
    if (st != QN_OK)
        cuda_close(d);
    return st;
}

/* ---- memory ---- */

static void *cuda_alloc(QnDevice *d, size_t bytes)
{
    QnCuda *c = d->impl;
    CUdeviceptr p = 0;
    if (qn_cuda_enter(c) != QN_OK)
        return NULL;
    CUresult err = c->cu.cuMemAllocAsync(&p, bytes ? bytes : 1, c->stream);
    if (err != CUDA_SUCCESS) {
        qn_cuda_fail(&c->cu, err, "cuMemAllocAsync");
        return NULL;
    }
    return (void *)(uintptr_t)p;
}

static void cuda_free(QnDevice *d, void *p, size_t bytes)
{
    QnCuda *c = d->impl;
    (void)bytes;
    c->cu.cuCtxSetCurrent(c->context);
    c->cu.cuMemFreeAsync((CUdeviceptr)(uintptr_t)p, c->stream);
}

QnStatus qn_cuda_write(QnCuda *c, void *dst, const void *src, size_t bytes)
{
    QN_TRY(qn_cuda_enter(c));
    for (size_t at = 0, i = 0; at < bytes; i++) {
        QnCudaStage *s = &c->stage[i % QN_CUDA_STAGES];
        size_t n = QN_MIN(bytes - at, (size_t)QN_CUDA_STAGE_BYTES);
        QN_CUDA_TRY(&c->cu, cuEventSynchronize(s->done));
        memcpy(s->host, (const char *)src + at, n);
        QN_CUDA_TRY(&c->cu,
                    cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)dst + at, s->host, n, c->stream));
        QN_CUDA_TRY(&c->cu, cuEventRecord(s->done, c->stream));
        at += n;
    }
    return QN_OK;
}

/* One half fills while the other is emptied. */
QnStatus qn_cuda_read(QnCuda *c, void *dst, const void *src, size_t bytes)
{
    size_t n_parts = (bytes + QN_CUDA_STAGE_BYTES - 1) / QN_CUDA_STAGE_BYTES;
    QN_TRY(qn_cuda_enter(c));
    for (size_t i = 0; i < n_parts + 1; i++) {
        if (i < n_parts) {
            QnCudaStage *s = &c->stage[i % QN_CUDA_STAGES];
            size_t at = i * QN_CUDA_STAGE_BYTES,
                   n = QN_MIN(bytes - at, (size_t)QN_CUDA_STAGE_BYTES);
            QN_CUDA_TRY(&c->cu, cuEventSynchronize(s->done));
            QN_CUDA_TRY(&c->cu,
                        cuMemcpyDtoHAsync(s->host, (CUdeviceptr)(uintptr_t)src + at, n, c->stream));
            QN_CUDA_TRY(&c->cu, cuEventRecord(s->done, c->stream));
        }
        if (i > 0) {
            QnCudaStage *s = &c->stage[(i - 1) % QN_CUDA_STAGES];
            size_t at = (i - 1) * QN_CUDA_STAGE_BYTES;
            QN_CUDA_TRY(&c->cu, cuEventSynchronize(s->done));
            memcpy((char *)dst + at, s->host, QN_MIN(bytes - at, (size_t)QN_CUDA_STAGE_BYTES));
        }
    }
    return QN_OK;
}

static QnStatus cuda_write(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    return qn_cuda_write(d->impl, dst, src, bytes);
}

static QnStatus cuda_read(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    return qn_cuda_read(d->impl, dst, src, bytes);
}

static QnStatus cuda_copy(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QnCuda *c = d->impl;
    if (bytes == 0)
        return QN_OK;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src,
                                          bytes, c->stream));
    return QN_OK;
}

static QnStatus cuda_sync(QnDevice *d)
{
    QnCuda *c = d->impl;
    QN_TRY(qn_cuda_enter(c));
    QN_CUDA_TRY(&c->cu, cuStreamSynchronize(c->stream));
    return QN_OK;
}

const QnBackend qn_backend_cuda = {
    .name = "cuda",
    .kernels = cuda_kernels,
    .n_kernels = QN_COUNT(cuda_kernels),
    .balance = 100, /* A100, its data sheet: TF32 156 TFLOP/s, 1.555 TB/s */
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .write = cuda_write,
    .read = cuda_read,
    .copy = cuda_copy,
    .sync = cuda_sync,
    .batch_new = qn_cuda_batch_new,
    .batch_run = qn_cuda_batch_run,
    .batch_free = qn_cuda_batch_free,
    .capture_begin = qn_cuda_capture_begin,
    .capture_end = qn_cuda_capture_end,
    .replay = qn_cuda_replay,
    .capture_free = qn_cuda_capture_free,
    .info = qn_cuda_info,
    .alloc_far = qn_cuda_alloc_far,
    .free_far = qn_cuda_free_far,
    .host_alloc = qn_cuda_host_alloc,
    .host_free = qn_cuda_host_free,
    .copy_ahead = qn_cuda_copy_ahead,
    .event_new = qn_cuda_event_new,
    .event_free = qn_cuda_event_free,
    .event_record = qn_cuda_event_record,
    .event_order = qn_cuda_event_order,
    .event_wait = qn_cuda_event_wait,
};
