/* Instruction sets and threads. */
#include "backend/cpu/cpu.h"
#include "base/isa_list.h"

#include <string.h>

static bool cpu_runs(const char *isa)
{
#if defined(__x86_64__)
    bool v2 = qn_cpu_has("sse4.2") && qn_cpu_has("popcnt");
    bool v3 = v2 && qn_cpu_has("avx2") && qn_cpu_has("fma") && qn_cpu_has("bmi2");
    bool v4 = v3 && qn_cpu_has("avx512f") && qn_cpu_has("avx512bw") && qn_cpu_has("avx512cd") &&
              qn_cpu_has("avx512dq") && qn_cpu_has("avx512vl") && qn_cpu_has("avx512vnni") &&
              qn_cpu_has("avx512bf16");
    return !strcmp(isa, "v4") ? v4 : !strcmp(isa, "v3") ? v3 : v2;
#else
    (void)isa;
    return true;
#endif
}

bool qn_cpu_isa_is_usable(const char *isa)
{
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        return cpu_runs(isa);
    QN_ISA_LIST(QN_X)
#undef QN_X
    return false;
}

const char *qn_cpu_isa_best(void)
{
    const char *last = "";
#define QN_X(name)                                                                                 \
    if (cpu_runs(#name))                                                                           \
        return #name;                                                                              \
    last = #name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    return last;
}

#define QN_X(name) extern const QnTile qn_tiles_##name[];
QN_ISA_LIST(QN_X)
#undef QN_X

QnTileFn *qn_cpu_tile(const char *isa, const QnOp *op)
{
    const QnTile *t = NULL;
#define QN_X(name)                                                                                 \
    if (!strcmp(isa, #name))                                                                       \
        t = qn_tiles_##name;
    QN_ISA_LIST(QN_X)
#undef QN_X
    for (; t && t->op; t++) {
        if (t->op == op)
            return t->fn;
    }
    return NULL;
}

void qn_cpu_parallel(int n_threads, int64_t n_parts, void (*fn)(void *ctx, int64_t part), void *ctx)
{
#ifdef _OPENMP
    if (n_threads > 1 && n_parts > 1) {
#pragma omp parallel for num_threads(n_threads) schedule(static)
        for (int64_t i = 0; i < n_parts; i++)
            fn(ctx, i);
        return;
    }
#endif
    (void)n_threads;
    for (int64_t i = 0; i < n_parts; i++)
        fn(ctx, i);
}

int64_t qn_cpu_parts(int n_threads, int64_t n, int64_t grain)
{
    int64_t most = n_threads > 1 ? (int64_t)n_threads * 4 : 1;
    return QN_MAX(1, QN_MIN(most, n / QN_MAX(grain, 1)));
}

int64_t qn_cpu_part_begin(int64_t n, int64_t n_parts, int64_t part)
{
    return n / n_parts * part + QN_MIN(part, n % n_parts);
}
