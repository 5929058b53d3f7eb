#include "backend/cpu/limits.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/stream.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

enum { TRIES = 4, LOOPS = 2000000, ARRAY_BYTES = 64 << 20 };

typedef struct Probe {
    QnPeakFn *peak, *peak_bf16;
    QnStreamFn *copy;
    char *from, *to;
    int64_t parts;
} Probe;

static void peak_part(void *ctx, int64_t part)
{
    float keep[3] = { 0.999f, 0.001f, (float)part };
    ((const Probe *)ctx)->peak(LOOPS, keep);
}

static void peak_bf16_part(void *ctx, int64_t part)
{
    float keep[3] = { 0.999f, 0.001f, (float)part };
    ((const Probe *)ctx)->peak_bf16(LOOPS, keep);
}

static void copy_part(void *ctx, int64_t part)
{
    const Probe *p = ctx;
    int64_t begin = qn_cpu_part_begin(ARRAY_BYTES, p->parts, part);
    int64_t end = qn_cpu_part_begin(ARRAY_BYTES, p->parts, part + 1);
    p->copy(p->from + begin, p->to + begin, (size_t)(end - begin));
    qn_stream_end();
}

/* FLOP/s of one run by all threads. */
static double rate_of(int n_threads, QnPeakFn *fn, void (*part)(void *, int64_t), Probe *p)
{
    float keep[3] = { 0.999f, 0.001f, 0 };
    double flops = fn(1, keep) * LOOPS * n_threads;
    int64_t t0 = qn_clock_ns();
    qn_cpu_parallel(n_threads, n_threads, part, p);
    return flops / ((double)(qn_clock_ns() - t0) * 1e-9);
}

QnStatus qn_cpu_limits(const QnKernelEnv *env, QnLimits *out)
{
    Probe p = { .peak = qn_gemm_peak_find(env->isa, QN_DTYPE_F32),
                .peak_bf16 = qn_gemm_peak_find(env->isa, QN_DTYPE_BF16),
                .copy = qn_stream_for(env->isa, ARRAY_BYTES),
                .parts = env->n_threads,
                .from = qn_alloc_aligned(ARRAY_BYTES),
                .to = qn_alloc_aligned(ARRAY_BYTES) };
    QnStatus st = p.from && p.to ? QN_OK : QN_ENOMEM;
    *out = (QnLimits){ 0 };
    for (int i = 0; st == QN_OK && i < TRIES; i++) {
        memset(p.from, i, ARRAY_BYTES);
        out->flops_per_s = fmax(out->flops_per_s, rate_of(env->n_threads, p.peak, peak_part, &p));
        out->bf16_flops_per_s =
            fmax(out->bf16_flops_per_s, rate_of(env->n_threads, p.peak_bf16, peak_bf16_part, &p));
        int64_t t0 = qn_clock_ns();
        qn_cpu_parallel(env->n_threads, p.parts, copy_part, &p);
        double ns = (double)(qn_clock_ns() - t0);
        out->bytes_per_s = fmax(out->bytes_per_s, 2.0 * ARRAY_BYTES / (ns * 1e-9));
    }
    qn_free_aligned(p.from, ARRAY_BYTES);
    qn_free_aligned(p.to, ARRAY_BYTES);
    return st;
}

double qn_cpu_limit_ns(const QnLimits *l, const QnNode *n, const QnCost *c)
{
    bool bf16 = n->n_in && n->in[0] && n->in[0]->type.dtype == QN_DTYPE_BF16;
    double rate = bf16 ? fmax(l->bf16_flops_per_s, l->flops_per_s) : l->flops_per_s;
    return 1e9 * fmax(c->flops / rate, (c->bytes_read + c->bytes_written) / l->bytes_per_s);
}
