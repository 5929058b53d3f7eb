/* cuBLASLt by dlopen: matrix products of tensor cores, with a bias in the same kernel. */
#ifndef QN_BACKEND_CUDA_BLAS_H
#define QN_BACKEND_CUDA_BLAS_H

#include <cublasLt.h>

#include "backend/cuda/library.h"

#define QN_BLAS_CALLS(X)                                                                           \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatrixLayoutSetAttribute)                                                            \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoCheck)                                                                     \
    X(cublasLtMatmul)

typedef struct QnCudaBlas {
    QnCudaLibrary lib;
    cublasLtHandle_t handle; /* in the current context */
#define QN_X(name) QN_TYPEOF(&name) name;
    QN_BLAS_CALLS(QN_X)
#undef QN_X
} QnCudaBlas;

/* Of a version for this driver (as 12040), in the current context. */
QnStatus qn_cuda_blas_open(QnCudaBlas *blas, int driver_version);
void qn_cuda_blas_close(QnCudaBlas *blas); /* all zeros is fine */
QnStatus qn_cuda_blas_fail(const QnCudaBlas *blas, cublasStatus_t err, const char *what);

/* blas: a QnCudaBlas; call: cublasLtCreate(&handle) */
#define QN_CUDA_BLAS_TRY(blas, call)                                                               \
    do {                                                                                           \
        cublasStatus_t err_ = (blas)->call;                                                        \
        if (QN_UNLIKELY(err_ != CUBLAS_STATUS_SUCCESS))                                            \
            return qn_cuda_blas_fail((blas), err_, #call);                                         \
    } while (0)

#endif
