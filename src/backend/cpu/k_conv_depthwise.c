/* conv, conv_map, conv_dx and conv_dw with one filter a channel, on channels-last images: in f32,
 * to which 16 bits are widened. Maps go over a unit's pixels while they are in the caches. */
#include "backend/cpu/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/depthwise.h"
#include "backend/cpu/tape.h"
#include "backend/cpu/widen.h"
#include "ops/body.h"
#include "ops/ops.h"

enum {
    PACKED_BY_ONE = 1 << 16, /* floats of filters that one thread packs, or joins sums of */
    UNITS_OF_WORKER = 8,
    LEAST_UNIT = 4096, /* floats that a unit writes */
    MOST_UNIT = 64 << 10,
    MAP_UNIT = 32 << 10 /* at most, where maps then find them in the second-level cache */
};

typedef struct State {
    QnDepthwise d;
    const QnDepthwiseFns *fns;
    const QnDepthwiseDwFns *dw;
    QnTape tape;       /* of conv_map */
    int64_t unit;      /* pixels */
    int64_t packed;    /* floats of filters, or of sums */
    int64_t registers; /* floats of a worker */
} State;

/* ---- what it takes ---- */

/* Operands of the maps: the convolution's result, which lies where theirs does, and more inputs. */
static int map_operands(const QnNode *n, const QnType *in[QN_MAX_IN])
{
    int n_in = 0;
    in[n_in++] = &n->out[0].type;
    for (int i = qn_conv_map_split(n); i < n->n_in; i++)
        in[n_in++] = &n->in[i]->type;
    return n_in;
}

static const char *maps_refused(const QnNode *n, const QnKernelEnv *env)
{
    const QnType *in[QN_MAX_IN];
    if (n->in[0]->type.dtype != QN_DTYPE_F32 || n->out[0].type.dtype != QN_DTYPE_F32)
        return "takes maps in f32";
    map_operands(n, in);
    return qn_tape_refuses(qn_body_of(n), in, env);
}

static const char *depthwise_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnConvTypes t = qn_conv_types(n);
    if (t.x->layout != QN_LAYOUT_CHANNELS_LAST || t.y->layout != QN_LAYOUT_CHANNELS_LAST ||
        t.w->layout != QN_LAYOUT_PLAIN)
        return "takes channels-last images and plain weights";
    QnConvGeom g = qn_window_conv(n->attr, &t.x->shape, &t.w->shape, &t.y->shape);
    if (g.groups < 2 || g.groups != g.c || g.c != g.m)
        return "takes one filter a channel";
    return n->op == &qn_op_conv_map ? maps_refused(n, env) : qn_widen_refuses(n);
}

/* ---- preparing ---- */

static void depthwise_fini(QnPrepared *p)
{
    State *s = p->state;
    if (s)
        qn_depthwise_fini(&s->d);
    qn_free(s);
    p->state = NULL;
}

static QnStatus state_new(QnPrepared *p, State **out)
{
    QnConvTypes t = qn_conv_types(p->node);
    QnConvGeom g = qn_window_conv(p->node->attr, &t.x->shape, &t.w->shape, &t.y->shape);
    State *s = *out = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    *s = (State){ .fns = qn_depthwise_find(p->env->isa), .dw = qn_depthwise_dw_find(p->env->isa) };
    if (qn_depthwise_init(&s->d, &g, p->node->op == &qn_op_conv_dx))
        return QN_OK;
    depthwise_fini(p);
    return QN_ENOMEM;
}

/* Pixels of a unit: some a worker; with maps after it whole tiles of theirs. */
static int64_t unit_of(const QnPrepared *p, const State *s)
{
    int64_t c = QN_MAX(s->d.c, 1), pixels = qn_depthwise_pixels(&s->d), whole = 1;
    int64_t share = pixels / (qn_cpu_threads(p) * UNITS_OF_WORKER) + 1;
    int64_t unit = QN_MAX(QN_MIN(share, MOST_UNIT / c), LEAST_UNIT / c + 1);
    if (p->node->op == &qn_op_conv_map) {
        unit = QN_MIN(unit, MAP_UNIT / c + 1);
        while (whole * c % s->tape.step)
            whole++; /* at most a step of the tape */
    }
    return (unit + whole - 1) / whole * whole;
}

static QnStatus conv_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    const QnType *in[QN_MAX_IN];
    State *s;
    QN_TRY(state_new(p, &s));
    if (n->op == &qn_op_conv_map) {
        map_operands(n, in);
        qn_tape_init(&s->tape, p->env, qn_body_of(n), in, &n->out[0].type, 0);
        s->registers = qn_tape_floats(&s->tape);
    } else if (n->out[0].type.dtype == QN_DTYPE_F32) {
        s->d.past = qn_stream_for(p->env->isa, (size_t)qn_type_bytes(&n->out[0].type)) != NULL;
    }
    s->unit = unit_of(p, s);
    s->packed = qn_depthwise_packed(&s->d, s->fns->lanes);
    p->workspace_bytes = (size_t)(s->packed + p->env->n_threads * s->registers) * sizeof(float);
    if (n->op != &qn_op_conv_map) /* what else its maps read stays as it is */
        qn_widen_prepare(p);
    return QN_OK;
}

