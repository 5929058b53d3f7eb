/* What the parts of the stub share. */
#ifndef QN_TEST_CUDA_STUB_INSIDE_H
#define QN_TEST_CUDA_STUB_INSIDE_H

#include <cuda.h>
#include <nvrtc.h>

#include "cuda/stub/stub.h"

#define STUB_API __attribute__((visibility("default")))

enum { STUB_MAX_PARAM = 128 };
/* Images that NVRTC of this library makes begin with it; all others are opaque. */
#define STUB_MAGIC "// stub image\n"

typedef struct StubState {
    StubOptions options;
    StubCounts counts;
    int64_t calls; /* that could have failed */
    CUcontext current;
} StubState;

extern StubState stub;

/* Counts the call and says whether it is the one to fail: then error() is what it returns. */
bool stub_fails(const char *call);
CUresult stub_error(void);

/* Whether the bytes lie in memory of the device that is allocated. */
bool stub_is_live(CUdeviceptr p, size_t bytes);

/* run.c */
typedef struct StubKernel StubKernel;
typedef struct StubCode StubCode;           /* of a module */
StubCode *stub_code_load(const char *text); /* NULL: does not compile */
void stub_code_free(StubCode *code);
StubKernel *stub_code_find(StubCode *code, const char *name); /* NULL: no such kernel */
/* Copies the arguments, each of its own size, to `to` (8 bytes each); false: a pointer that is not
 * the device's. */
bool stub_kernel_args(const StubKernel *k, void *const *from, uint64_t *to);
void stub_kernel_run(const StubKernel *k, uint64_t *args, unsigned blocks, unsigned threads);

#endif
