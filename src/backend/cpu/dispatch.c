/* Instruction sets, threads, and what many kernels ask of a node. */
#include "backend/cpu/cpu.h"
#include "base/isa_list.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

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

void qn_cpu_units(int n_threads, int64_t n_units, void (*fn)(void *ctx, int worker, int64_t unit),
                  void *ctx)
{
#ifdef _OPENMP
    if (n_threads > 1 && n_units > 1) {
#pragma omp parallel for num_threads(n_threads) schedule(dynamic)
        for (int64_t i = 0; i < n_units; i++)
            fn(ctx, omp_get_thread_num(), i);
        return;
    }
#endif
    (void)n_threads;
    for (int64_t i = 0; i < n_units; i++)
        fn(ctx, 0, i);
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

int qn_cpu_threads(const QnPrepared *p)
{
    enum { FLOPS_A_NS = 50, BYTES_A_NS = 10, LEAST_NS = 15000 };
    QnCost c = qn_cost_of(p->node);
    double ns = QN_MAX(c.flops / FLOPS_A_NS, (c.bytes_read + c.bytes_written) / BYTES_A_NS);
    return ns < LEAST_NS ? 1 : p->env->n_threads;
}

const void *qn_cpu_attr(const QnNode *n, const char *name)
{
    return (const char *)n->attr + qn_attr_find(n->op, name)->offset;
}

static const QnType *type_at(const QnNode *n, int i)
{
    return i < n->n_out          ? &n->out[i].type
           : n->in[i - n->n_out] ? &n->in[i - n->n_out]->type
                                 : &n->out[0].type;
}

const char *qn_cpu_need_plain(const QnNode *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        if (type_at(n, i)->layout != QN_LAYOUT_PLAIN)
            return "takes only the plain layout";
    }
    return NULL;
}

const char *qn_cpu_need_f32(const QnNode *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        QnDtype d = type_at(n, i)->dtype;
        if (d != QN_DTYPE_F32 && qn_dtype_is_float(d))
            return "takes only f32";
    }
    return NULL;
}
