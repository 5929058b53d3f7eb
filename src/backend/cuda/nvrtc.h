/* NVRTC: device text to machine code of the real architecture, or to PTX, which the driver then
 * translates, where the architecture is newer than the library. */
#ifndef QN_BACKEND_CUDA_NVRTC_H
#define QN_BACKEND_CUDA_NVRTC_H

#include <nvrtc.h>

#include "backend/cuda/library.h"

#define QN_NVRTC_CALLS(X)                                                                          \
    X(nvrtcVersion)                                                                                \
    X(nvrtcGetErrorString)                                                                         \
    X(nvrtcGetNumSupportedArchs)                                                                   \
    X(nvrtcGetSupportedArchs)                                                                      \
    X(nvrtcCreateProgram)                                                                          \
    X(nvrtcCompileProgram)                                                                         \
    X(nvrtcGetProgramLogSize)                                                                      \
    X(nvrtcGetProgramLog)                                                                          \
    X(nvrtcGetCUBINSize)                                                                           \
    X(nvrtcGetCUBIN)                                                                               \
    X(nvrtcGetPTXSize)                                                                             \
    X(nvrtcGetPTX)                                                                                 \
    X(nvrtcDestroyProgram)

typedef struct QnNvrtc {
    QnCudaLibrary lib;
    int major, minor;
    int target;  /* the architecture that is compiled for: 90 */
    bool is_ptx; /* no machine code: the device is newer than the library */
#define QN_X(name) QN_TYPEOF(&name) name;
    QN_NVRTC_CALLS(QN_X)
#undef QN_X
} QnNvrtc;

/* Of a version that the driver (as 12040) can load the code of; arch is the device's, as 90. */
QnStatus qn_nvrtc_open(QnNvrtc *rtc, int driver_version, int arch);
void qn_nvrtc_close(QnNvrtc *rtc); /* all zeros is fine */

/* The option that names the target: "--gpu-architecture=sm_90". */
void qn_nvrtc_target(const QnNvrtc *rtc, char out[32]);
/* An image for cuModuleLoadData, to be freed by qn_free. An error has the log's first lines. */
QnStatus qn_nvrtc_compile(const QnNvrtc *rtc, const char *text, const char *const *options, int n,
                          void **image, size_t *bytes);

#endif
