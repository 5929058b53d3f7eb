/* Any operator whose file has device text that covers the node. */
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"

typedef struct TextState {
    CUfunction function;
    unsigned blocks, threads;
    const char *name;
    int n_scalar;
    union {
        int64_t whole;
        float real;
    } scalar[QN_DEVICE_MAX_ARG];
    /* what cuLaunchKernel takes: an address for each argument, of outputs and inputs when run */
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
    if (blocks > INT32_MAX || threads > MOST_THREADS)
        return qn_fail(QN_EUNSUPPORTED,
                       "%lld blocks of %lld threads are more than a launch takes, %d of %d",
                       (long long)blocks, (long long)threads, INT32_MAX, MOST_THREADS);
    s->blocks = (unsigned)blocks;
    s->threads = (unsigned)threads;
    s->name = call->kernel;
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
    TextState *s = qn_alloc(sizeof *s + (n_tensors + QN_DEVICE_MAX_ARG) * sizeof s->param[0]);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = qn_devtext_node(n, &text, &call, &storage);
    if (st == QN_OK)
        st = set_launch(s, &call);
    if (st == QN_OK) {
        set_scalars(s, &call, s->param + n_tensors);
        st = qn_cuda_kernel(p->env->impl, qn_str_text(&text), call.kernel, storage, &s->function);
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
    qn_free(p->state);
}

static QnStatus text_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnCuda *c = p->env->impl;
    TextState *s = p->state;
    const QnNode *n = p->node;
    (void)workspace;
    if (s->blocks == 0)
        return QN_OK;
    for (int i = 0; i < n->n_out; i++) /* a pointer's place is that of the argument */
        s->param[i] = (void *)(uintptr_t)&out[i];
    for (int i = 0; i < n->n_in; i++)
        s->param[n->n_out + i] = (void *)(uintptr_t)&in[i];
    QN_TRY(qn_cuda_enter(c));
    CUresult err = c->cu.cuLaunchKernel(s->function, s->blocks, 1, 1, s->threads, 1, 1, 0,
                                        c->stream, s->param, NULL);
    if (err != CUDA_SUCCESS) {
        qn_cuda_fail(&c->cu, err, "cuLaunchKernel");
        return qn_fail_prefix("kernel %s", s->name);
    }
    return QN_OK;
}

const QnKernel qn_kernel_cuda_text = {
    .name = "cuda.text",
    .backend = "cuda",
    .rank = 10,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = text_accepts,
    .prepare = text_prepare,
    .run = text_run,
    .fini = text_fini,
};
