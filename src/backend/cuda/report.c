/* What doctor says of CUDA on this machine. */
#include "backend/cuda/cuda.h"

#include <string.h>

#include "backend/cuda/host.h"

typedef struct Report {
    QnPluginSay *say;
    void *ctx;
} Report;

static void say(const Report *r, QnPluginVerdict verdict, const char *what, QnStr *text)
{
    r->say(r->ctx, verdict, what, qn_str_text(text));
    qn_str_fini(text);
}

/* A library beside the driver's: its version, or where it was looked for. */
static void report_library(const Report *r, const char *what, const char *variable,
                           const char *const *names, const char *version_symbol)
{
    QnCudaLibrary lib;
    QnStr text = { 0 };
    size_t (*version)(void) = NULL;
    if (qn_cuda_library_open(&lib, variable, names) != QN_OK) {
        qn_str_add(&text, qn_error_last()->text);
        say(r, QN_PLUGIN_MISSING, what, &text);
        return;
    }
    if (qn_cuda_library_symbol(&lib, version_symbol, (void **)&version) == QN_OK)
        qn_str_printf(&text, "version %zu, %s", version(), lib.path);
    else
        qn_str_printf(&text, "%s, which does not say its version", lib.path);
    say(r, QN_PLUGIN_FOUND, what, &text);
    qn_cuda_library_close(&lib);
}

/* sm 0: there is no device to compile for. */
static void report_nvrtc(const Report *r, int driver_version, int sm)
{
    QnNvrtc rtc;
    QnStr text = { 0 };
    QnPluginVerdict verdict = QN_PLUGIN_FOUND;
    if (qn_nvrtc_open(&rtc, driver_version, sm ? sm : 75) != QN_OK) {
        qn_str_add(&text, qn_error_last()->text);
        verdict = QN_PLUGIN_MISSING;
    } else {
        qn_str_printf(&text, "version %d.%d, %s", rtc.major, rtc.minor, rtc.lib.path);
        if (sm)
            qn_str_printf(&text, "; compiles for sm_%d%s", rtc.target, rtc.is_ptx ? " as PTX" : "");
        qn_nvrtc_close(&rtc);
    }
    say(r, verdict, "nvrtc", &text);
}

static void report_device(const Report *r, const QnCudaDriver *cu, int i, int *sm)
{
    CUdevice id;
    int major = 0, minor = 0;
    size_t bytes = 0;
    char name[128] = "", math[64];
    QnStr text = { 0 };
    if (cu->cuDeviceGet(&id, i) != CUDA_SUCCESS ||
        cu->cuDeviceGetName(name, (int)sizeof name - 1, id) != CUDA_SUCCESS ||
        cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id) ||
        cu->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id) ||
        cu->cuDeviceTotalMem(&bytes, id) != CUDA_SUCCESS) {
        qn_str_printf(&text, "cuda:%d does not answer", i);
        say(r, QN_PLUGIN_BROKEN, "cuda device", &text);
        return;
    }
    *sm = major * 10 + minor;
    const QnCudaArch *a = qn_cuda_arch_find(*sm);
    qn_str_printf(&text, "cuda:%d %s, sm_%d, %.1f GiB", i, name, *sm,
                  (double)bytes / (double)((size_t)1 << 30));
    if (a)
        qn_str_printf(&text, ", %s; tensor cores: %s", a->name, qn_cuda_arch_math(a, math));
    else
        qn_str_add(&text, "; too old: sm_75 is needed");
    say(r, a ? QN_PLUGIN_FOUND : QN_PLUGIN_MISSING, "cuda device", &text);
}

void qn_cuda_report(QnPluginSay *say_fn, void *ctx)
{
    static const char *const blas[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        NULL };
    static const char *const dnn[] = { "libcudnn.so.9", "libcudnn.so", NULL };
    Report r = { say_fn, ctx };
    QnCudaDriver cu;
    QnStr text = { 0 };
    int n = 0, sm = 0, version = 13000;
    if (qn_cuda_driver_open(&cu) != QN_OK) {
        qn_str_add(&text, qn_error_last()->text);
        say(&r, QN_PLUGIN_MISSING, "cuda driver", &text);
    } else {
        version = cu.version;
        qn_str_printf(&text, "CUDA %d.%d, %s", version / 1000, version % 1000 / 10, cu.lib.path);
        say(&r, QN_PLUGIN_FOUND, "cuda driver", &text);
        if (cu.cuDeviceGetCount(&n) == CUDA_SUCCESS) {
            for (int i = 0; i < n; i++)
                report_device(&r, &cu, i, &sm);
        }
        qn_cuda_driver_close(&cu);
    }
    report_nvrtc(&r, version, sm);
    report_library(&r, "cublasLt", "QUERN_LIBCUBLASLT", blas, "cublasLtGetVersion");
    report_library(&r, "cudnn", "QUERN_LIBCUDNN", dnn, "cudnnGetVersion");
}
