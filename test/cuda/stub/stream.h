/* Streams of the stub: what is enqueued is done at once, or when somebody waits for it, or kept as
 * a graph while the stream is captured. */
#ifndef QN_TEST_CUDA_STUB_STREAM_H
#define QN_TEST_CUDA_STUB_STREAM_H

#include "cuda/stub/inside.h"

typedef struct StubWork {
    CUdeviceptr dst, src; /* a copy; both are addresses of this machine */
    size_t bytes;
    const StubKernel *kernel; /* or a launch; NULL: only counted */
    unsigned blocks, threads;
    void (*call)(const uint64_t *args); /* or a library's */
    CUgraphExec graph;                  /* or the launch of one */
    CUstream other;                     /* or waiting until this stream has done so much */
    int64_t other_count;
    uint64_t args[STUB_MAX_PARAM];
} StubWork;

struct CUgraph_st {
    StubWork *work;
    int n, cap;
};

struct CUstream_st {
    int number;
    bool captures;
    struct CUgraph_st graph; /* so far captured */
    StubWork *queue;         /* not done yet, n of them */
    int n, cap;
    int64_t n_done; /* before them */
};

/* Does it, or keeps it. */
void stub_enqueue(CUstream s, StubWork *w);
/* Does all that the stream holds. */
void stub_drain(CUstream s);
/* Notes a call for stub_trace. */
void stub_note(CUstream s, const char *what);

#endif
