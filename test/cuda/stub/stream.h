/* Streams of the stub: what is enqueued is done at once, or kept while they are captured. */
#ifndef QN_TEST_CUDA_STUB_STREAM_H
#define QN_TEST_CUDA_STUB_STREAM_H

#include "cuda/stub/inside.h"

typedef struct StubWork {
    CUdeviceptr dst, src; /* a copy within the device */
    size_t bytes;
    const StubKernel *kernel; /* or a launch; NULL: only counted */
    unsigned blocks, threads;
    void (*call)(const uint64_t *args); /* or a library's */
    uint64_t args[STUB_MAX_PARAM];
} StubWork;

struct CUgraph_st {
    StubWork *work;
    int n, cap;
};

struct CUstream_st {
    bool captures;
    struct CUgraph_st graph;
};

/* Does it, or keeps it while the stream is captured. */
void stub_enqueue(CUstream s, StubWork *w);

#endif
