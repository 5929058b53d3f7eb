/* batch_norm, its statistics alone and its gradient in f32, in either layout: two passes over the
 * tensor, in parts that fit the cache. 16-bit images are widened part by part; where parameters
 * have 16 bits too, everything is widened first. */
#include "backend/cpu/channels.h"
#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

#include <math.h>

typedef struct NormState {
    QnChannels s;
    const QnChannelFns *fns;
    const QnConvertFns *convert;
    QnDtype dtype; /* of images */
    bool by_parts; /* images have 16 bits */
    int64_t part_floats;
    float eps;
} NormState;

typedef struct NormRun {
    const NormState *n;
    const void *dy, *x;
    void *y;
    const float *mean, *scale, *bias, *gamma;
    float *parts, *wide;     /* two parts of images a worker, in f32 */
    float *to_scale, *to[3]; /* by channel, made of the parts */
    const QnChannelRelu *relu;
    QnChannelGrad k;
    QnChannelJoin join;
} NormRun;

static bool is_grad(const QnNode *n)
{
    return n->op == &qn_op_batch_norm_grad || n->op == &qn_op_batch_norm_relu_grad;
}

static bool is_stats(const QnNode *n)
{
    return n->op == &qn_op_batch_norm_stats;
}

/* The tensors of x's shape must lie alike. */
static const char *norm_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    QnLayout x = n->in[0]->type.layout;
    if ((!is_stats(n) && n->out[0].type.layout != x) || (is_grad(n) && n->in[1]->type.layout != x))
        return "x and y differ in layout";
    return qn_widen_refuses(n);
}

/* Whether its images are of one 16-bit type: those it reads, and the first that it writes. */
static bool images_are_half(const QnNode *n)
{
    QnDtype d = n->in[0]->type.dtype;
    return (d == QN_DTYPE_F16 || d == QN_DTYPE_BF16) &&
           (is_stats(n) || n->out[0].type.dtype == d) && (!is_grad(n) || n->in[1]->type.dtype == d);
}

/* Operands that are not widened as a whole. */
static unsigned kept(const NormState *s, const QnNode *n)
{
    unsigned images = 1u | (is_grad(n) ? 1u << 1 : 0) | (is_stats(n) ? 0 : 1u << n->n_in);
    return s->by_parts ? images : 0;
}

static QnStatus norm_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    NormState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->s = qn_channels_of(&n->in[0]->type);
    s->s.streams = qn_stream_for(p->env->isa, (size_t)qn_type_bytes(&n->out[0].type)) != NULL;
    s->fns = qn_channels_find(p->env->isa);
    if (!is_grad(n))
        s->eps = (float)*(const double *)qn_cpu_attr(n, "eps");
    p->state = s;
    s->convert = qn_convert_find(p->env->isa);
    s->dtype = n->in[0]->type.dtype;
    s->by_parts = images_are_half(n);
    s->part_floats =
        ((s->s.outer + s->s.n_parts - 1) / s->s.n_parts * s->s.c * s->s.inner + 15) / 16 * 16;
    int64_t wide = s->by_parts ? 2 * p->env->n_threads * s->part_floats : 0;
    p->workspace_bytes = (size_t)((3 * s->s.n_parts + 3) * s->s.c + wide) * sizeof(float);
    qn_widen_prepare_but(p, kept(s, n));
    return QN_OK;
}

/* ---- parts ---- */

/* A part as a tensor of its own; its first element. */
static int64_t part_of(const QnChannels *s, int64_t part, QnChannels *one)
{
    int64_t first = qn_cpu_part_begin(s->outer, s->n_parts, part);
    *one = *s;
    one->outer = qn_cpu_part_begin(s->outer, s->n_parts, part + 1) - first;
    one->n_parts = 1;
    return first * s->c * s->inner;
}

static float *wide_of(const NormRun *r, int worker, int which)
{
    return r->wide + (2 * worker + which) * r->n->part_floats;
}

/* n elements of an image from `at` on, in `wide` where they are no floats. */
static const float *load(const NormRun *r, const void *x, int64_t at, int64_t n, float *wide)
{
    const NormState *s = r->n;
    if (!s->by_parts)
        return (const float *)x + at;
    s->convert->to_f32(s->dtype, (const char *)x + (size_t)at * sizeof(uint16_t), wide, n);
    return wide;
}

static float *result(const NormRun *r, int64_t at, float *wide)
{
    return r->n->by_parts ? wide : (float *)r->y + at;
}

