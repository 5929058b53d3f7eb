/* Any operator whose file has device text that covers the node. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "rt/devtext.h"

typedef struct TextState {
    cl_kernel kernel;
    QnDeviceCall call;
} TextState;

/* What counts on groups of one size says so; the rest runs in any, and the host runs what does not
 * fit. */
static const char *text_accepts(const QnNode *n, const QnKernelEnv *env)
{
    const QnOpencl *cl = env->impl;
    QnDeviceCall call;
    const char *reason = qn_devtext_refuses(n);
    if (reason || n->op->traits & QN_MAP || n->op->call(n, &call) != QN_OK)
        return reason;
    return (size_t)call.group_size > cl->max_group ? cl->small_groups : NULL;
}

/* A kernel may take fewer items than the device, for what it holds of registers. */
static QnStatus check_group(const QnOpencl *cl, const TextState *s)
{
    size_t most = 0;
    if (clGetKernelWorkGroupInfo(s->kernel, cl->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                 NULL) != CL_SUCCESS ||
        !most || (size_t)s->call.group_size <= most)
        return QN_OK;
    return qn_fail(
        QN_EUNSUPPORTED,
        "kernel %s works in groups of %d items, of which %s takes %zu: take another device",
        s->call.kernel, s->call.group_size, cl->name, most);
}

static QnStatus text_prepare(QnPrepared *p)
{
    TextState *s = qn_alloc(sizeof *s);
    QnStr text = { 0 };
    QnDtype storage;
    if (!s)
        return QN_ENOMEM;
    QnStatus st = qn_devtext_node(p->node, &text, &s->call, &storage);
    if (st == QN_OK)
        st =
            qn_opencl_kernel(p->env->impl, qn_str_text(&text), s->call.kernel, storage, &s->kernel);
    qn_str_fini(&text);
    if (st == QN_OK && (st = check_group(p->env->impl, s)) != QN_OK)
        clReleaseKernel(s->kernel);
    if (st != QN_OK)
        qn_free(s);
    else
        p->state = s;
    return st;
}

static void text_fini(QnPrepared *p)
{
    TextState *s = p->state;
    if (s)
        clReleaseKernel(s->kernel);
    qn_free(s);
}

static QnStatus set_args(const TextState *s, const QnNode *n, const void *const *in,
                         void *const *out)
{
    cl_uint at = 0;
    cl_int err = CL_SUCCESS;
    for (int i = 0; i < n->n_out && !err; i++)
        err = clSetKernelArgSVMPointer(s->kernel, at++, out[i]);
    for (int i = 0; i < n->n_in && !err; i++)
        err = clSetKernelArgSVMPointer(s->kernel, at++, in[i]);
    for (int i = 0; i < s->call.n_arg && !err; i++) {
        cl_long whole = s->call.arg[i].i;
        float real = (float)s->call.arg[i].f;
        err = s->call.arg[i].is_float ? clSetKernelArg(s->kernel, at++, sizeof real, &real)
                                      : clSetKernelArg(s->kernel, at++, sizeof whole, &whole);
    }
    return err ? qn_opencl_fail(err, "setting an argument") : QN_OK;
}

static QnStatus text_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    enum { ITEMS = 64 }; /* of a group where the kernel does not care */
    QnOpencl *cl = p->env->impl;
    const TextState *s = p->state;
    size_t group = (size_t)s->call.group_size, count = (size_t)s->call.n_groups;
    size_t local = group ? group : QN_MIN((size_t)ITEMS, cl->max_group);
    size_t global = group ? count * group : (count + local - 1) / local * local;
    (void)workspace;
    if (count == 0)
        return QN_OK;
    QN_TRY(set_args(s, p->node, in, out));
    cl_int err =
        clEnqueueNDRangeKernel(cl->queue, s->kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    return err ? qn_opencl_fail(err, s->call.kernel) : QN_OK;
}

const QnKernel qn_kernel_opencl_text = {
    .name = "opencl.text",
    .backend = "opencl",
    .rank = 10,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = text_accepts,
    .prepare = text_prepare,
    .run = text_run,
    .fini = text_fini,
};
#else
typedef int qn_no_opencl_text;
#endif