static QnStatus dw_prepare(QnPrepared *p)
{
    State *s;
    QN_TRY(state_new(p, &s));
    s->packed = s->d.n_parts * qn_depthwise_sums(&s->d, s->fns->lanes);
    p->workspace_bytes = (size_t)s->packed * sizeof(float);
    qn_widen_prepare(p);
    return QN_OK;
}

/* ---- running ---- */

typedef struct Run {
    const State *s;
    const float *x, *w, *bias; /* of conv_dw: w is dy */
    float *y, *packed, *registers;
    const void *operands[QN_MAX_IN]; /* of the maps */
} Run;

static void pack_block(void *ctx, int64_t block)
{
    const Run *r = ctx;
    r->s->fns->pack(&r->s->d, r->w, r->bias, r->packed, block);
}

static void conv_unit(void *ctx, int worker, int64_t unit)
{
    const Run *r = ctx;
    const State *s = r->s;
    int64_t begin = unit * s->unit, end = QN_MIN(begin + s->unit, qn_depthwise_pixels(&s->d));
    const QnTape *t = &s->tape;
    s->fns->pixels(&s->d, r->x, r->packed, r->y, begin, end);
    if (!t->step)
        return;
    float *own = r->registers + worker * s->registers;
    void *out[] = { r->y };
    qn_tape_begin(t, r->operands, own);
    for (int64_t i = begin * s->d.c; i < end * s->d.c; i += t->step)
        qn_tape_run(t, r->operands, out, own, i, QN_MIN(t->step, end * s->d.c - i));
}

/* Threads for what is done by blocks of channels. */
static int threads_of_blocks(const QnPrepared *p)
{
    return ((const State *)p->state)->packed < PACKED_BY_ONE ? 1 : qn_cpu_threads(p);
}

static QnStatus conv_f32(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const State *s = p->state;
    const QnNode *n = p->node;
    bool maps = n->op == &qn_op_conv_map;
    int n_conv = maps ? qn_conv_map_split(n) : n->n_in;
    Run r = { .s = s, .x = in[0], .w = in[1], .y = out[0], .packed = workspace };
    r.bias = n_conv > 2 ? in[2] : NULL;
    r.registers = r.packed + s->packed;
    r.operands[0] = out[0];
    for (int i = n_conv; i < n->n_in; i++)
        r.operands[1 + i - n_conv] = in[i];
    qn_cpu_parallel(threads_of_blocks(p), qn_depthwise_blocks(&s->d, s->fns->lanes), pack_block,
                    &r);
    qn_cpu_units(qn_cpu_threads(p), (qn_depthwise_pixels(&s->d) + s->unit - 1) / s->unit, conv_unit,
                 &r);
    return QN_OK;
}

static void dw_part(void *ctx, int worker, int64_t part)
{
    const Run *r = ctx;
    (void)worker;
    r->s->dw->part(&r->s->d, r->x, r->w, r->packed, part);
}

static void dw_join(void *ctx, int64_t block)
{
    const Run *r = ctx;
    r->s->dw->join(&r->s->d, r->packed, r->y, block);
}

static QnStatus dw_f32(const QnPrepared *p, const void *const *in, void *const *out,
                       void *workspace)
{
    const State *s = p->state;
    Run r = { .s = s, .x = in[1], .w = in[0], .y = out[0], .packed = workspace };
    qn_cpu_units(qn_cpu_threads(p), s->d.n_parts, dw_part, &r);
    qn_cpu_parallel(threads_of_blocks(p), qn_depthwise_blocks(&s->d, s->fns->lanes), dw_join, &r);
    return QN_OK;
}

static QnStatus run(const QnPrepared *p, const void *const *in, void *const *out, void *workspace)
{
    bool dw = p->node->op == &qn_op_conv_dw;
    return p->node->op == &qn_op_conv_map
               ? conv_f32(p, in, out, workspace)
               : qn_widen_run(p, in, out, workspace, dw ? dw_f32 : conv_f32);
}

const QnKernel qn_kernel_conv_depthwise = {
    .name = "cpu.conv.depthwise",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 65,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = depthwise_accepts,
    .prepare = conv_prepare,
    .run = run,
    .fini = depthwise_fini,
};

const QnKernel qn_kernel_conv_map_depthwise = {
    .name = "cpu.conv_map.depthwise",
    .backend = "cpu",
    .op = &qn_op_conv_map,
    .rank = 65,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = depthwise_accepts,
    .prepare = conv_prepare,
    .run = run,
    .fini = depthwise_fini,
};

const QnKernel qn_kernel_conv_dx_depthwise = {
    .name = "cpu.conv_dx.depthwise",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 65,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = depthwise_accepts,
    .prepare = conv_prepare,
    .run = run,
    .fini = depthwise_fini,
};

const QnKernel qn_kernel_conv_dw_depthwise = {
    .name = "cpu.conv_dw.depthwise",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 65,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = depthwise_accepts,
    .prepare = dw_prepare,
    .run = run,
    .fini = depthwise_fini,
};
