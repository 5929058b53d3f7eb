#include "backend/cuda/blas.h"

#include <string.h>

#include "backend/cuda/host.h"

QnStatus qn_cuda_blas_fail(const QnCudaBlas *blas, cublasStatus_t err, const char *what)
{
    return qn_fail(err == CUBLAS_STATUS_ALLOC_FAILED ? QN_ENOMEM : QN_EDEVICE,
                   "cublasLt: %.*s fails: %s", (int)strcspn(what, "("), what,
                   blas->cublasLtGetStatusString(err));
}

static QnStatus load(QnCudaBlas *blas, int driver_version)
{
    static const char *const newer[] = { "libcublasLt.so.13", "libcublasLt.so.12", NULL };
    static const char *const older[] = { "libcublasLt.so.12", NULL };
    QN_TRY(qn_cuda_library_open(&blas->lib, "QUERN_LIBCUBLASLT",
                                driver_version >= 13000 ? newer : older));
#define QN_X(name)                                                                                 \
    QN_TRY(qn_cuda_library_symbol(&blas->lib, QN_CUDA_SYMBOL(name), (void **)&blas->name));
    QN_BLAS_CALLS(QN_X)
#undef QN_X
    QN_CUDA_BLAS_TRY(blas, cublasLtCreate(&blas->handle));
    return QN_OK;
}

QnStatus qn_cuda_blas_open(QnCudaBlas *blas, int driver_version)
{
    *blas = (QnCudaBlas){ 0 };
    QnStatus st = load(blas, driver_version);
    if (st != QN_OK)
        qn_cuda_blas_close(blas);
    return st;
}

void qn_cuda_blas_close(QnCudaBlas *blas)
{
    if (blas->handle)
        blas->cublasLtDestroy(blas->handle);
    qn_cuda_library_close(&blas->lib);
    blas->handle = NULL;
}
