/* What has no device text runs on the host by its float64 reference. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "rt/hostref.h"

static const char *host_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_hostref_refuses(n);
}

static QnStatus host_copy(void *ctx, void *dst, const void *src, size_t bytes)
{
    QnOpencl *cl = ctx;
    return qn_opencl_move(cl, cl->queue, dst, src, bytes, CL_TRUE);
}

static QnStatus host_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnHostrefIo io = { p->env->impl, host_copy, host_copy };
    (void)workspace;
    return qn_hostref_run(p->node, &io, in, out);
}

const QnKernel qn_kernel_opencl_host = {
    .name = "opencl.host",
    .backend = "opencl",
    .rank = 0,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_WAITS,
    .accepts = host_accepts,
    .run = host_run,
};
#else
typedef int qn_no_opencl_host;
#endif
