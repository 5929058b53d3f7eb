/* Streams, events, copies, launches and graphs. */
#include "cuda/stub/stream.h"

#include <stdlib.h>
#include <string.h>

#define ENTER(call)                                                                                \
    do {                                                                                           \
        if (!stub.current)                                                                         \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
        if (stub_fails(call))                                                                      \
            return stub_error();                                                                   \
    } while (0)

STUB_API CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    ENTER("cuStreamCreate");
    *out = calloc(1, sizeof **out);
    stub.counts.streams++;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuStreamDestroy(CUstream s)
{
    free(s->graph.work);
    free(s);
    stub.counts.streams--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuStreamSynchronize(CUstream s)
{
    ENTER("cuStreamSynchronize");
    return s->captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

struct CUevent_st {
    int unused;
};

STUB_API CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    ENTER("cuEventCreate");
    *out = calloc(1, sizeof **out);
    stub.counts.events++;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuEventDestroy(CUevent e)
{
    free(e);
    stub.counts.events--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuEventRecord(CUevent e, CUstream s)
{
    (void)s;
    ENTER("cuEventRecord");
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

STUB_API CUresult cuEventSynchronize(CUevent e)
{
    ENTER("cuEventSynchronize");
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- work ---- */

static void do_work(StubWork *w)
{
    if (w->bytes)
        memcpy((void *)(uintptr_t)w->dst, (const void *)(uintptr_t)w->src, w->bytes);
    else if (w->call)
        w->call(w->args);
    else if (w->kernel) {
        uint64_t args[STUB_MAX_PARAM];
        memcpy(args, w->args, sizeof args);
        stub_kernel_run(w->kernel, args, w->blocks, w->threads);
    }
}

void stub_enqueue(CUstream s, StubWork *w)
{
    struct CUgraph_st *g = &s->graph;
    if (!s->captures) {
        do_work(w);
        return;
    }
    if (g->n == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 16;
        g->work = realloc(g->work, (size_t)g->cap * sizeof *g->work);
    }
    g->work[g->n++] = *w;
}

STUB_API CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyHtoDAsync");
    if (!stub_is_live(dst, bytes) || s->captures)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy((void *)(uintptr_t)dst, src, bytes);
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyDtoHAsync");
    if (!stub_is_live(src, bytes) || s->captures)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyDtoDAsync");
    if (!stub_is_live(dst, bytes) || !stub_is_live(src, bytes) || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    stub_enqueue(s, &(StubWork){ .dst = dst, .src = src, .bytes = bytes });
    return CUDA_SUCCESS;
}

STUB_API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, CUstream s,
                                 void **params, void **extra)
{
    ENTER("cuLaunchKernel");
    stub.counts.launches++;
    if (!f || !s || !gx || gy != 1 || gz != 1 || !bx || bx > 1024 || by != 1 || bz != 1 || shared ||
        extra || !params)
        return CUDA_ERROR_INVALID_VALUE;
    if (!stub.options.runs_kernels) {
        if (s->captures)
            stub_enqueue(s, &(StubWork){ .blocks = gx, .threads = bx });
        return CUDA_SUCCESS;
    }
    StubWork w = { .kernel = (const StubKernel *)f, .blocks = gx, .threads = bx };
    if (!stub_kernel_args(w.kernel, params, w.args))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    stub_enqueue(s, &w);
    return CUDA_SUCCESS;
}

/* ---- graphs ---- */

STUB_API CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode)
{
    (void)mode;
    ENTER("cuStreamBeginCapture");
    if (s->captures)
        return CUDA_ERROR_ILLEGAL_STATE;
    s->captures = true;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuStreamEndCapture(CUstream s, CUgraph *out)
{
    if (!s->captures)
        return CUDA_ERROR_ILLEGAL_STATE;
    s->captures = false;
    bool fails = stub_fails("cuStreamEndCapture");
    if (fails) {
        free(s->graph.work);
    } else {
        *out = malloc(sizeof **out);
        **out = s->graph;
        stub.counts.graphs++;
    }
    s->graph = (struct CUgraph_st){ 0 };
    return fails ? stub_error() : CUDA_SUCCESS;
}

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

STUB_API CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    (void)flags;
    ENTER("cuGraphInstantiateWithFlags");
    struct CUgraphExec_st *e = malloc(sizeof *e);
    size_t bytes = (size_t)g->n * sizeof *g->work;
    e->graph = *g;
    e->graph.work = malloc(bytes + 1);
    if (bytes)
        memcpy(e->graph.work, g->work, bytes);
    stub.counts.execs++;
    *out = e;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuGraphDestroy(CUgraph g)
{
    free(g->work);
    free(g);
    stub.counts.graphs--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuGraphLaunch(CUgraphExec e, CUstream s)
{
    ENTER("cuGraphLaunch");
    if (!e || !s || s->captures)
        return CUDA_ERROR_INVALID_VALUE;
    stub.counts.replays++;
    for (int i = 0; i < e->graph.n; i++)
        do_work(&e->graph.work[i]);
    return CUDA_SUCCESS;
}

STUB_API CUresult cuGraphExecDestroy(CUgraphExec e)
{
    free(e->graph.work);
    free(e);
    stub.counts.execs--;
    return CUDA_SUCCESS;
}
