/* Streams, events, copies, launches and graphs. */
#include "cuda/stub/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTER(call)                                                                                \
    do {                                                                                           \
        if (!stub.current)                                                                         \
            return CUDA_ERROR_INVALID_CONTEXT;                                                     \
        if (stub_fails(call))                                                                      \
            return stub_error();                                                                   \
    } while (0)

/* ---- what was asked ---- */

static char trace[4000];

STUB_API const char *stub_trace(void);
STUB_API const char *stub_trace(void)
{
    return trace;
}

void stub_note(CUstream s, const char *what)
{
    size_t n = strlen(trace);
    if (!s) { /* from the beginning */
        trace[0] = '\0';
        return;
    }
    snprintf(trace + n, sizeof trace - n, "%s%d %s", n ? ", " : "", s->number, what);
}

/* ---- streams ---- */

STUB_API CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    ENTER("cuStreamCreate");
    *out = calloc(1, sizeof **out);
    (*out)->number = (int)stub.counts.streams++;
    return CUDA_SUCCESS;
}

static void do_work(StubWork *w);

static void run_until(CUstream s, int64_t count)
{
    while (s->n_done < count && s->n > 0) {
        StubWork w = s->queue[0];
        s->n--;
        memmove(s->queue, s->queue + 1, (size_t)s->n * sizeof *s->queue);
        if (w.other)
            run_until(w.other, w.other_count);
        do_work(&w);
        s->n_done++;
    }
}

void stub_drain(CUstream s)
{
    run_until(s, INT64_MAX);
}

/* Real ones finish what they hold; nothing waits for a stream that is gone. */
STUB_API CUresult cuStreamDestroy(CUstream s)
{
    stub_drain(s);
    free(s->queue);
    free(s->graph.work);
    free(s);
    stub.counts.streams--;
    return CUDA_SUCCESS;
}

STUB_API CUresult cuStreamSynchronize(CUstream s)
{
    ENTER("cuStreamSynchronize");
    if (s->captures)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stub_drain(s);
    return CUDA_SUCCESS;
}

/* ---- events ---- */

struct CUevent_st {
    CUstream s; /* NULL: never recorded */
    int64_t count;
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
    ENTER("cuEventRecord");
    if (!e || !s || s->captures)
        return CUDA_ERROR_INVALID_HANDLE;
    stub_note(s, "record");
    *e = (struct CUevent_st){ s, s->n_done + s->n };
    return CUDA_SUCCESS;
}

STUB_API CUresult cuEventSynchronize(CUevent e)
{
    ENTER("cuEventSynchronize");
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->s)
        run_until(e->s, e->count);
    return CUDA_SUCCESS;
}

STUB_API CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    ENTER("cuStreamWaitEvent");
    if (!e || !s || flags || s->captures)
        return CUDA_ERROR_INVALID_VALUE;
    stub_note(s, "wait");
    if (e->s && e->s != s)
        stub_enqueue(s, &(StubWork){ .other = e->s, .other_count = e->count });
    return CUDA_SUCCESS;
}

/* ---- work ---- */

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

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
    for (int i = 0; w->graph && i < w->graph->graph.n; i++)
        do_work(&w->graph->graph.work[i]);
}

static void append(StubWork **all, int *n, int *cap, const StubWork *w)
{
    if (*n == *cap) {
        *cap = *cap ? 2 * *cap : 16;
        *all = realloc(*all, (size_t)*cap * sizeof **all);
    }
    (*all)[(*n)++] = *w;
}

void stub_enqueue(CUstream s, StubWork *w)
{
    if (s->captures) {
        append(&s->graph.work, &s->graph.n, &s->graph.cap, w);
        return;
    }
    append(&s->queue, &s->n, &s->cap, w);
    if (!(stub.options.lazy >> s->number & 1))
        stub_drain(s);
}

/* From and to host memory; pinned, or the real one would wait here for the copy. */
static CUresult copy_host(CUstream s, CUdeviceptr dst, CUdeviceptr src, CUdeviceptr device,
                          size_t bytes)
{
    if (!stub_is_live(device, bytes) || s->captures || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    stub_enqueue(s, &(StubWork){ .dst = dst, .src = src, .bytes = bytes });
    return CUDA_SUCCESS;
}

STUB_API CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyHtoDAsync");
    stub_note(s, "HtoD");
    return copy_host(s, dst, (CUdeviceptr)(uintptr_t)src, dst, bytes);
}

STUB_API CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyDtoHAsync");
    stub_note(s, "DtoH");
    return copy_host(s, (CUdeviceptr)(uintptr_t)dst, src, src, bytes);
}

STUB_API CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyDtoDAsync");
    if (!stub_is_live(dst, bytes) || !stub_is_live(src, bytes) || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    stub_note(s, "DtoD");
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
    stub_note(s, "launch");
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
    stub_note(s, "graph");
    stub_enqueue(s, &(StubWork){ .graph = e });
    return CUDA_SUCCESS;
}

STUB_API CUresult cuGraphExecDestroy(CUgraphExec e)
{
    free(e->graph.work);
    free(e);
    stub.counts.execs--;
    return CUDA_SUCCESS;
}
