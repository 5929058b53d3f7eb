/* Sums of what a body of maps computes: tiles of it stay in the first-level cache and are folded
 * there. The kept axes must come before the folded ones, or after them. What is folded falls into
 * parts that depend on the shapes alone; their results are joined in order, in double. */
#include "backend/cpu/fold.h"
#include "backend/cpu/tape.h"
#include "ops/body.h"
#include "ops/ops.h"
#include "ops/util.h"

enum { UNIT = 16384, MAX_PARTS = 64, STORED = 1024 };

typedef struct SumState {
    QnTape tape;
    const QnFoldFns *fns;
    QnDtype dtype;
    bool columns;         /* memory is (folded, kept), else (kept, folded) */
    int64_t kept, folded; /* elements */
    int64_t rows;         /* runs: that a tile holds, 0: a run is longer than a tile */
    int64_t parts;        /* of what is folded */
    int64_t blocks;       /* of columns, or of runs that units share out */
    double scale;
    int64_t registers; /* floats a worker */
} SumState;

/* ---- accepts ---- */

/* Shape that is folded, in the layout of the first operand that has it whole. */
static QnType whole_of(const QnNode *n)
{
    QnType t = { .dtype = QN_DTYPE_F32, .shape = qn_fused_sum_shape(n) };
    for (int i = 0; i < n->n_in; i++) {
        if (qn_shape_is_equal(&n->in[i]->type.shape, &t.shape)) {
            t.layout = n->in[i]->type.layout;
            break;
        }
    }
    return t;
}

/* Splits the axes in memory order; NULL, or why they cannot be. */
static const char *split_axes(const QnNode *n, const QnType *t, SumState *s)
{
    unsigned mask;
    int order[QN_MAX_RANK], changes = 0, before = -1, last = -1;
    const QnReduceAttr *attr = n->attr; /* the first member */
    if (qn_util_axes_mask("fused_sum", &t->shape, &attr->axes, &mask) != QN_OK)
        return "has no such axes";
    qn_type_order(t, order);
    s->kept = s->folded = 1;
    s->columns = false;
    for (int i = 0; i < t->shape.rank; i++) {
        int64_t dim = t->shape.dim[order[i]];
        int fold = mask >> order[i] & 1;
        if (dim == 1)
            continue;
        *(fold ? &s->folded : &s->kept) *= dim;
        changes += before >= 0 && before != fold;
        before = fold;
        s->columns = !fold;
        if (!fold && order[i] < last)
            return "keeps axes of channels-last images";
        last = fold ? last : order[i];
    }
    if (s->folded == 1)
        s->columns = false;
    return changes > 1 ? "folds axes between kept ones, or around them" : NULL;
}

static void types_of(const QnNode *n, const QnType *in[QN_TAPE_MAX_OPERAND])
{
    for (int i = 0; i < n->n_in; i++)
        in[i] = &n->in[i]->type;
}

static const char *sum_accepts(const QnNode *n, const QnKernelEnv *env)
{
    const QnType *in[QN_TAPE_MAX_OPERAND], *y = &n->out[0].type;
    SumState s;
    if (n->n_in > QN_TAPE_MAX_OPERAND)
        return "too large a group";
    if (y->dtype != QN_DTYPE_F32 && y->dtype != QN_DTYPE_F16 && y->dtype != QN_DTYPE_BF16)
        return "adds f32, f16 and bf16";
    if (y->layout != QN_LAYOUT_PLAIN)
        return "writes only the plain layout";
    QnType whole = whole_of(n);
    if (qn_shape_count(&whole.shape) <= 0)
        return "takes no empty tensors";
    const char *why = split_axes(n, &whole, &s);
    types_of(n, in);
    return why ? why : qn_tape_refuses(qn_body_of(n), in, env);
}

/* ---- prepare ---- */

static int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Returns what the beginnings of tiles are multiples of. */
static int64_t choose_parts(SumState *s)
{
    const int64_t tile = QN_TAPE_TILE;
    if (s->columns) {
        int64_t wide = QN_MIN(s->kept, tile);
        s->blocks = div_up(s->kept, tile);
        s->parts = s->blocks >= MAX_PARTS ? 1 : s->folded * wide / UNIT;
        s->parts = QN_MAX(1, QN_MIN(QN_MIN(s->parts, s->folded), MAX_PARTS));
        return s->kept <= tile ? s->kept : s->kept % tile ? 1 : tile;
    }
    s->rows = s->folded <= tile / 2 ? tile / s->folded : 0;
    s->parts = s->rows ? 1 : div_up(s->folded, UNIT);
    s->blocks = s->rows ? div_up(s->kept, s->rows) : s->kept;
    if (s->rows)
        return s->rows * s->folded;
    return s->kept == 1 || s->folded % tile == 0 ? tile : 1;
}

static QnStatus sum_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    const QnType *in[QN_TAPE_MAX_OPERAND], whole = whole_of(n);
    SumState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    split_axes(n, &whole, s);
    types_of(n, in);
    s->fns = qn_fold_find(p->env->isa);
    s->dtype = n->out[0].type.dtype;
    s->scale = *(const bool *)qn_cpu_attr(n, "mean") ? (double)s->folded : 1;
    qn_tape_init(&s->tape, p->env, qn_body_of(n), in, &whole, choose_parts(s));
    s->registers = qn_tape_floats(&s->tape);
    p->workspace_bytes = (size_t)(div_up(s->kept * s->parts, 8) * 8) * sizeof(double) +
                         (size_t)(p->env->n_threads * s->registers) * sizeof(float);
    return QN_OK;
}

