/* Devices, contexts, memory, modules, launches. Single-threaded, as the tests are. */
#include "cuda/stub/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/stub/stream.h"

StubState stub;

STUB_API void stub_set(const StubOptions *options);
STUB_API void stub_set(const StubOptions *options)
{
    stub.options = *options;
    stub.calls = 0;
    stub.counts.calls = stub.counts.launches = stub.counts.replays = stub.counts.compiles = 0;
    stub.counts.products = stub.counts.products_f8 = stub.counts.asked = stub.counts.failed = 0;
    stub.counts.epilogues = 0;
    stub_note(NULL, NULL);
}

STUB_API void stub_get(StubCounts *counts);
STUB_API void stub_get(StubCounts *counts)
{
    *counts = stub.counts;
}

bool stub_fails(const char *call)
{
    const StubOptions *o = &stub.options;
    stub.counts.calls++;
    if (!o->fail_at || (o->fail_call && strcmp(o->fail_call, call)))
        return false;
    bool fails = ++stub.calls == o->fail_at;
    stub.counts.failed += fails;
    return fails;
}

CUresult stub_error(void)
{
    return (CUresult)stub.options.fail_error;
}

#define ENTER(call)                                                                                \
    do {                                                                                           \
        if (stub_fails(call))                                                                      \
            return stub_error();                                                                   \
    } while (0)
#define NEED_CONTEXT()                                                                             \
    do {                                                                                           \
        if (!stub.current)                                                                         \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
    } while (0)

/* ---- the driver and its devices ---- */

