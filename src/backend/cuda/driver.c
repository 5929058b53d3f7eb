#include "backend/cuda/driver.h"

#include <string.h>

#include "backend/cuda/host.h"

enum { OLDEST = 12000 }; /* CUDA 12.0: stream-ordered memory, graphs as they are now */

QnStatus qn_cuda_fail(const QnCudaDriver *cu, CUresult err, const char *what)
{
    const char *name = NULL, *text = NULL;
    int n = (int)strcspn(what, "(");
    if (cu->cuGetErrorName(err, &name) != CUDA_SUCCESS || !name)
        name = "an error that the driver has no name for";
    if (cu->cuGetErrorString(err, &text) != CUDA_SUCCESS || !text)
        text = "no text";
    return qn_fail(err == CUDA_ERROR_OUT_OF_MEMORY ? QN_ENOMEM : QN_EDEVICE,
                   "cuda: %.*s fails: %s, number %d (%s)", n, what, name, (int)err, text);
}

static QnStatus load(QnCudaDriver *cu)
{
    static const char *const names[] = { "libcuda.so.1", NULL };
    QN_TRY(qn_cuda_library_open(&cu->lib, "QUERN_LIBCUDA", names));
#define QN_X(name)                                                                                 \
    QN_TRY(qn_cuda_library_symbol(&cu->lib, QN_CUDA_SYMBOL(name), (void **)&cu->name));
    QN_CUDA_CALLS(QN_X)
#undef QN_X
    return QN_OK;
}

static QnStatus start(QnCudaDriver *cu)
{
    QN_CUDA_TRY(cu, cuDriverGetVersion(&cu->version));
    if (cu->version < OLDEST)
        return qn_fail(QN_EUNSUPPORTED,
                       "the driver %s speaks CUDA %d.%d; %d.%d is needed: update it", cu->lib.path,
                       cu->version / 1000, cu->version % 1000 / 10, OLDEST / 1000,
                       OLDEST % 1000 / 10);
    CUresult err = cu->cuInit(0);
    if (err == CUDA_ERROR_NO_DEVICE)
        return qn_fail(QN_ENOTFOUND, "the driver %s sees no CUDA device", cu->lib.path);
    return err == CUDA_SUCCESS ? QN_OK : qn_cuda_fail(cu, err, "cuInit");
}

QnStatus qn_cuda_driver_open(QnCudaDriver *cu)
{
    *cu = (QnCudaDriver){ 0 };
    QnStatus st = load(cu);
    if (st == QN_OK)
        st = start(cu);
    if (st != QN_OK)
        qn_cuda_driver_close(cu);
    return st;
}

void qn_cuda_driver_close(QnCudaDriver *cu)
{
    qn_cuda_library_close(&cu->lib);
}
