/* NVRTC for tests: CUDA C compiled for real architectures, on any machine that has the library;
 * nothing is run. Its header is not required. */
#ifndef QN_TEST_OPS_NVRTC_H
#define QN_TEST_OPS_NVRTC_H

#include "ops/harness.h"

#include <dlfcn.h>

/* Everything that device text is to run on. */
static const int nvrtc_archs[] = { 75, 80, 86, 89, 90, 100, 120 };
enum { nvrtc_optimised = 90 }; /* for which all of it is compiled and optimised: test_nvrtc.c */

typedef enum NvrtcEffort { NVRTC_OPTIMISED, NVRTC_FAST } NvrtcEffort;

typedef struct Nvrtc {
    void *lib;
    bool has_fast; /* CUDA 13's takes --Ofast-compile, with which it needs a sixth of the time */
    int (*create)(void **p, const char *src, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(void *p, int n, const char *const *options);
    int (*log_bytes)(void *p, size_t *n);
    int (*log)(void *p, char *text);
    int (*ptx_bytes)(void *p, size_t *n);
    int (*ptx)(void *p, char *text);
    int (*cubin_bytes)(void *p, size_t *n);
    int (*destroy)(void **p);
    int (*count_archs)(int *n);
    int (*list_archs)(int *archs);
} Nvrtc;

static inline void *nvrtc_symbol(const Nvrtc *nv, const char *name)
{
    void *f = dlsym(nv->lib, name);
    if (!f)
        fail_msg("libnvrtc has no %s", name);
    return f;
}

static const char nvrtc_fast[] = "--Ofast-compile=max";

static inline bool nvrtc_takes(const Nvrtc *nv, const char *option)
{
    void *p;
    assert_int_equal(nv->create(&p, "", "empty", 0, NULL, NULL), 0);
    bool ok = !nv->compile(p, 1, &option);
    nv->destroy(&p);
    return ok;
}

/* lib stays NULL where there is none. */
static inline void nvrtc_open(Nvrtc *nv)
{
    static const char *const names[] = { "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                         "/usr/local/cuda/lib64/libnvrtc.so",
                                         "/usr/local/cuda/lib/libnvrtc.so" };
    for (int i = 0; i < QN_COUNT(names) && !nv->lib; i++)
        nv->lib = dlopen(names[i], RTLD_NOW);
    if (!nv->lib)
        return;
    *(void **)&nv->create = nvrtc_symbol(nv, "nvrtcCreateProgram");
    *(void **)&nv->compile = nvrtc_symbol(nv, "nvrtcCompileProgram");
    *(void **)&nv->log_bytes = nvrtc_symbol(nv, "nvrtcGetProgramLogSize");
    *(void **)&nv->log = nvrtc_symbol(nv, "nvrtcGetProgramLog");
    *(void **)&nv->ptx_bytes = nvrtc_symbol(nv, "nvrtcGetPTXSize");
    *(void **)&nv->ptx = nvrtc_symbol(nv, "nvrtcGetPTX");
    *(void **)&nv->cubin_bytes = nvrtc_symbol(nv, "nvrtcGetCUBINSize");
    *(void **)&nv->destroy = nvrtc_symbol(nv, "nvrtcDestroyProgram");
    *(void **)&nv->count_archs = nvrtc_symbol(nv, "nvrtcGetNumSupportedArchs");
    *(void **)&nv->list_archs = nvrtc_symbol(nv, "nvrtcGetSupportedArchs");
    nv->has_fast = nvrtc_takes(nv, nvrtc_fast);
}

static inline bool nvrtc_knows(const Nvrtc *nv, int arch)
{
    int n = 0, archs[128];
    assert_int_equal(nv->count_archs(&n), 0);
    assert_true(n > 0 && n <= QN_COUNT(archs));
    assert_int_equal(nv->list_archs(archs), 0);
    for (int i = 0; i < n; i++) {
        if (archs[i] == arch)
            return true;
    }
    return false;
}

/* Machine code for sm_<arch>, without a warning; *ptx (may be NULL) is to be freed. */
static inline bool nvrtc_compile(const Nvrtc *nv, const char *text, QnDtype f, int arch,
                                 NvrtcEffort effort, char **ptx)
{
    char target[32];
    const char *options[] = { target, "-DQN_DEVICE",
                              f == QN_DTYPE_F16    ? "-DQN_F16"
                              : f == QN_DTYPE_BF16 ? "-DQN_BF16"
                                                   : "-DQN_F32",
                              nvrtc_fast };
    int n_options = QN_COUNT(options) - !(effort == NVRTC_FAST && nv->has_fast);
    void *p;
    size_t n = 0;
    snprintf(target, sizeof target, "--gpu-architecture=sm_%d", arch);
    assert_int_equal(nv->create(&p, text, "batch", 0, NULL, NULL), 0);
    int err = nv->compile(p, n_options, options);
    assert_int_equal(nv->log_bytes(p, &n), 0);
    bool ok = !err && n <= 1; /* the log is empty */
    if (n > 1) {
        char *log = malloc(n + 1);
        assert_non_null(log);
        nv->log(p, log);
        print_message("sm_%d, %s:\n%.3000s\n", arch, qn_dtype_name(f), log);
        free(log);
    }
    if (!err) {
        assert_int_equal(nv->cubin_bytes(p, &n), 0);
        ok = ok && n > 0;
    }
    if (!err && ptx) {
        assert_int_equal(nv->ptx_bytes(p, &n), 0);
        *ptx = malloc(n + 1);
        assert_non_null(*ptx);
        assert_int_equal(nv->ptx(p, *ptx), 0);
        (*ptx)[n] = 0;
    }
    nv->destroy(&p);
    return ok;
}

#endif
