/* What has no device text runs on the host by its float64 reference. */
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"

static const char *host_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_hostref_refuses(n);
}

static QnStatus host_read(void *ctx, void *dst, const void *src, size_t bytes)
{
    return qn_cuda_read(ctx, dst, src, bytes);
}

static QnStatus host_write(void *ctx, void *dst, const void *src, size_t bytes)
{
    return qn_cuda_write(ctx, dst, src, bytes);
}

static QnStatus host_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnHostrefIo io = { p->env->impl, host_read, host_write };
    (void)workspace;
    return qn_hostref_run(p->node, &io, in, out);
}

const QnKernel qn_kernel_cuda_host = {
    .name = "cuda.host",
    .backend = "cuda",
    .rank = 0,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_WAITS,
    .accepts = host_accepts,
    .run = host_run,
};