static void store(const NormRun *r, int64_t at, int64_t n, const float *wide)
{
    const NormState *s = r->n;
    if (s->by_parts)
        s->convert->from_f32(s->dtype, wide, (char *)r->y + (size_t)at * sizeof(uint16_t), n);
}

static void norm_fini(QnPrepared *p)
{
    qn_free(p->state);
}

static int64_t part_pixels(const QnChannels *s, int64_t part)
{
    return (s->outer / s->n_parts + (part < s->outer % s->n_parts)) * s->inner;
}

/* ---- batch_norm ---- */

static void stats_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    QnChannels one;
    int64_t at = part_of(&r->n->s, part, &one), n = one.outer * one.c * one.inner;
    r->n->fns->stats(&one, load(r, r->x, at, n, wide_of(r, worker, 0)), 0,
                     r->parts + part * 3 * one.c);
}

static void affine_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    QnChannels one;
    int64_t at = part_of(&r->n->s, part, &one), n = one.outer * one.c * one.inner;
    float *wide = wide_of(r, worker, 0), *y = result(r, at, wide);
    r->n->fns->affine(&one, load(r, r->x, at, n, wide), r->mean, r->scale, r->bias, y, 0);
    store(r, at, n, y);
}

enum { JOINT = QN_CHANNELS_JOINT };

static int64_t joints(const QnChannels *s)
{
    return (s->c + JOINT - 1) / JOINT;
}

/* Means and sums of squared differences of n channels from c on (Chan, Golub and LeVeque, 1979). */
static void join_stats(const QnChannels *s, const float *parts, int64_t c, int64_t n, double *mean,
                       double *squares)
{
    double count = 0;
    for (int64_t j = 0; j < n; j++)
        mean[j] = squares[j] = 0;
    for (int64_t i = 0; i < s->n_parts; i++) {
        const float *m = parts + i * 3 * s->c + c, *q = m + s->c;
        double k = (double)part_pixels(s, i), before = count;
        if (k == 0)
            continue;
        count += k;
        double share = k / count;
        for (int64_t j = 0; j < n; j++) {
            double d = m[j] - mean[j];
            mean[j] += d * share;
            squares[j] += q[j] + d * d * share * before;
        }
    }
}

static void stats_joint(void *ctx, int64_t joint)
{
    const NormRun *r = ctx;
    const QnChannels *s = &r->n->s;
    int64_t c = joint * JOINT, n = QN_MIN((int64_t)JOINT, s->c - c);
    double mean[JOINT], squares[JOINT], count = (double)(s->outer * s->inner);
    join_stats(s, r->parts, c, n, mean, squares);
    for (int64_t j = 0; j < n; j++) {
        double inverse = 1 / sqrt(squares[j] / count + (double)r->n->eps);
        r->to_scale[c + j] = (float)(inverse * r->gamma[c + j]);
        r->to[0][c + j] = (float)mean[j];
        r->to[1][c + j] = (float)inverse;
        r->to[2][c + j] = (float)(squares[j] / fmax(count - 1, 1));
    }
}

/* The workspace is the scales, unless they are an output, the parts and the wide images. */
static void find_stats(const QnPrepared *p, NormRun *r, void *const *out, float *workspace)
{
    const QnChannels *s = &r->n->s;
    r->mean = out[1];
    r->scale = r->to_scale = is_stats(p->node) ? out[0] : workspace;
    for (int i = 0; i < 3; i++) /* mean, reciprocal deviation, variance */
        r->to[i] = out[1 + i];
    r->parts = workspace + s->c;
    r->wide = r->parts + 3 * s->n_parts * s->c;
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, stats_unit, r);
    qn_cpu_parallel(qn_cpu_threads(p), joints(s), stats_joint, r);
}

static QnStatus batch_norm_f32(const QnPrepared *p, const void *const *in, void *const *out,
                               void *workspace)
{
    const NormState *n = p->state;
    NormRun r = { .n = n, .x = in[0], .gamma = in[1], .y = out[0] };
    find_stats(p, &r, out, workspace);
    if (is_stats(p->node))
        return QN_OK;
    r.bias = in[2];
    qn_cpu_units(qn_cpu_threads(p), n->s.n_parts, affine_unit, &r);
    return QN_OK;
}

