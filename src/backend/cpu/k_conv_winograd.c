/* conv, conv_map (a residual sum, a ReLU), conv_dx and conv_dw with filters of 3x3 on channels-last
 * images, by Quern's own Winograd (backend/cpu/winograd.h), at every instruction set. */
#include "backend/cpu/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/winograd.h"
#include "ops/body.h"
#include "ops/ops.h"
#include "ops/window.h"

/* BLOCK_FLOATS of a worker's transformed images stay in its second-level cache; of the gradient by
 * the filters, SLICE_FLOATS a point do. */
enum {
    BLOCK_FLOATS = 64 << 10,
    SLICE_FLOATS = 64 << 10,
    LEAST_TILES = 12, /* below, reading the transformed filters takes longer than the direct sum */
    TILES_OF_UNIT = 8,
    AXES = 2
};

typedef struct State {
    QnWinograd s;
    const QnWinogradFns *fns;
    int64_t u, scratch; /* floats: filters (or their sums), and a worker's part */
} State;

/* ---- what it takes ---- */

static int64_t tiles_along(int64_t pixels)
{
    return (pixels + QN_WINOGRAD_TILE - 1) / QN_WINOGRAD_TILE;
}

static const char *shape_refused(const QnNode *n, const QnConvTypes *t)
{
    const QnShape *w = &t->w->shape, *y = &t->y->shape;
    if (w->rank != 4 || w->dim[2] != 3 || w->dim[3] != 3)
        return "takes filters of 3 x 3";
    QnConvAttr full = qn_window_conv_full(n->attr, AXES);
    for (int i = 0; i < 2 * AXES; i++)
        if (full.strides.v[i % AXES] != 1 || full.dilations.v[i % AXES] != 1 || full.pads.v[i] > 2)
            return "takes stride and dilation 1 and pads of at most 2";
    if (full.groups != 1 || w->dim[0] % QN_WINOGRAD_CHANNELS || w->dim[1] % QN_WINOGRAD_CHANNELS)
        return "takes one group and multiples of 16 channels";
    if (y->dim[2] < 7 || y->dim[3] < 7 ||
        y->dim[0] * tiles_along(y->dim[2]) * tiles_along(y->dim[3]) < LEAST_TILES)
        return "takes images of 7 x 7 and 12 tiles of 4 x 4 at least";
    return NULL;
}

/* What follows the product: an input is added, a ReLU, or both in that order. */
typedef struct Epilogue {
    bool add, relu, other;
} Epilogue;

static Epilogue epilogue_of(const QnNode *n)
{
    if (n->op != &qn_op_conv_map)
        return (Epilogue){ 0 };
    const QnBody *b = qn_body_of(n);
    const QnBodyInstr *first = &b->instr[0], *last = &b->instr[b->n_instr - 1];
    bool adds = first->op == &qn_op_add && b->n_in == 2 && first->arg[0] + first->arg[1] == 1;
    bool relus = last->op == &qn_op_relu && last->arg[0] == (adds ? b->n_in : 0);
    return (Epilogue){ .add = adds,
                       .relu = relus,
                       .other = b->n_instr != adds + relus || b->n_out != 1 ||
                                b->out[0] != b->n_instr - 1 };
}

static const char *epilogue_refused(const QnNode *n)
{
    Epilogue e = epilogue_of(n);
    if (e.other)
        return "takes no other maps than a sum and a relu";
    if (!e.add)
        return NULL;
    const QnType *more = &n->in[n->n_in - 1]->type, *y = &n->out[0].type;
    return qn_shape_is_equal(&more->shape, &y->shape) && more->layout == y->layout
               ? NULL
               : "takes sums with images that lie alike";
}

/* The gradient by the weights transforms both images: that pays where each is in many products. */
static const char *few_channels_refused(const QnConvTypes *t)
{
    enum { LEAST = 64 * 64 };
    return t->x->shape.dim[1] * t->y->shape.dim[1] < LEAST ? "takes 64 x 64 channels at least"
                                                           : NULL;
}

static const char *winograd_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnConvTypes t = qn_conv_types(n);
    (void)env;
    if (t.x->layout != QN_LAYOUT_CHANNELS_LAST || t.y->layout != QN_LAYOUT_CHANNELS_LAST ||
        t.w->layout != QN_LAYOUT_PLAIN)
        return "takes channels-last images and plain weights";
    const char *why = qn_cpu_need_f32(n);
    if (!why)
        why = epilogue_refused(n);
    if (!why)
        why = shape_refused(n, &t);
    return !why && n->op == &qn_op_conv_dw ? few_channels_refused(&t) : why;
}

