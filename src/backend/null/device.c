#include "backend/null/null.h"

static QnStatus null_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    (void)p, (void)in, (void)out, (void)workspace;
    return QN_OK;
}

static const QnKernel nothing = {
    .name = "nothing",
    .backend = "null",
    .rank = 0,
    .flags = QN_KERNEL_ANY_THREADS,
    .run = null_run,
};

static const QnKernel *const null_kernels[] = { &nothing };

static QnStatus null_open(QnDevice *d, const QnDeviceOptions *o)
{
    d->env = (QnKernelEnv){ .n_threads = o->n_threads ? o->n_threads : 1,
                            .isa = "none",
                            .strict = o->strict };
    return QN_OK;
}

/* Addresses that nobody may touch, 2^46 and up, distinct only by plan offsets. */
static void *null_alloc(QnDevice *d, size_t bytes)
{
    (void)d, (void)bytes;
    return (void *)((uintptr_t)1 << 46);
}

static void null_free(QnDevice *d, void *p, size_t bytes)
{
    (void)d, (void)p, (void)bytes;
}

static QnStatus null_copy(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    (void)d, (void)dst, (void)src, (void)bytes;
    return QN_OK;
}

const QnBackend qn_backend_null = {
    .name = "null",
    .kernels = null_kernels,
    .n_kernels = QN_COUNT(null_kernels),
    .open = null_open,
    .alloc = null_alloc,
    .free = null_free,
    .write = null_copy,
    .read = null_copy,
    .copy = null_copy,
    .only_counts = true,
};
