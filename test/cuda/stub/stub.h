/* A CUDA driver and NVRTC for tests, behind which is host memory: the plugin's host code runs its
 * paths without a card, every object is counted, any call can be made to fail. "Compiling" keeps
 * the text; kernels run on the host (run.c), or are only counted. This part is for tests, which
 * know no header of CUDA. */
#ifndef QN_TEST_CUDA_STUB_H
#define QN_TEST_CUDA_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct StubOptions {
    int devices, sm, driver_version; /* 0: 1, 90, 13000 */
    int newest_arch;                 /* that NVRTC knows, 0: 121 */
    int64_t memory_bytes;            /* of the device, 0: 1 GiB */
    bool no_managed;                 /* memory */
    bool runs_kernels;               /* otherwise launches are counted */
    unsigned lazy;                   /* by bits, streams in the order of their making: what is
                                      * enqueued is done when somebody waits for it, no sooner */
    bool knows_no_product;           /* cublasLt has no algorithm */
    bool knows_no_f8;                /* nor has it for operands of 8 bits */
    size_t blas_version;             /* of cublasLt, 0: 120900 */
    const char *fail_call;           /* NULL: any but those that give something back */
    int64_t fail_at;                 /* the n-th such call, from 1; 0: none */
    int fail_error;
} StubOptions;

typedef struct StubCounts {
    int64_t memory, memory_bytes, managed, pinned, contexts, streams, events, modules, graphs,
        execs, programs, blas;                                                /* alive */
    int64_t calls, launches, replays, compiles, products, products_f8, asked; /* made, together */
    int64_t failed;                                                           /* as asked for */
    unsigned epilogues; /* bits of all that products had: cublasLtEpilogue_t */
} StubCounts;

/* Exported by the library; also counts all calls from 0 again. */
typedef void StubSet(const StubOptions *options);
typedef void StubGet(StubCounts *counts);
/* What was enqueued since then, stream by number: "1 HtoD, 1 record, 0 wait, 0 launch"; the first
 * 4,000 bytes. */
typedef const char *StubTrace(void);

#endif