STUB_API CUresult cuInit(unsigned flags)
{
    (void)flags;
    ENTER("cuInit");
    return stub.options.devices < 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

STUB_API CUresult cuDriverGetVersion(int *version)
{
    ENTER("cuDriverGetVersion");
    *version = stub.options.driver_version ? stub.options.driver_version : 13000;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuGetErrorName(CUresult err, const char **name)
{
    *name = err == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : err == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
            : err == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
                                              : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

STUB_API CUresult cuGetErrorString(CUresult err, const char **text)
{
    (void)err;
    *text = "as the test asked";
    return CUDA_SUCCESS;
}

STUB_API CUresult cuDeviceGetCount(int *n)
{
    ENTER("cuDeviceGetCount");
    *n = stub.options.devices ? stub.options.devices : 1;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuDeviceGet(CUdevice *id, int i)
{
    ENTER("cuDeviceGet");
    *id = 100 + i;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuDeviceGetName(char *name, int bytes, CUdevice id)
{
    ENTER("cuDeviceGetName");
    snprintf(name, (size_t)bytes, "Stub %d", id - 100);
    return CUDA_SUCCESS;
}

STUB_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice id)
{
    int sm = stub.options.sm ? stub.options.sm : 90;
    ENTER("cuDeviceGetAttribute");
    switch ((int)what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sm / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sm % 10; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: *value = !stub.options.no_managed; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 100 + 32 * (id - 100); break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1500000; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static size_t memory_bytes(void)
{
    return stub.options.memory_bytes ? (size_t)stub.options.memory_bytes : (size_t)1 << 30;
}

STUB_API CUresult cuDeviceTotalMem(size_t *bytes, CUdevice id)
{
    (void)id;
    ENTER("cuDeviceTotalMem");
    *bytes = memory_bytes();
    return CUDA_SUCCESS;
}

static struct CUctx_st {
    int count;
} *const primary = &(struct CUctx_st){ 0 };

STUB_API CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice id)
{
    (void)id;
    ENTER("cuDevicePrimaryCtxRetain");
    stub.counts.contexts++;
    *c = primary;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuDevicePrimaryCtxRelease(CUdevice id)
{
    (void)id;
    stub.counts.contexts--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuCtxSetCurrent(CUcontext c)
{
    if (c)
        ENTER("cuCtxSetCurrent");
    stub.current = c;
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

typedef enum Kind { OF_DEVICE, MANAGED, PINNED } Kind;

typedef struct Block {
    struct Block *next;
    char *p;
    size_t bytes;
    Kind kind;
    bool is_mapped; /* the device may use it */
} Block;

static Block *blocks;

bool stub_is_live(CUdeviceptr at, size_t bytes)
{
    for (const Block *b = blocks; b; b = b->next) {
        CUdeviceptr p = (CUdeviceptr)(uintptr_t)b->p;
        if (b->is_mapped && at >= p && at - p <= b->bytes && bytes <= b->bytes - (at - p))
            return true;
    }
    return false;
}

static char *take(size_t bytes, Kind kind, bool is_mapped)
{
    Block *b = malloc(sizeof *b);
    size_t whole = (bytes + 255) / 256 * 256;
    *b = (Block){ blocks, aligned_alloc(256, whole), bytes, kind, is_mapped };
    memset(b->p, 0xcd, whole); /* nobody zeroes it */
    blocks = b;
    return b->p;
}

static size_t give_back(uintptr_t p, Kind kind)
{
    for (Block **at = &blocks; *at; at = &(*at)->next) {
        Block *b = *at;
        if ((uintptr_t)b->p != p || b->kind != kind)
            continue;
        size_t bytes = b->bytes;
        *at = b->next;
        free(b->p);
        free(b);
        return bytes;
    }
    abort(); /* freed twice, never allocated, or by another call */
}

STUB_API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    NEED_CONTEXT();
    ENTER("cuMemAllocAsync");
    if (!stream || !bytes || bytes > memory_bytes() - (size_t)stub.counts.memory_bytes)
        return bytes && stream ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)take(bytes, OF_DEVICE, true);
    stub.counts.memory++;
    stub.counts.memory_bytes += (int64_t)bytes;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
    NEED_CONTEXT();
    stub_drain(stream); /* in the stream's order; other streams are the caller's concern */
    stub.counts.memory_bytes -= (int64_t)give_back((uintptr_t)p, OF_DEVICE);
    stub.counts.memory--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    NEED_CONTEXT();
    ENTER("cuMemAllocManaged");
    if (!bytes || flags != CU_MEM_ATTACH_GLOBAL || stub.options.no_managed)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)take(bytes, MANAGED, true);
    stub.counts.managed++;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemFree(CUdeviceptr p)
{
    NEED_CONTEXT();
    give_back((uintptr_t)p, MANAGED);
    stub.counts.managed--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    NEED_CONTEXT();
    ENTER("cuMemHostAlloc");
    *out = take(bytes, PINNED, flags & CU_MEMHOSTALLOC_DEVICEMAP);
    stub.counts.pinned++;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *p, unsigned flags)
{
    NEED_CONTEXT();
    ENTER("cuMemHostGetDevicePointer");
    *out = (CUdeviceptr)(uintptr_t)p;
    return flags || !stub_is_live(*out, 1) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

STUB_API CUresult cuMemFreeHost(void *p)
{
    NEED_CONTEXT();
    give_back((uintptr_t)p, PINNED);
    stub.counts.pinned--;
    return CUDA_SUCCESS;
}

/* ---- modules ---- */

struct CUmod_st {
    StubCode *code; /* NULL: opaque, or kernels are only counted */
    char *text;
};

STUB_API CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    NEED_CONTEXT();
    ENTER("cuModuleLoadData");
    bool ours = !strncmp(image, STUB_MAGIC, strlen(STUB_MAGIC));
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (!ours && memcmp(image, "\177ELF", 4) && strncmp(image, "//", 2)) {
        free(m);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (ours)
        m->text = strdup(image);
    if (ours && stub.options.runs_kernels && !(m->code = stub_code_load(m->text))) {
        free(m->text);
        free(m);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    stub.counts.modules++;
    *out = m;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuModuleUnload(CUmodule m)
{
    NEED_CONTEXT();
    stub_code_free(m->code);
    free(m->text);
    free(m);
    stub.counts.modules--;
    return CUDA_SUCCESS;
}

/* Whether the text has the kernel: spelled out, or made by a macro of its first words, as
 * QN_FOLD(sum, ...) makes sum_fold. */
static bool has_kernel(const char *text, const char *name)
{
    const char *cut = strrchr(name, '_');
    char call[256];
    snprintf(call, sizeof call, "%s(", name);
    if (strstr(text, call))
        return true;
    snprintf(call, sizeof call, "(%.*s,", cut ? (int)(cut - name) : 0, name);
    return cut && strstr(text, call);
}

STUB_API CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    static char opaque;
    NEED_CONTEXT();
    ENTER("cuModuleGetFunction");
    if (m->text && !has_kernel(m->text, name))
        return CUDA_ERROR_NOT_FOUND;
    *out = m->code ? (CUfunction)stub_code_find(m->code, name) : (CUfunction)&opaque;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
