/* The CPU as a device: host memory, all kernels of this folder. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels_list.h"

#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif

static const QnKernel *const cpu_kernels[] = {
#define QN_X(name) &qn_kernel_##name,
    QN_KERNEL_LIST(QN_X)
#undef QN_X
};

/* Cores that the process may use, which in a container are fewer than the machine has. */
static int usable_cores(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static QnStatus cpu_open(QnDevice *d, const QnDeviceOptions *o)
{
    if (o->n_threads < 0 || o->n_threads > 1024)
        return qn_fail(QN_EARG, "cpu: %d threads; give 1 to 1024, or 0 for one a core",
                       o->n_threads);
    if (o->isa && !qn_cpu_isa_is_usable(o->isa))
        return qn_fail(QN_EARG,
                       "cpu: instruction set '%s' is not built in, or this CPU lacks it; "
                       "the best here is %s",
                       o->isa, qn_cpu_isa_best());
    d->env.n_threads = o->n_threads ? o->n_threads : usable_cores();
    d->env.strict = o->strict;
    d->env.isa = o->isa ? o->isa : qn_cpu_isa_best();
    return QN_OK;
}

/* More than the machine has is refused at once: some systems promise any amount, and end the
 * process that then uses it. */
static void *cpu_alloc(QnDevice *d, size_t bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    (void)d;
    if (pages > 0 && size > 0 && bytes / (size_t)size > (size_t)pages)
        return NULL;
    return qn_alloc_aligned(bytes);
}

static void cpu_free(QnDevice *d, void *p, size_t bytes)
{
    (void)d;
    qn_free_aligned(p, bytes);
}

static QnStatus cpu_copy(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    (void)d;
    memcpy(dst, src, bytes);
    return QN_OK;
}

const QnBackend qn_backend_cpu = {
    .name = "cpu",
    .kernels = cpu_kernels,
    .n_kernels = QN_COUNT(cpu_kernels),
    .balance = 8, /* docs/benchmarks.md: 337 GFLOP/s, 41 GB/s */
    .open = cpu_open,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .write = cpu_copy,
    .read = cpu_copy,
    .copy = cpu_copy,
    .is_host = true,
};