static QnStatus batch_norm_run(const QnPrepared *p, const void *const *in, void *const *out,
                               void *workspace)
{
    const NormState *s = p->state;
    return qn_widen_run_but(p, in, out, workspace, kept(s, p->node), batch_norm_f32);
}

/* ---- batch_norm_grad ---- */

static void grad_sums_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    QnChannels one;
    int64_t at = part_of(&r->n->s, part, &one), n = one.outer * one.c * one.inner;
    r->n->fns->grad_sums(&one, load(r, r->dy, at, n, wide_of(r, worker, 0)),
                         load(r, r->x, at, n, wide_of(r, worker, 1)), r->mean, r->relu, 0,
                         r->parts + part * 3 * one.c);
}

static void grad_unit(void *ctx, int worker, int64_t part)
{
    const NormRun *r = ctx;
    QnChannels one;
    int64_t at = part_of(&r->n->s, part, &one), n = one.outer * one.c * one.inner;
    float *wide = wide_of(r, worker, 0), *dx = result(r, at, wide);
    r->n->fns->grad(&one, load(r, r->dy, at, n, wide), load(r, r->x, at, n, wide_of(r, worker, 1)),
                    r->mean, r->relu, &r->k, dx, 0);
    store(r, at, n, dx);
}

static void grad_joint(void *ctx, int64_t joint)
{
    qn_channels_join_grad(&((const NormRun *)ctx)->join, joint);
}

/* What images of this type round to 0, ties to even. */
static float least_of(QnDtype d)
{
    return d == QN_DTYPE_F16 ? 0x1p-25f : d == QN_DTYPE_BF16 ? 0x1p-134f : 0.0f;
}

static QnStatus batch_norm_grad_f32(const QnPrepared *p, const void *const *in, void *const *out,
                                    void *workspace)
{
    const NormState *n = p->state;
    const QnChannels *s = &n->s;
    bool has_relu = p->node->op == &qn_op_batch_norm_relu_grad;
    float *scale = workspace, *k0 = scale + s->c, *k1 = k0 + s->c;
    QnChannelRelu relu = { .factor = in[4], .bias = in[5], .least = least_of(n->dtype) };
    NormRun r = { .n = n, .dy = in[0], .x = in[1], .mean = in[2], .y = out[0] };
    r.relu = has_relu ? &relu : NULL;
    r.k = (QnChannelGrad){ has_relu ? relu.factor : scale, k0, k1 };
    r.parts = k1 + s->c;
    r.wide = r.parts + 3 * s->n_parts * s->c;
    r.join = (QnChannelJoin){ .c = s->c,
                              .n_parts = s->n_parts,
                              .step = 3 * s->c,
                              .n = (double)(s->outer * s->inner),
                              .parts = r.parts,
                              .rstd = in[3],
                              .gamma = has_relu ? NULL : in[4],
                              .to_scale = scale,
                              .to_k0 = k0,
                              .to_k1 = k1,
                              .dscale = out[1],
                              .dbias = out[2] };
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, grad_sums_unit, &r);
    qn_cpu_parallel(qn_cpu_threads(p), joints(s), grad_joint, &r);
    qn_cpu_units(qn_cpu_threads(p), s->n_parts, grad_unit, &r);
    return QN_OK;
}

static QnStatus batch_norm_grad_run(const QnPrepared *p, const void *const *in, void *const *out,
                                    void *workspace)
{
    const NormState *s = p->state;
    return qn_widen_run_but(p, in, out, workspace, kept(s, p->node), batch_norm_grad_f32);
}

const QnKernel qn_kernel_batch_norm_channels = {
    .name = "cpu.batch_norm.channels",
    .backend = "cpu",
    .op = &qn_op_batch_norm,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = batch_norm_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_batch_norm_stats_channels = {
    .name = "cpu.batch_norm_stats.channels",
    .backend = "cpu",
    .op = &qn_op_batch_norm_stats,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = batch_norm_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_batch_norm_grad_channels = {
    .name = "cpu.batch_norm_grad.channels",
    .backend = "cpu",
    .op = &qn_op_batch_norm_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = batch_norm_grad_run,
    .fini = norm_fini,
};

const QnKernel qn_kernel_batch_norm_relu_grad_channels = {
    .name = "cpu.batch_norm_relu_grad.channels",
    .backend = "cpu",
    .op = &qn_op_batch_norm_relu_grad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = norm_accepts,
    .prepare = norm_prepare,
    .run = batch_norm_grad_run,
    .fini = norm_fini,
};
