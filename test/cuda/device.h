/* What tests of the CUDA plugin share: the plugin of this build on the stub driver beside the test.
 */
#ifndef QN_TEST_CUDA_DEVICE_H
#define QN_TEST_CUDA_DEVICE_H

#include "io/temp.h"
#include "test.h"

#include <dlfcn.h>
#include <unistd.h>

#include "cuda/stub/stub.h"
#include "rt/device.h"

static StubSet *stub_set;
static StubGet *stub_get;
static StubTrace *stub_trace;
static char build_dir[1024]; /* where the plugin is */

/* false: this build has no plugin. Programs are cached in the test's own folder. */
static inline bool cuda_setup(void)
{
    char stub[1100], plugin[1100];
    ssize_t n = readlink("/proc/self/exe", build_dir, sizeof build_dir - 1);
    assert_true(n > 0);
    build_dir[n] = '\0';
    for (int i = 0; i < 2; i++) /* build/test/test_x */
        *strrchr(build_dir, '/') = '\0';
    snprintf(stub, sizeof stub, "%s/test/libcuda_stub.so", build_dir);
    snprintf(plugin, sizeof plugin, "%s/libquern_cuda.so", build_dir);
    if (access(plugin, R_OK))
        return false;
    setenv("QUERN_PLUGINS", build_dir, 1);
    setenv("QUERN_LIBCUDA", stub, 1);
    setenv("QUERN_LIBNVRTC", stub, 1);
    setenv("QUERN_LIBCUBLASLT", stub, 1);
    setenv("XDG_CACHE_HOME", temp_path("cache"), 1);
    void *lib = dlopen(stub, RTLD_NOW);
    if (!lib)
        fail_msg("%s", dlerror());
    *(void **)&stub_set = dlsym(lib, "stub_set");
    *(void **)&stub_get = dlsym(lib, "stub_get");
    *(void **)&stub_trace = dlsym(lib, "stub_trace");
    assert_non_null(stub_set);
    assert_non_null(stub_trace);
    assert_non_null(stub_get);
    stub_set(&(StubOptions){ 0 });
    return true;
}

static inline StubCounts counts(void)
{
    StubCounts c;
    stub_get(&c);
    return c;
}

/* Nothing of the device is left. */
static inline void assert_nothing_left(const char *when)
{
    StubCounts c = counts();
    if (c.memory | c.memory_bytes | c.managed | c.pinned | c.contexts | c.streams | c.events |
        c.modules | c.graphs | c.execs | c.programs | c.blas)
        fail_msg("%s: left are %lld blocks, %lld managed, %lld pinned, %lld contexts, %lld "
                 "streams, %lld events, "
                 "%lld modules, %lld graphs, %lld of them ready, %lld programs, %lld of cublasLt",
                 when, (long long)c.memory, (long long)c.managed, (long long)c.pinned,
                 (long long)c.contexts, (long long)c.streams, (long long)c.events,
                 (long long)c.modules, (long long)c.graphs, (long long)c.execs,
                 (long long)c.programs, (long long)c.blas);
}

#endif
