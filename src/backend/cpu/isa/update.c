/* Optimizer steps. */
#include "backend/cpu/update.h"
#include "backend/cpu/isa/simd.h"

#include <math.h>

static void sgd(const QnUpdate *u, int64_t begin, int64_t end)
{
    const float *p = u->p, *g = u->g;
    const float lr = u->lr, decay = u->decay;
    float *p1 = u->p1;
    QN_IVDEP for (int64_t i = begin; i < end; i++) p1[i] = p[i] - lr * (g[i] + decay * p[i]);
}

static void sgd_moment(const QnUpdate *u, int64_t begin, int64_t end)
{
    const float *p = u->p, *m = u->m, *g = u->g;
    const float lr = u->lr, decay = u->decay, keep = u->keep_m;
    const float look = u->nesterov ? keep : 1, now = u->nesterov ? 1 : 0;
    float *p1 = u->p1, *m1 = u->m1;
    QN_IVDEP for (int64_t i = begin; i < end; i++)
    {
        float old = p[i], d = g[i] + decay * old, b = keep * m[i] + d;
        m1[i] = b;
        p1[i] = old - lr * (now * d + look * b);
    }
}

/* Adam has shrink 1, AdamW decay 0. */
static void adam(const QnUpdate *u, int64_t begin, int64_t end)
{
    const float *p = u->p, *m = u->m, *v = u->v, *g = u->g;
    const float lr = u->lr, decay = u->decay, keep_m = u->keep_m, keep_v = u->keep_v;
    const float root = u->root, eps = u->eps, shrink = u->shrink;
    float *p1 = u->p1, *m1 = u->m1, *v1 = u->v1;
    QN_IVDEP for (int64_t i = begin; i < end; i++)
    {
        float old = p[i], d = g[i] + decay * old;
        float a = keep_m * m[i] + (1 - keep_m) * d, b = keep_v * v[i] + (1 - keep_v) * d * d;
        m1[i] = a;
        v1[i] = b;
        p1[i] = old * shrink - lr * a / (sqrtf(b) * root + eps);
    }
}

static void adagrad(const QnUpdate *u, int64_t begin, int64_t end)
{
    const float *p = u->p, *v = u->v, *g = u->g;
    const float lr = u->lr, decay = u->decay, eps = u->eps;
    float *p1 = u->p1, *v1 = u->v1;
    QN_IVDEP for (int64_t i = begin; i < end; i++)
    {
        float old = p[i], d = g[i] + decay * old, b = v[i] + d * d;
        v1[i] = b;
        p1[i] = old - lr * d / (sqrtf(b) + eps);
    }
}

static void rmsprop(const QnUpdate *u, int64_t begin, int64_t end)
{
    const float *p = u->p, *v = u->v, *g = u->g;
    const float lr = u->lr, decay = u->decay, eps = u->eps, keep = u->keep_v;
    float *p1 = u->p1, *v1 = u->v1;
    QN_IVDEP for (int64_t i = begin; i < end; i++)
    {
        float old = p[i], d = g[i] + decay * old, b = keep * v[i] + (1 - keep) * d * d;
        v1[i] = b;
        p1[i] = old - lr * d / (sqrtf(b) + eps);
    }
}

static void rmsprop_moment(const QnUpdate *u, int64_t begin, int64_t end)
{
    const float *p = u->p, *m = u->m, *v = u->v, *g = u->g;
    const float lr = u->lr, decay = u->decay, eps = u->eps, keep = u->keep_v, keep_m = u->keep_m;
    float *p1 = u->p1, *m1 = u->m1, *v1 = u->v1;
    QN_IVDEP for (int64_t i = begin; i < end; i++)
    {
        float old = p[i], d = g[i] + decay * old, b = keep * v[i] + (1 - keep) * d * d;
        float a = keep_m * m[i] + d / (sqrtf(b) + eps);
        v1[i] = b;
        m1[i] = a;
        p1[i] = old - lr * a;
    }
}

const QnUpdateFns QN_ISA_NAME(qn_update_fns) = {
    .sgd = sgd,
    .sgd_moment = sgd_moment,
    .adam = adam,
    .adagrad = adagrad,
    .rmsprop = rmsprop,
    .rmsprop_moment = rmsprop_moment,
};
