/* CUDA devices: the operators' device text through NVRTC, on one stream. Everything here is called
 * with the device's context current, which qn_cuda_enter sees to. */
#ifndef QN_BACKEND_CUDA_CUDA_H
#define QN_BACKEND_CUDA_CUDA_H

#include "backend/cuda/arch.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/nvrtc.h"
#include "backend/cuda/product.h"
#include "rt/device.h"

typedef struct QnCudaProgram {
    uint64_t hash;
    char *key; /* options and text */
    CUmodule module;
} QnCudaProgram;

enum { QN_CUDA_STAGES = 2, QN_CUDA_STAGE_BYTES = 4 << 20 };

/* Copies from and to the host go through pinned memory, half after half: what is written may be
 * changed as soon as the call returns, while the copy is still on its way. */
typedef struct QnCudaStage {
    char *host;
    CUevent done; /* the last copy that used it */
} QnCudaStage;

typedef struct QnCuda { /* QnDevice.impl */
    QnCudaDriver cu;
    QnNvrtc rtc; /* lib.handle NULL: there is none, rtc_error says why */
    char rtc_error[QN_ERROR_TEXT_BYTES];
    QnCudaBlas blas; /* handle NULL: there is none, blas_error says why */
    char blas_error[QN_ERROR_TEXT_BYTES];
    QnCudaChoices choices;
    char choices_maker[256];
    CUdevice id;
    CUcontext context;
    CUstream stream, copies; /* what computes; what travels meanwhile */
    QnCudaStage stage[QN_CUDA_STAGES];
    char name[128];
    int sm; /* 90: compute capability 9.0 */
    const QnCudaArch *arch;
    bool is_managed;  /* far memory is managed, else pinned */
    char cache[1024]; /* folder of compiled programs; "" where none is kept */
    QnCudaProgram *programs;
    int64_t n_programs, cap_programs;
} QnCuda;

extern const QnBackend qn_backend_cuda;

QnStatus qn_cuda_enter(QnCuda *c);

/* device.c, for kernels that run on the host: complete on return. */
QnStatus qn_cuda_read(QnCuda *c, void *dst, const void *src, size_t bytes);
QnStatus qn_cuda_write(QnCuda *c, void *dst, const void *src, size_t bytes);

/* program.c: the function `kernel` of a program (after the dialect), compiled once a device;
 * storage is the type of QN_T. */
QnStatus qn_cuda_kernel(QnCuda *c, const char *text, const char *kernel, QnDtype storage,
                        CUfunction *out);
void qn_cuda_programs_free(QnCuda *c);

/* graph.c: the backend's capture and replay. */
QnStatus qn_cuda_capture_begin(QnDevice *d);
QnStatus qn_cuda_capture_end(QnDevice *d, void **graph);
QnStatus qn_cuda_replay(QnDevice *d, void *graph);
void qn_cuda_capture_free(QnDevice *d, void *graph);

/* ahead.c: the backend's second queue, pinned memory and events. */
void *qn_cuda_host_alloc(QnDevice *d, size_t bytes);
void qn_cuda_host_free(QnDevice *d, void *p, size_t bytes);
QnStatus qn_cuda_copy_ahead(QnDevice *d, void *dst, const void *src, size_t bytes);
QnStatus qn_cuda_event_new(QnDevice *d, void **event);
void qn_cuda_event_free(QnDevice *d, void *event);
QnStatus qn_cuda_event_record(QnDevice *d, QnQueue q, void *event);
QnStatus qn_cuda_event_order(QnDevice *d, QnQueue q, void *event);
QnStatus qn_cuda_event_wait(QnDevice *d, void *event);

/* far.c: what it is, and memory of the host at its addresses; find_far asks once which kind. */
void qn_cuda_find_far(QnCuda *c);
QnStatus qn_cuda_info(QnDevice *d, QnDeviceInfo *out);
void *qn_cuda_alloc_far(QnDevice *d, size_t bytes);
void qn_cuda_free_far(QnDevice *d, void *p, size_t bytes);

/* batch.c: the backend's launches of many steps. */
QnStatus qn_cuda_batch_new(QnDevice *d, const struct QnBatchLaunch *launch, void **out);
QnStatus qn_cuda_batch_run(QnDevice *d, void *batch);
void qn_cuda_batch_free(QnDevice *d, void *batch);

/* report.c: libraries and devices, for doctor. */
void qn_cuda_report(QnPluginSay *say, void *ctx);

#endif