static void sum_fini(QnPrepared *p)
{
    qn_free(p->state);
}

/* ---- run ---- */

typedef struct SumRun {
    const SumState *s;
    const void *const *in;
    double *partial; /* (kept, parts), of columns (parts, kept) */
    float *registers;
    void *y;
    int64_t units, batch;
} SumRun;

static const float *tile(const SumRun *r, float *own, int64_t i, int64_t n)
{
    return qn_tape_run(&r->s->tape, r->in, NULL, own, i, n);
}

/* As many runs as a tile holds. */
static void fold_short(const SumRun *r, float *own, int64_t unit)
{
    const SumState *s = r->s;
    int64_t begin = unit * s->rows, n = QN_MIN(s->rows, s->kept - begin);
    const float *x = tile(r, own, begin * s->folded, n * s->folded);
    for (int64_t i = 0; i < n; i++)
        r->partial[begin + i] = s->fns->run(QN_FOLD_SUM, x + i * s->folded, s->folded);
}

/* A part of a long run. */
static void fold_long(const SumRun *r, float *own, int64_t unit)
{
    const SumState *s = r->s;
    int64_t row = unit / s->parts, part = unit % s->parts;
    int64_t end = QN_MIN((part + 1) * UNIT, s->folded);
    double y = 0;
    for (int64_t i = part * UNIT; i < end; i += QN_TAPE_TILE) {
        int64_t n = QN_MIN((int64_t)QN_TAPE_TILE, end - i);
        y += (double)s->fns->run(QN_FOLD_SUM, tile(r, own, row * s->folded + i, n), n);
    }
    r->partial[unit] = y;
}

/* A part of the rows of a block of columns. */
static void fold_columns(const SumRun *r, float *own, int64_t unit)
{
    const SumState *s = r->s;
    int64_t part = unit / s->blocks, column = unit % s->blocks * QN_TAPE_TILE;
    int64_t n = QN_MIN((int64_t)QN_TAPE_TILE, s->kept - column);
    int64_t begin = qn_cpu_part_begin(s->folded, s->parts, part);
    int64_t end = qn_cpu_part_begin(s->folded, s->parts, part + 1);
    int64_t most = s->blocks > 1 ? 1 : QN_MIN((int64_t)QN_FOLD_ROWS, QN_TAPE_TILE / n);
    double *y = r->partial + part * s->kept + column;
    float acc[QN_TAPE_TILE] = { 0 };
    int64_t in_acc = 0;
    for (int64_t j = 0; j < n; j++)
        y[j] = 0;
    for (int64_t i = begin; i < end; i += most) {
        int64_t rows = QN_MIN(most, end - i);
        const float *x = tile(r, own, i * s->kept + column, (rows - 1) * s->kept + n);
        s->fns->columns(QN_FOLD_SUM, acc, x, s->kept, rows, n);
        in_acc += rows;
        if (in_acc + most <= QN_FOLD_ROWS && i + rows < end)
            continue;
        for (int64_t j = 0; j < n; j++) {
            y[j] += (double)acc[j];
            acc[j] = 0;
        }
        in_acc = 0;
    }
}

static void run_batch(void *ctx, int worker, int64_t batch)
{
    const SumRun *r = ctx;
    float *own = r->registers + worker * r->s->registers;
    int64_t end = QN_MIN((batch + 1) * r->batch, r->units);
    qn_tape_begin(&r->s->tape, r->in, own);
    for (int64_t unit = batch * r->batch; unit < end; unit++) {
        if (r->s->columns)
            fold_columns(r, own, unit);
        else if (r->s->rows)
            fold_short(r, own, unit);
        else
            fold_long(r, own, unit);
    }
}

static void store_unit(void *ctx, int64_t unit)
{
    const SumRun *r = ctx;
    const SumState *s = r->s;
    int64_t begin = unit * STORED, end = QN_MIN(begin + STORED, s->kept);
    double y[STORED];
    for (int64_t i = begin; i < end; i++) {
        const double *from = r->partial + (s->columns ? i : i * s->parts);
        double sum = 0;
        for (int64_t part = 0; part < s->parts; part++)
            sum += from[s->columns ? part * s->kept : part];
        y[i - begin] = sum / s->scale;
    }
    qn_dtype_from_f64(s->dtype, y, (char *)r->y + (size_t)begin * qn_dtype_bytes(s->dtype),
                      end - begin);
}

static QnStatus sum_run(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    const SumState *s = p->state;
    double *partial = workspace;
    float *registers = (float *)(void *)(partial + div_up(s->kept * s->parts, 8) * 8);
    SumRun r = { s, in, partial, registers, out[0], s->blocks * s->parts, 0 };
    int n_threads = qn_cpu_threads(p);
    /* Small units are handed out by many. */
    r.batch = QN_MAX(1, r.units * UNIT / (s->kept * s->folded));
    qn_cpu_units(n_threads, div_up(r.units, r.batch), run_batch, &r);
    qn_cpu_parallel(s->kept < UNIT ? 1 : n_threads, div_up(s->kept, STORED), store_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_fused_sum = {
    .name = "cpu.fused_sum.tiles",
    .backend = "cpu",
    .op = &qn_op_fused_sum,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = sum_accepts,
    .prepare = sum_prepare,
    .run = sum_run,
    .fini = sum_fini,
};