/* ---- preparing ---- */

static QnWinograd winograd_of(const QnNode *n)
{
    QnConvTypes t = qn_conv_types(n);
    const QnShape *x = &t.x->shape, *y = &t.y->shape;
    QnConvAttr full = qn_window_conv_full(n->attr, AXES);
    int64_t c = x->dim[1], m = y->dim[1];
    QnWinograd s = { .n = x->dim[0],
                     .in_h = x->dim[2],
                     .in_w = x->dim[3],
                     .c = c,
                     .out_h = y->dim[2],
                     .out_w = y->dim[3],
                     .m = m,
                     .top = full.pads.v[0],
                     .left = full.pads.v[1],
                     .wc = 9,
                     .wm = 9 * c,
                     .relu = epilogue_of(n).relu };
    if (n->op == &qn_op_conv_dx) /* a convolution of dy with the filters turned around */
        s = (QnWinograd){ .n = s.n,
                          .in_h = s.out_h,
                          .in_w = s.out_w,
                          .c = m,
                          .out_h = s.in_h,
                          .out_w = s.in_w,
                          .m = c,
                          .top = 2 - s.top,
                          .left = 2 - s.left,
                          .wc = s.wm,
                          .wm = s.wc,
                          .flip = true };
    s.rows = tiles_along(s.out_h);
    s.columns = tiles_along(s.out_w);
    s.tiles = s.n * s.rows * s.columns;
    return s;
}

static QnStatus state_new(QnPrepared *p, State **out)
{
    State *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->s = winograd_of(p->node);
    s->fns = qn_winograd_find(p->env->isa);
    *out = s;
    return QN_OK;
}

static void winograd_fini(QnPrepared *p)
{
    qn_free(p->state);
    p->state = NULL;
}

/* Whole register tiles, few enough for the cache and for every worker to get some. */
static int64_t block_of(const QnWinograd *s, int mr, int n_threads)
{
    int64_t fits = BLOCK_FLOATS / (QN_WINOGRAD_POINTS * (s->c + s->m));
    int64_t share = (s->tiles + n_threads - 1) / n_threads;
    int64_t block = QN_MIN(QN_MAX(fits, 2 * mr), QN_MAX(share, mr));
    return (block + mr - 1) / mr * mr;
}

static QnStatus conv_prepare(QnPrepared *p)
{
    State *s;
    QN_TRY(state_new(p, &s));
    int n_threads = qn_cpu_threads(p);
    s->s.block = block_of(&s->s, s->fns->mr, n_threads);
    s->u = QN_WINOGRAD_POINTS * s->s.c * qn_winograd_panels(&s->s, s->fns->nr) * s->fns->nr;
    s->scratch = (s->fns->scratch(&s->s) + 15) / 16 * 16;
    p->workspace_bytes = (size_t)(n_threads * s->scratch) * sizeof(float);
    if (qn_prepared_is_constant(p, 1)) {
        p->packed_bytes = (size_t)s->u * sizeof(float);
        p->packs = 1 << 1;
    } else {
        p->workspace_bytes += (size_t)s->u * sizeof(float);
    }
    return QN_OK;
}

static QnStatus dw_prepare(QnPrepared *p)
{
    State *s;
    QN_TRY(state_new(p, &s));
    QnWinograd *w = &s->s;
    w->block = QN_MIN(w->tiles, QN_MAX(SLICE_FLOATS / (w->c + w->m), 64));
    s->u = QN_WINOGRAD_POINTS * w->c * w->m;
    s->scratch = QN_WINOGRAD_POINTS * w->block * (w->c + w->m);
    p->workspace_bytes = (size_t)(s->u + s->scratch) * sizeof(float);
    return QN_OK;
}

/* ---- running ---- */

typedef struct Run {
    const State *s;
    QnWinogradRun run;
    const float *x, *w; /* of conv_dw: w is dy */
    float *y, *to, *scratch;
    int64_t first, end; /* conv_dw: tiles of this round */
} Run;

static void pack_unit(void *ctx, int worker, int64_t unit)
{
    const Run *r = ctx;
    (void)worker;
    r->s->fns->pack(&r->s->s, r->w, r->to, unit);
}

static void block_unit(void *ctx, int worker, int64_t unit)
{
    const Run *r = ctx;
    r->s->fns->block(&r->s->s, &r->run, unit, r->scratch + worker * r->s->scratch);
}

