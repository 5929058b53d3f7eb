#include "backend/cpu/limits.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/stream.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

enum { TRIES = 4, LOOPS = 2000000, ARRAY_BYTES = 64 << 20 };

typedef struct Probe {
    QnPeakFn *peak;
    QnStreamFn *copy;
    char *from, *to;
    int64_t parts;
} Probe;

static void peak_part(void *ctx, int64_t part)
{
    float keep[3] = { 0.999f, 0.001f, (float)part };
    ((const Probe *)ctx)->peak(LOOPS, keep);
}

static void copy_part(void *ctx, int64_t part)
{
    const Probe *p = ctx;
    int64_t begin = qn_cpu_part_begin(ARRAY_BYTES, p->parts, part);
    int64_t end = qn_cpu_part_begin(ARRAY_BYTES, p->parts, part + 1);
    p->copy(p->from + begin, p->to + begin, (size_t)(end - begin));
    qn_stream_end();
}

QnStatus qn_cpu_limits(const QnKernelEnv *env, QnLimits *out)
{
    float keep[3] = { 0.999f, 0.001f, 0 };
    Probe p = { .peak = qn_gemm_peak_find(env->isa),
                .copy = qn_stream_for(env->isa, ARRAY_BYTES),
                .parts = env->n_threads,
                .from = qn_alloc_aligned(ARRAY_BYTES),
                .to = qn_alloc_aligned(ARRAY_BYTES) };
    QnStatus st = p.from && p.to ? QN_OK : QN_ENOMEM;
    *out = (QnLimits){ 0 };
    for (int i = 0; st == QN_OK && i < TRIES; i++) {
        double flops = p.peak(1, keep) * LOOPS * env->n_threads;
        memset(p.from, i, ARRAY_BYTES);
        int64_t t0 = qn_clock_ns();
        qn_cpu_parallel(env->n_threads, env->n_threads, peak_part, &p);
        int64_t t1 = qn_clock_ns();
        qn_cpu_parallel(env->n_threads, p.parts, copy_part, &p);
        int64_t t2 = qn_clock_ns();
        out->flops_per_s = fmax(out->flops_per_s, flops / ((double)(t1 - t0) * 1e-9));
        out->bytes_per_s = fmax(out->bytes_per_s, 2.0 * ARRAY_BYTES / ((double)(t2 - t1) * 1e-9));
    }
    qn_free_aligned(p.from, ARRAY_BYTES);
    qn_free_aligned(p.to, ARRAY_BYTES);
    return st;
}

double qn_cpu_limit_ns(const QnLimits *l, const QnCost *c)
{
    return 1e9 *
           fmax(c->flops / l->flops_per_s, (c->bytes_read + c->bytes_written) / l->bytes_per_s);
}
