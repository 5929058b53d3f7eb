/* Any operator whose file has device text that covers the node. */
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"

typedef struct TextState {
    CUfunction function, then; /* then: of the second stage, NULL without one */
    unsigned blocks, then_blocks, threads;
    const char *name, *then_name;
    bool has_work;
    int n_scalar;
    union {
        int64_t whole;
        float real;
    } scalar[QN_DEVICE_MAX_ARG];
    /* what cuLaunchKernel takes: an address for each argument, of outputs, inputs, workspace when
     * run */
    void *param[];
} TextState;

static const char *text_accepts(const QnNode *n, const QnKernelEnv *env)
{
    const QnCuda *c = env->impl;
    if (!c->rtc.lib.handle)
        return c->rtc_error; /* which lives as long as the device */
    return qn_devtext_refuses(n);
}

static QnStatus set_launch(TextState *s, const QnDeviceCall *call)
{
    enum { THREADS = 256, MOST_THREADS = 1024 }; /* THREADS: where the kernel does not care */
    int64_t threads = call->group_size ? call->group_size : THREADS;
    int64_t blocks = call->group_size ? call->n_groups : (call->n_groups + THREADS - 1) / THREADS;
    int64_t most = QN_MAX(blocks, call->then_groups);
    if (most > INT32_MAX || threads > MOST_THREADS)
        return qn_fail(QN_EUNSUPPORTED,
                       "%lld blocks of %lld threads are more than a launch takes, %d of %d",
                       (long long)most, (long long)threads, INT32_MAX, MOST_THREADS);
    s->blocks = (unsigned)blocks;
    s->then_blocks = (unsigned)call->then_groups;
    s->threads = (unsigned)threads;
    s->name = call->kernel;
    s->then_name = call->then;
    s->has_work = call->has_work;
    return QN_OK;
}

static void set_scalars(TextState *s, const QnDeviceCall *call, void **param)
{
    s->n_scalar = call->n_arg;
    for (int i = 0; i < call->n_arg; i++) {
        if (call->arg[i].is_float)
            s->scalar[i].real = (float)call->arg[i].f;
        else
            s->scalar[i].whole = call->arg[i].i;
        param[i] = &s->scalar[i];
    }
}

static QnStatus text_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    QnStr text = { 0 };
    QnDeviceCall call;
    QnDtype storage;
    size_t n_tensors = (size_t)(n->n_out + n->n_in);
    TextState *s = qn_alloc(sizeof *s + (n_tensors + 1 + QN_DEVICE_MAX_ARG) * sizeof s->param[0]);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = qn_devtext_node(n, &text, &call, &storage);
    if (st == QN_OK)
        st = set_launch(s, &call);
    if (st == QN_OK) {
        set_scalars(s, &call, s->param + n_tensors + call.has_work);
        st = qn_cuda_kernel(p->env->impl, qn_str_text(&text), call.kernel, storage, &s->function);
        p->workspace_bytes = (size_t)call.work_bytes;
    }
    if (st == QN_OK && call.then)
        st = qn_cuda_kernel(p->env->impl, qn_str_text(&text), call.then, storage, &s->then);
    qn_str_fini(&text);
    if (st != QN_OK)
        qn_free(s);
    else
        p->state = s;
    return st;
}

static void text_fini(QnPrepared *p)
{
    qn_free(p->state);
}

static QnStatus launch(QnCuda *c, TextState *s, CUfunction f, unsigned blocks, const char *name)
{
    if (blocks == 0)
        return QN_OK;
    CUresult err =
        c->cu.cuLaunchKernel(f, blocks, 1, 1, s->threads, 1, 1, 0, c->stream, s->param, NULL);
    if (err == CUDA_SUCCESS)
        return QN_OK;
    qn_cuda_fail(&c->cu, err, "cuLaunchKernel");
    return qn_fail_prefix("kernel %s", name);
}

static QnStatus text_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnCuda *c = p->env->impl;
    TextState *s = p->state;
    const QnNode *n = p->node;
    for (int i = 0; i < n->n_out; i++) /* a pointer's place is that of the argument */
        s->param[i] = (void *)(uintptr_t)&out[i];
    for (int i = 0; i < n->n_in; i++)
        s->param[n->n_out + i] = (void *)(uintptr_t)&in[i];
    if (s->has_work)
        s->param[n->n_out + n->n_in] = &workspace;
    QN_TRY(qn_cuda_enter(c));
    QN_TRY(launch(c, s, s->function, s->blocks, s->name));
    return s->then ? launch(c, s, s->then, s->then_blocks, s->then_name) : QN_OK;
}

const QnKernel qn_kernel_cuda_text = {
    .name = "cuda.text",
    .backend = "cuda",
    .rank = 10,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_TEXT,
    .accepts = text_accepts,
    .prepare = text_prepare,
    .run = text_run,
    .fini = text_fini,
};
