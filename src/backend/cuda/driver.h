/* The driver's functions, by dlopen of libcuda.so.1. */
#ifndef QN_BACKEND_CUDA_DRIVER_H
#define QN_BACKEND_CUDA_DRIVER_H

#include <cuda.h>

#include "backend/cuda/library.h"

#define QN_CUDA_CALLS(X)                                                                           \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventSynchronize)                                                                          \
    X(cuMemAllocAsync)                                                                             \
    X(cuMemFreeAsync)                                                                              \
    X(cuMemAllocManaged)                                                                           \
    X(cuMemFree)                                                                                   \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuMemcpyDtoDAsync)                                                                           \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuLaunchKernel)                                                                              \
    X(cuStreamBeginCapture)                                                                        \
    X(cuStreamEndCapture)                                                                          \
    X(cuGraphInstantiate)                                                                          \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphExecDestroy)                                                                          \
    X(cuGraphDestroy)

typedef struct QnCudaDriver {
    QnCudaLibrary lib;
    int version; /* of CUDA that it speaks: 12040 is 12.4 */
#define QN_X(name) QN_TYPEOF(&name) name;
    QN_CUDA_CALLS(QN_X)
#undef QN_X
} QnCudaDriver;

/* Loads and initialises it. Errors name what is missing, too old, or that there is no device. */
QnStatus qn_cuda_driver_open(QnCudaDriver *cu);
void qn_cuda_driver_close(QnCudaDriver *cu); /* all zeros is fine */

/* QN_ENOMEM or QN_EDEVICE with what failed, and the driver's name and text of the error. */
QnStatus qn_cuda_fail(const QnCudaDriver *cu, CUresult err, const char *what);

/* cu: a QnCudaDriver; call: cuStreamSynchronize(stream) */
#define QN_CUDA_TRY(cu, call)                                                                      \
    do {                                                                                           \
        CUresult err_ = (cu)->call;                                                                \
        if (QN_UNLIKELY(err_ != CUDA_SUCCESS))                                                     \
            return qn_cuda_fail((cu), err_, #call);                                                \
    } while (0)

#endif
