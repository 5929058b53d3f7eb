/* Any operator whose file has device text that covers the node. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "rt/devtext.h"

typedef struct TextState {
    cl_kernel kernel;
    QnDeviceCall call;
} TextState;

/* The type of QN_T: that of the node's 16-bit tensors, if it has any. */
static QnDtype storage_of(const QnNode *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && (v->type.dtype == QN_DTYPE_F16 || v->type.dtype == QN_DTYPE_BF16))
            return v->type.dtype;
    }
    return QN_DTYPE_F32;
}

static const char *check_tensors(const QnNode *n)
{
    bool map = n->op->traits & QN_MAP;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (!v)
            continue;
        if (v->type.dtype == QN_DTYPE_F64 || qn_dtype_is_storage(v->type.dtype))
            return "device text computes in f32";
        if (!map && v->type.layout != QN_LAYOUT_PLAIN)
            return "device text reads the plain layout";
    }
    return NULL;
}

static const char *text_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    const char *reason = check_tensors(n);
    if (reason)
        return reason;
    QnDeviceCall call;
    if (n->op->traits & QN_MAP) {
        QnStr text = { 0 };
        QnStatus st = qn_devtext_map(n, &text, &call);
        qn_str_fini(&text);
        return st == QN_OK ? NULL : "a map of it has no device text for these types";
    }
    if (!n->op->device || !n->op->call)
        return "its file has no device text";
    return n->op->call(n, &call) == QN_OK ? NULL : "its device text does not cover this case";
}

static QnStatus text_prepare(QnPrepared *p)
{
    QnOpencl *cl = p->env->impl;
    const QnNode *n = p->node;
    TextState *s = qn_alloc(sizeof *s);
    QnStr text = { 0 };
    if (!s)
        return QN_ENOMEM;
    QnStatus st;
    if (n->op->traits & QN_MAP) {
        st = qn_devtext_map(n, &text, &s->call);
        if (st == QN_OK)
            st = text.st;
        if (st == QN_OK)
            st = qn_opencl_kernel(cl, qn_str_text(&text), s->call.kernel, QN_DTYPE_F32, &s->kernel);
    } else {
        st = n->op->call(n, &s->call);
        if (st == QN_OK)
            st = qn_opencl_kernel(cl, n->op->device, s->call.kernel, storage_of(n), &s->kernel);
    }
    qn_str_fini(&text);
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
    size_t local = group ? group : ITEMS;
    size_t global = group ? count * group : (count + ITEMS - 1) / ITEMS * ITEMS;
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
