#include "backend/cuda/nvrtc.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/host.h"

static QnStatus fail(const QnNvrtc *rtc, nvrtcResult err, const char *what)
{
    return qn_fail(QN_EDEVICE, "nvrtc: %s fails: %s", what, rtc->nvrtcGetErrorString(err));
}

/* Code of a newer major version of CUDA than the driver's does not load. */
static QnStatus load(QnNvrtc *rtc, int driver_version)
{
    static const char *const newer[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL };
    static const char *const older[] = { "libnvrtc.so.12", "libnvrtc.so", NULL };
    QN_TRY(
        qn_cuda_library_open(&rtc->lib, "QUERN_LIBNVRTC", driver_version >= 13000 ? newer : older));
#define QN_X(name)                                                                                 \
    QN_TRY(qn_cuda_library_symbol(&rtc->lib, QN_CUDA_SYMBOL(name), (void **)&rtc->name));
    QN_NVRTC_CALLS(QN_X)
#undef QN_X
    nvrtcResult err = rtc->nvrtcVersion(&rtc->major, &rtc->minor);
    if (err != NVRTC_SUCCESS)
        return fail(rtc, err, "nvrtcVersion");
    if (rtc->major > driver_version / 1000)
        return qn_fail(
            QN_EUNSUPPORTED,
            "%s is of CUDA %d.%d, the driver speaks %d.%d: update the driver, or install "
            "libnvrtc.so.%d",
            rtc->lib.path, rtc->major, rtc->minor, driver_version / 1000,
            driver_version % 1000 / 10, driver_version / 1000);
    return QN_OK;
}

/* The device's own architecture, or PTX of the newest that is older. */
static QnStatus choose_target(QnNvrtc *rtc, int arch)
{
    int n = 0, list[256], best = 0;
    nvrtcResult err = rtc->nvrtcGetNumSupportedArchs(&n);
    if (err == NVRTC_SUCCESS && (n <= 0 || n > QN_COUNT(list)))
        return qn_fail(QN_EUNSUPPORTED, "%s says that it knows %d architectures", rtc->lib.path, n);
    if (err == NVRTC_SUCCESS)
        err = rtc->nvrtcGetSupportedArchs(list);
    if (err != NVRTC_SUCCESS)
        return fail(rtc, err, "nvrtcGetSupportedArchs");
    for (int i = 0; i < n; i++) {
        if (list[i] <= arch && list[i] > best)
            best = list[i];
    }
    if (!best)
        return qn_fail(
            QN_EUNSUPPORTED,
            "%s (CUDA %d.%d) no longer knows the device's architecture sm_%d: install an "
            "older libnvrtc",
            rtc->lib.path, rtc->major, rtc->minor, arch);
    rtc->target = best;
    rtc->is_ptx = best != arch;
    return QN_OK;
}

QnStatus qn_nvrtc_open(QnNvrtc *rtc, int driver_version, int arch)
{
    *rtc = (QnNvrtc){ 0 };
    QnStatus st = load(rtc, driver_version);
    if (st == QN_OK)
        st = choose_target(rtc, arch);
    if (st != QN_OK)
        qn_nvrtc_close(rtc);
    return st;
}

void qn_nvrtc_close(QnNvrtc *rtc)
{
    qn_cuda_library_close(&rtc->lib);
}

void qn_nvrtc_target(const QnNvrtc *rtc, char out[32])
{
    snprintf(out, 32, "--gpu-architecture=%s_%d", rtc->is_ptx ? "compute" : "sm", rtc->target);
}

static QnStatus fail_compile(const QnNvrtc *rtc, nvrtcProgram p, nvrtcResult err)
{
    enum { SHOWN = QN_ERROR_TEXT_BYTES / 2 };
    size_t n = 0;
    char *log = NULL;
    if (rtc->nvrtcGetProgramLogSize(p, &n) == NVRTC_SUCCESS && (log = qn_alloc(n + 1)) &&
        rtc->nvrtcGetProgramLog(p, log) != NVRTC_SUCCESS)
        log[0] = '\0';
    for (char *c = log; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    QnStatus st = qn_fail(QN_EDEVICE, "nvrtc: a kernel's text does not compile (%s): %.*s",
                          rtc->nvrtcGetErrorString(err), SHOWN, log ? log : "");
    qn_free(log);
    return st;
}

static QnStatus take_image(const QnNvrtc *rtc, nvrtcProgram p, void **image, size_t *bytes)
{
    size_t n = 0;
    nvrtcResult err = rtc->is_ptx ? rtc->nvrtcGetPTXSize(p, &n) : rtc->nvrtcGetCUBINSize(p, &n);
    if (err != NVRTC_SUCCESS)
        return fail(rtc, err, "asking for the code's size");
    char *code = qn_alloc(n + 1); /* PTX is text and ends with a NUL */
    if (!code)
        return QN_ENOMEM;
    err = rtc->is_ptx ? rtc->nvrtcGetPTX(p, code) : rtc->nvrtcGetCUBIN(p, code);
    if (err != NVRTC_SUCCESS) {
        qn_free(code);
        return fail(rtc, err, "taking the code");
    }
    *image = code;
    *bytes = n + 1;
    return QN_OK;
}

QnStatus qn_nvrtc_compile(const QnNvrtc *rtc, const char *text, const char *const *options, int n,
                          void **image, size_t *bytes)
{
    nvrtcProgram p = NULL;
    nvrtcResult err = rtc->nvrtcCreateProgram(&p, text, "quern", 0, NULL, NULL);
    if (err != NVRTC_SUCCESS)
        return fail(rtc, err, "nvrtcCreateProgram");
    err = rtc->nvrtcCompileProgram(p, n, options);
    QnStatus st =
        err == NVRTC_SUCCESS ? take_image(rtc, p, image, bytes) : fail_compile(rtc, p, err);
    rtc->nvrtcDestroyProgram(&p);
    return st;
}
