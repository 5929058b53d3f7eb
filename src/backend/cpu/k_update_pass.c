/* Optimizer steps in f32: sgd, adam, adamw, adagrad, rmsprop. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "backend/cpu/update.h"
#include "ops/ops.h"

#include <math.h>

enum { GRAIN = 16384 };

/* The node's tensors must lie alike, which they do as states; scalars are f32 or i64. */
static const char *update_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    QnLayout l = n->in[0]->type.layout;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnType *t = i < n->n_in ? &n->in[i]->type : &n->out[i - n->n_in].type;
        if (t->shape.rank && t->layout != l)
            return "its tensors differ in layout";
    }
    return qn_cpu_need_f32(n);
}

static float attr(const QnNode *n, const char *name)
{
    return (float)*(const double *)qn_cpu_attr(n, name);
}

/* 1 - beta^t, without the cancellation near 1. */
static double correction(const QnNode *n, const char *name, const int64_t *step)
{
    double beta = *(const double *)qn_cpu_attr(n, name);
    return beta > 0 ? -expm1((double)*step * log(beta)) : 1;
}

typedef struct UpdateRun {
    QnUpdate u;
    QnUpdateFn *fn;
    int64_t count, n_parts;
} UpdateRun;

static void update_part(void *ctx, int64_t part)
{
    const UpdateRun *r = ctx;
    r->fn(&r->u, qn_cpu_part_begin(r->count, r->n_parts, part),
          qn_cpu_part_begin(r->count, r->n_parts, part + 1));
}

/* A negative lr: nothing changes, and nothing has to be moved where the states lie in place. */
static QnStatus leave_out(const QnPrepared *p, const void *const *in, void *const *out)
{
    const QnNode *n = p->node;
    for (int i = 0; i < n->n_out; i++) {
        if (out[i] != in[i])
            qn_move_all(qn_cpu_threads(p), (size_t)qn_type_bytes(&n->out[i].type), in[i], out[i]);
    }
    return QN_OK;
}

static QnStatus run(const QnPrepared *p, UpdateRun *r)
{
    r->count = qn_shape_count(&p->node->in[0]->type.shape);
    r->n_parts = qn_cpu_parts(p->env->n_threads, r->count, GRAIN);
    qn_cpu_parallel(qn_cpu_threads(p), r->n_parts, update_part, r);
    return QN_OK;
}

static QnStatus sgd_run(const QnPrepared *p, const void *const *in, void *const *out, void *work)
{
    const QnNode *n = p->node;
    const QnUpdateFns *f = qn_update_find(p->env->isa);
    bool moment = n->n_in == 4;
    UpdateRun r = { .fn = moment ? f->sgd_moment : f->sgd };
    (void)work;
    if (*(const float *)in[n->n_in - 1] < 0)
        return leave_out(p, in, out);
    r.u = (QnUpdate){ .p = in[0],
                      .m = moment ? in[1] : NULL,
                      .g = in[n->n_in - 2],
                      .p1 = out[0],
                      .m1 = moment ? out[1] : NULL,
                      .lr = *(const float *)in[n->n_in - 1],
                      .decay = attr(n, "weight_decay"),
                      .keep_m = attr(n, "momentum"),
                      .nesterov = *(const bool *)qn_cpu_attr(n, "nesterov") };
    return run(p, &r);
}

/* adam and adamw */
static QnStatus adam_run(const QnPrepared *p, const void *const *in, void *const *out, void *work)
{
    const QnNode *n = p->node;
    UpdateRun r = { .fn = qn_update_find(p->env->isa)->adam };
    float lr = *(const float *)in[4], decay = attr(n, "weight_decay");
    bool decoupled = n->op == &qn_op_adamw;
    (void)work;
    if (*(const float *)in[4] < 0)
        return leave_out(p, in, out);
    r.u = (QnUpdate){ .p = in[0],
                      .m = in[1],
                      .v = in[2],
                      .g = in[3],
                      .p1 = out[0],
                      .m1 = out[1],
                      .v1 = out[2],
                      .lr = (float)((double)lr / correction(n, "beta1", in[5])),
                      .keep_m = attr(n, "beta1"),
                      .keep_v = attr(n, "beta2"),
                      .root = (float)(1 / sqrt(correction(n, "beta2", in[5]))),
                      .eps = attr(n, "eps"),
                      .decay = decoupled ? 0 : decay,
                      .shrink = decoupled ? 1 - lr * decay : 1 };
    return run(p, &r);
}

static QnStatus adagrad_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *work)
{
    const QnNode *n = p->node;
    UpdateRun r = { .fn = qn_update_find(p->env->isa)->adagrad };
    double steps = (double)(*(const int64_t *)in[4] - 1);
    (void)work;
    if (*(const float *)in[3] < 0)
        return leave_out(p, in, out);
    r.u = (QnUpdate){ .p = in[0],
                      .v = in[1],
                      .g = in[2],
                      .p1 = out[0],
                      .v1 = out[1],
                      .lr = (float)((double)*(const float *)in[3] /
                                    (1 + steps * (double)attr(n, "lr_decay"))),
                      .decay = attr(n, "weight_decay"),
                      .eps = attr(n, "eps") };
    return run(p, &r);
}

static QnStatus rmsprop_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *work)
{
    const QnNode *n = p->node;
    const QnUpdateFns *f = qn_update_find(p->env->isa);
    bool moment = n->n_in == 5;
    UpdateRun r = { .fn = moment ? f->rmsprop_moment : f->rmsprop };
    (void)work;
    if (*(const float *)in[n->n_in - 1] < 0)
        return leave_out(p, in, out);
    r.u = (QnUpdate){ .p = in[0],
                      .v = in[1],
                      .m = moment ? in[2] : NULL,
                      .g = in[n->n_in - 2],
                      .p1 = out[0],
                      .v1 = out[1],
                      .m1 = moment ? out[2] : NULL,
                      .lr = *(const float *)in[n->n_in - 1],
                      .decay = attr(n, "weight_decay"),
                      .keep_v = attr(n, "alpha"),
                      .keep_m = attr(n, "momentum"),
                      .eps = attr(n, "eps") };
    return run(p, &r);
}

const QnKernel qn_kernel_sgd_pass = {
    .name = "cpu.sgd.pass",
    .backend = "cpu",
    .op = &qn_op_sgd,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = update_accepts,
    .run = sgd_run,
};

const QnKernel qn_kernel_adam_pass = {
    .name = "cpu.adam.pass",
    .backend = "cpu",
    .op = &qn_op_adam,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = update_accepts,
    .run = adam_run,
};

const QnKernel qn_kernel_adamw_pass = {
    .name = "cpu.adamw.pass",
    .backend = "cpu",
    .op = &qn_op_adamw,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = update_accepts,
    .run = adam_run,
};

const QnKernel qn_kernel_adagrad_pass = {
    .name = "cpu.adagrad.pass",
    .backend = "cpu",
    .op = &qn_op_adagrad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = update_accepts,
    .run = adagrad_run,
};

const QnKernel qn_kernel_rmsprop_pass = {
    .name = "cpu.rmsprop.pass",
    .backend = "cpu",
    .op = &qn_op_rmsprop,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = update_accepts,
    .run = rmsprop_run,
};