static void pack_all(const QnPrepared *p, const float *w, float *to)
{
    const State *s = p->state;
    Run r = { .s = s, .w = w, .to = to };
    qn_cpu_units(qn_cpu_threads(p), qn_winograd_panels(&s->s, s->fns->nr), pack_unit, &r);
}

static QnStatus conv_pack(const QnPrepared *p, const void *const *in, void *packed)
{
    pack_all(p, in[1], packed);
    return QN_OK;
}

static QnStatus conv_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const State *s = p->state;
    const QnNode *n = p->node;
    bool is_map = n->op == &qn_op_conv_map;
    bool has_bias = is_map ? qn_conv_map_split(n) > 2 : n->op == &qn_op_conv && n->n_in > 2;
    Run r = { .s = s, .scratch = workspace };
    r.run = (QnWinogradRun){ .x = in[0], .bias = has_bias ? in[2] : NULL, .y = out[0] };
    if (is_map && epilogue_of(n).add)
        r.run.more = in[n->n_in - 1];
    if (p->packs) {
        r.run.u = p->packed;
    } else {
        float *u = r.scratch + qn_cpu_threads(p) * s->scratch;
        pack_all(p, in[1], u);
        r.run.u = u;
    }
    qn_cpu_units(qn_cpu_threads(p), (s->s.tiles + s->s.block - 1) / s->s.block, block_unit, &r);
    return QN_OK;
}

static void tiles_unit(void *ctx, int worker, int64_t unit)
{
    const Run *r = ctx;
    const QnWinograd *s = &r->s->s;
    int64_t t0 = r->first + unit * TILES_OF_UNIT, t1 = QN_MIN(t0 + TILES_OF_UNIT, r->end);
    float *e = r->scratch + QN_WINOGRAD_POINTS * s->block * s->c;
    (void)worker;
    r->s->fns->dw_tiles(s, r->x, r->w, r->scratch, e, r->first, t0, t1);
}

static void products_unit(void *ctx, int worker, int64_t unit)
{
    const Run *r = ctx;
    const QnWinograd *s = &r->s->s;
    const float *e = r->scratch + QN_WINOGRAD_POINTS * s->block * s->c;
    (void)worker;
    r->s->fns->dw_products(s, r->scratch, e, r->end - r->first, r->first > 0, r->to, unit);
}

static void finish_unit(void *ctx, int worker, int64_t unit)
{
    const Run *r = ctx;
    (void)worker;
    r->s->fns->dw_finish(&r->s->s, r->to, r->y, unit);
}

static QnStatus dw_run(const QnPrepared *p, const void *const *in, void *const *out,
                       void *workspace)
{
    const State *s = p->state;
    int n_threads = qn_cpu_threads(p);
    Run r = { .s = s, .x = in[1], .w = in[0], .y = out[0], .to = workspace };
    r.scratch = r.to + s->u;
    for (r.first = 0; r.first < s->s.tiles; r.first = r.end) {
        r.end = QN_MIN(r.first + s->s.block, s->s.tiles);
        qn_cpu_units(n_threads, (r.end - r.first + TILES_OF_UNIT - 1) / TILES_OF_UNIT, tiles_unit,
                     &r);
        qn_cpu_units(n_threads, QN_WINOGRAD_POINTS, products_unit, &r);
    }
    qn_cpu_units(n_threads, qn_winograd_panels(&s->s, s->fns->nr), finish_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_conv_winograd = {
    .name = "cpu.conv.winograd",
    .backend = "cpu",
    .op = &qn_op_conv,
    .rank = 78,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = winograd_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .pack = conv_pack,
    .fini = winograd_fini,
};

const QnKernel qn_kernel_conv_map_winograd = {
    .name = "cpu.conv_map.winograd",
    .backend = "cpu",
    .op = &qn_op_conv_map,
    .rank = 78,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = winograd_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .pack = conv_pack,
    .fini = winograd_fini,
};

const QnKernel qn_kernel_conv_dx_winograd = {
    .name = "cpu.conv_dx.winograd",
    .backend = "cpu",
    .op = &qn_op_conv_dx,
    .rank = 78,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = winograd_accepts,
    .prepare = conv_prepare,
    .run = conv_run,
    .pack = conv_pack,
    .fini = winograd_fini,
};

const QnKernel qn_kernel_conv_dw_winograd = {
    .name = "cpu.conv_dw.winograd",
    .backend = "cpu",
    .op = &qn_op_conv_dw,
    .rank = 78,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = winograd_accepts,
    .prepare = dw_prepare,
    .run = dw_run,
    .fini = winograd_fini,
};
