/* Any operator whose file has device text that covers the node. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "rt/devtext.h"

typedef struct TextState {
    cl_kernel kernel, then; /* then: of the second stage, NULL without one */
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
static QnStatus check_group(const QnOpencl *cl, const TextState *s, cl_kernel k, const char *name)
{
    size_t most = 0;
    if (clGetKernelWorkGroupInfo(k, cl->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL) !=
            CL_SUCCESS ||
        !most || (size_t)s->call.group_size <= most)
        return QN_OK;
    return qn_fail(
        QN_EUNSUPPORTED,
        "kernel %s works in groups of %d items, of which %s takes %zu: take another device", name,
        s->call.group_size, cl->name, most);
}

static void text_fini(QnPrepared *p)
{
    TextState *s = p->state;
    if (s && s->kernel)
        clReleaseKernel(s->kernel);
    if (s && s->then)
        clReleaseKernel(s->then);
    qn_free(s);
    p->state = NULL;
}

static QnStatus text_prepare(QnPrepared *p)
{
    TextState *s = qn_alloc(sizeof *s);
    QnStr text = { 0 };
    QnDtype storage;
    if (!s)
        return QN_ENOMEM;
    p->state = s;
    QnStatus st = qn_devtext_node(p->node, &text, &s->call, &storage);
    if (st == QN_OK)
        st =
            qn_opencl_kernel(p->env->impl, qn_str_text(&text), s->call.kernel, storage, &s->kernel);
    if (st == QN_OK && s->call.then)
        st = qn_opencl_kernel(p->env->impl, qn_str_text(&text), s->call.then, storage, &s->then);
    qn_str_fini(&text);
    if (st == QN_OK)
        st = check_group(p->env->impl, s, s->kernel, s->call.kernel);
    if (st == QN_OK && s->then)
        st = check_group(p->env->impl, s, s->then, s->call.then);
    p->workspace_bytes = (size_t)s->call.work_bytes;
    if (st != QN_OK)
        text_fini(p);
    return st;
}

typedef struct Pointers {
    const void *const *in;
    void *const *out;
    const void *work;
} Pointers;

static cl_int set_tensor(QnOpencl *cl, cl_kernel k, cl_uint arg, const void *p, const QnValue *v)
{
    return qn_opencl_set_pointer(cl, k, arg, p, v ? qn_type_bytes(&v->type) : 0);
}

static QnStatus set_args(QnOpencl *cl, const TextState *s, cl_kernel k, const QnNode *n,
                         const Pointers *p)
{
    cl_uint at = 0;
    cl_int err = CL_SUCCESS;
    for (int i = 0; i < n->n_out && !err; i++)
        err = set_tensor(cl, k, at++, p->out[i], &n->out[i]);
    for (int i = 0; i < n->n_in && !err; i++)
        err = set_tensor(cl, k, at++, p->in[i], n->in[i]);
    if (s->call.has_work && !err)
        err = qn_opencl_set_pointer(cl, k, at++, p->work, s->call.work_bytes);
    for (int i = 0; i < s->call.n_arg && !err; i++) {
        cl_long whole = s->call.arg[i].i;
        float real = (float)s->call.arg[i].f;
        err = s->call.arg[i].is_float ? clSetKernelArg(k, at++, sizeof real, &real)
                                      : clSetKernelArg(k, at++, sizeof whole, &whole);
    }
    return err ? qn_opencl_fail(err, "setting an argument") : QN_OK;
}

static QnStatus launch(QnOpencl *cl, cl_kernel k, const char *name, int64_t n_groups,
                       int group_size)
{
    enum { ITEMS = 64 }; /* of a group where the kernel does not care */
    size_t group = (size_t)group_size, count = (size_t)n_groups;
    size_t local = group ? group : QN_MIN((size_t)ITEMS, cl->max_group);
    size_t global = group ? count * group : (count + local - 1) / local * local;
    if (count == 0)
        return QN_OK;
    cl_int err = clEnqueueNDRangeKernel(cl->queue, k, 1, NULL, &global, &local, 0, NULL, NULL);
    return err ? qn_opencl_fail(err, name) : QN_OK;
}

static QnStatus text_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnOpencl *cl = p->env->impl;
    const TextState *s = p->state;
    const QnDeviceCall *call = &s->call;
    Pointers at = { in, out, workspace };
    QN_TRY(set_args(cl, s, s->kernel, p->node, &at));
    QN_TRY(launch(cl, s->kernel, call->kernel, call->n_groups, call->group_size));
    if (!s->then)
        return QN_OK;
    QN_TRY(set_args(cl, s, s->then, p->node, &at));
    return launch(cl, s->then, call->then, call->then_groups, call->group_size);
}

const QnKernel qn_kernel_opencl_text = {
    .name = "opencl.text",
    .backend = "opencl",
    .rank = 10,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_TEXT,
    .accepts = text_accepts,
    .prepare = text_prepare,
    .run = text_run,
    .fini = text_fini,
};
#else
typedef int qn_no_opencl_text;
#endif
