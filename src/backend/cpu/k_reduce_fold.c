/* sum, mean, product, extrema and norms over any axes, in f32, f16 and bf16. The axes become groups
 * that are kept and folded in turn. What is folded falls into parts that depend on the shapes
 * alone, a unit of work each; their results are joined in order, in double. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/fold.h"
#include "ops/fold.h"
#include "ops/ops.h"

#include <math.h>

enum { UNIT = 32768, MAX_PARTS = 64, STORED = 1024 };

typedef struct FoldState {
    const QnFoldFns *fns;
    QnFoldKind kind;
    QnDtype dtype;
    int n_keep, n_fold; /* axes; the last of all is left out, see wide */
    int64_t keep_dim[QN_MAX_RANK], keep_step[QN_MAX_RANK];
    int64_t fold_dim[QN_MAX_RANK], fold_step[QN_MAX_RANK];
    bool wide;      /* the last axis is kept: columns; else it is folded: runs */
    int64_t last;   /* its length */
    int64_t kept;   /* product of keep_dim: groups of outputs */
    int64_t folds;  /* product of fold_dim: runs, or rows of columns, folded into each */
    int64_t pieces; /* of a long run */
    int64_t blocks; /* of columns */
    int64_t parts;  /* of folds */
    int64_t count;  /* elements folded into one output */
} FoldState;

static const struct {
    const QnOp *op;
    QnFoldKind kind;
} kinds[] = {
    { &qn_op_sum, QN_FOLD_SUM },        { &qn_op_mean, QN_FOLD_SUM },
    { &qn_op_prod, QN_FOLD_PROD },      { &qn_op_reduce_max, QN_FOLD_MAX },
    { &qn_op_reduce_min, QN_FOLD_MIN }, { &qn_op_norm_l1, QN_FOLD_ABS },
    { &qn_op_norm_l2, QN_FOLD_SQUARE },
};

/* Axes folded, by the order in memory, and the shape in that order. */
static QnStatus in_memory_order(const QnNode *n, QnShape *x, unsigned *mask)
{
    const QnType *t = &n->in[0]->type;
    const QnReduceAttr *attr = n->attr;
    unsigned given = 0;
    int order[QN_MAX_RANK];
    QN_TRY(qn_util_axes_mask(n->op->name, &t->shape, &attr->axes, &given));
    qn_type_order(t, order);
    *x = t->shape;
    *mask = 0;
    for (int i = 0; i < x->rank; i++) {
        x->dim[i] = t->shape.dim[order[i]];
        *mask |= (given >> order[i] & 1) << i;
    }
    return QN_OK;
}

/* Channels-last images are taken if at most (N,C) stay, whose order is the same in both layouts. */
static const char *layouts_refused(const QnNode *n)
{
    QnShape x;
    unsigned mask;
    if (n->in[0]->type.layout == QN_LAYOUT_PLAIN)
        return qn_cpu_need_plain(n);
    if (in_memory_order(n, &x, &mask) != QN_OK)
        return "has no such axes";
    for (int i = 1; i < x.rank - 1; i++) {
        if (!(mask >> i & 1) && x.dim[i] != 1)
            return "keeps axes of channels-last images";
    }
    return NULL;
}

static const char *fold_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype d = n->in[0]->type.dtype;
    (void)env;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16)
        return "takes f32, f16 and bf16";
    if (qn_shape_count(&n->in[0]->type.shape) == 0)
        return "takes no empty tensors";
    return layouts_refused(n);
}

/* Neighbouring axes that are all kept or all folded become one. */
static void split_axes(FoldState *s, const QnShape *x, unsigned mask)
{
    QnShape joined = { 0 };
    unsigned folded = 0;
    for (int i = 0; i < x->rank; i++) {
        bool fold = mask >> i & 1;
        int last = joined.rank - 1;
        if (x->dim[i] == 1)
            continue;
        if (last >= 0 && (folded >> last & 1) == (unsigned)fold) {
            joined.dim[last] *= x->dim[i];
        } else {
            folded |= (unsigned)fold << joined.rank;
            joined.dim[joined.rank++] = x->dim[i];
        }
    }
    if (joined.rank == 0) /* one element */
        joined = (QnShape){ 1, { 1 } };
    int64_t step[QN_MAX_RANK];
    qn_shape_strides(&joined, step);
    int last = joined.rank - 1;
    s->last = joined.dim[last];
    s->wide = !(folded >> last & 1);
    s->kept = s->folds = 1;
    for (int i = 0; i < last; i++) {
        if (folded >> i & 1) {
            s->fold_dim[s->n_fold] = joined.dim[i];
            s->fold_step[s->n_fold++] = step[i];
            s->folds *= joined.dim[i];
        } else {
            s->keep_dim[s->n_keep] = joined.dim[i];
            s->keep_step[s->n_keep++] = step[i];
            s->kept *= joined.dim[i];
        }
    }
}

static QnStatus fold_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    unsigned mask = 0;
    QnShape x;
    FoldState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QN_TRY(in_memory_order(n, &x, &mask));
    s->fns = qn_fold_find(p->env->isa);
    s->dtype = n->in[0]->type.dtype;
    for (int i = 0; i < QN_COUNT(kinds); i++) {
        if (kinds[i].op == n->op)
            s->kind = kinds[i].kind;
    }
    split_axes(s, &x, mask);
    s->count = qn_shape_count(&n->in[0]->type.shape) / qn_shape_count(&n->out[0].type.shape);
    s->blocks = s->wide ? (s->last + QN_FOLD_COLUMNS - 1) / QN_FOLD_COLUMNS : 1;
    /* A long run is cut into pieces, and parts are made of those. */
    s->pieces = s->wide ? 1 : (s->last + QN_FOLD_RUN - 1) / QN_FOLD_RUN;
    s->folds *= s->pieces;
    int64_t outputs = s->kept * s->blocks;
    int64_t each = s->folds * QN_MIN(s->last, s->wide ? QN_FOLD_COLUMNS : QN_FOLD_RUN);
    s->parts = QN_MIN(QN_MIN(each / UNIT, s->folds), MAX_PARTS);
    s->parts = outputs >= MAX_PARTS ? 1 : QN_MAX(1, s->parts);
    p->workspace_bytes = (size_t)(s->kept * s->parts * (s->wide ? s->last : 1)) * sizeof(double);
    return QN_OK;
}

typedef struct FoldRun {
    const FoldState *s;
    const QnOp *op;
    const char *x;
    double *partial; /* (kept, parts, last or 1) */
    void *y;
    int64_t units, batch;
} FoldRun;

/* n floats from element `at`: in place, or converted into `own`. */
static const float *floats(const FoldRun *r, int64_t at, int64_t n, float *own)
{
    const char *x = r->x + (size_t)at * qn_dtype_bytes(r->s->dtype);
    if (r->s->dtype == QN_DTYPE_F32)
        return (const float *)(const void *)x;
    qn_dtype_to_f32(r->s->dtype, x, own, n);
    return own;
}

static double join(QnFoldKind kind, double a, double b)
{
    switch (kind) {
    case QN_FOLD_PROD: return a * b;
    case QN_FOLD_MAX: return b > a || isnan(b) ? b : a;
    case QN_FOLD_MIN: return b < a || isnan(b) ? b : a;
    default: return a + b;
    }
}

static double start(QnFoldKind kind)
{
    return kind == QN_FOLD_PROD  ? 1
           : kind == QN_FOLD_MAX ? -INFINITY
           : kind == QN_FOLD_MIN ? INFINITY
                                 : 0;
}

static int64_t offset(int n, const int64_t *dim, const int64_t *step, int64_t i)
{
    int64_t at = 0;
    for (int k = n - 1; k >= 0; k--) {
        at += i % dim[k] * step[k];
        i /= dim[k];
    }
    return at;
}

static int64_t fold_offset(const FoldState *s, int64_t fold)
{
    return offset(s->n_fold, s->fold_dim, s->fold_step, fold);
}

static void fold_runs(const FoldRun *r, int64_t base, int64_t begin, int64_t end, double *y)
{
    const FoldState *s = r->s;
    float own[QN_FOLD_RUN];
    *y = start(s->kind);
    for (int64_t f = begin; f < end; f++) {
        int64_t i = f % s->pieces * QN_FOLD_RUN, n = QN_MIN((int64_t)QN_FOLD_RUN, s->last - i);
        int64_t at = base + fold_offset(s, f / s->pieces) + i;
        *y = join(s->kind, *y, s->fns->run(s->kind, floats(r, at, n, own), n));
    }
}

static void fold_columns(const FoldRun *r, int64_t base, int64_t begin, int64_t end, int64_t n,
                         double *y)
{
    const FoldState *s = r->s;
    float own[QN_FOLD_COLUMNS], acc[QN_FOLD_COLUMNS];
    for (int64_t j = 0; j < n; j++)
        y[j] = start(s->kind);
    for (int64_t f = begin; f < end;) {
        /* Rows at one step are folded at once. */
        int64_t inner = s->n_fold ? s->fold_dim[s->n_fold - 1] : 1;
        int64_t step = s->n_fold ? s->fold_step[s->n_fold - 1] : 0;
        int64_t rows = QN_MIN(QN_MIN(end - f, (int64_t)QN_FOLD_ROWS), inner - f % inner);
        int64_t at = base + fold_offset(s, f);
        for (int64_t j = 0; j < n; j++)
            acc[j] = (float)start(s->kind);
        if (s->dtype == QN_DTYPE_F32) {
            s->fns->columns(s->kind, acc, floats(r, at, n, own), step, rows, n);
        } else {
            for (int64_t i = 0; i < rows; i++)
                s->fns->columns(s->kind, acc, floats(r, at + i * step, n, own), 0, 1, n);
        }
        for (int64_t j = 0; j < n; j++)
            y[j] = join(s->kind, y[j], (double)acc[j]);
        f += rows;
    }
}

static void fold_unit(const FoldRun *r, int64_t unit)
{
    const FoldState *s = r->s;
    int64_t part = unit % s->parts, block = unit / s->parts % s->blocks;
    int64_t group = unit / s->parts / s->blocks, column = block * QN_FOLD_COLUMNS;
    int64_t base = offset(s->n_keep, s->keep_dim, s->keep_step, group);
    int64_t begin = qn_cpu_part_begin(s->folds, s->parts, part);
    int64_t end = qn_cpu_part_begin(s->folds, s->parts, part + 1);
    double *y = r->partial + (group * s->parts + part) * (s->wide ? s->last : 1);
    if (s->wide)
        fold_columns(r, base + column, begin, end,
                     QN_MIN((int64_t)QN_FOLD_COLUMNS, s->last - column), y + column);
    else
        fold_runs(r, base, begin, end, y);
}

/* A result of group and column, its parts joined and the function finished. */
static double result(const FoldRun *r, int64_t group, int64_t column)
{
    const FoldState *s = r->s;
    int64_t columns = s->wide ? s->last : 1;
    const double *from = r->partial + group * s->parts * columns + column;
    double y = from[0];
    for (int64_t part = 1; part < s->parts; part++)
        y = join(s->kind, y, from[part * columns]);
    return r->op == &qn_op_mean ? y / (double)s->count : r->op == &qn_op_norm_l2 ? sqrt(y) : y;
}

static void store_unit(void *ctx, int64_t unit)
{
    const FoldRun *r = ctx;
    const FoldState *s = r->s;
    int64_t columns = s->wide ? s->last : 1, end = QN_MIN((unit + 1) * STORED, s->kept * columns);
    double tile[STORED];
    for (int64_t i = unit * STORED; i < end; i++)
        tile[i - unit * STORED] = result(r, i / columns, i % columns);
    char *to = (char *)r->y + (size_t)(unit * STORED) * qn_dtype_bytes(s->dtype);
    qn_dtype_from_f64(s->dtype, tile, to, end - unit * STORED);
}

static void fold_units(void *ctx, int64_t batch)
{
    const FoldRun *r = ctx;
    int64_t end = QN_MIN((batch + 1) * r->batch, r->units);
    for (int64_t unit = batch * r->batch; unit < end; unit++)
        fold_unit(r, unit);
}

static QnStatus fold_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const FoldState *s = p->state;
    FoldRun r = { .s = s, .op = p->node->op, .x = in[0], .partial = workspace, .y = out[0] };
    int64_t all = qn_shape_count(&p->node->in[0]->type.shape);
    int64_t results = s->kept * (s->wide ? s->last : 1);
    int n_threads = all < UNIT ? 1 : p->env->n_threads;
    r.units = s->kept * s->blocks * s->parts;
    r.batch = QN_MAX(1, r.units * UNIT / all); /* small units are handed out by many */
    qn_cpu_parallel(n_threads, (r.units + r.batch - 1) / r.batch, fold_units, &r);
    qn_cpu_parallel(results < UNIT ? 1 : n_threads, (results + STORED - 1) / STORED, store_unit,
                    &r);
    return QN_OK;
}

static void fold_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_sum_fold = {
    .name = "cpu.sum.fold",
    .backend = "cpu",
    .op = &qn_op_sum,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};

const QnKernel qn_kernel_mean_fold = {
    .name = "cpu.mean.fold",
    .backend = "cpu",
    .op = &qn_op_mean,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};

const QnKernel qn_kernel_prod_fold = {
    .name = "cpu.prod.fold",
    .backend = "cpu",
    .op = &qn_op_prod,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};

const QnKernel qn_kernel_reduce_max_fold = {
    .name = "cpu.reduce_max.fold",
    .backend = "cpu",
    .op = &qn_op_reduce_max,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};

const QnKernel qn_kernel_reduce_min_fold = {
    .name = "cpu.reduce_min.fold",
    .backend = "cpu",
    .op = &qn_op_reduce_min,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};

const QnKernel qn_kernel_norm_l1_fold = {
    .name = "cpu.norm_l1.fold",
    .backend = "cpu",
    .op = &qn_op_norm_l1,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};

const QnKernel qn_kernel_norm_l2_fold = {
    .name = "cpu.norm_l2.fold",
    .backend = "cpu",
    .op = &qn_op_norm_l2,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = fold_accepts,
    .prepare = fold_prepare,
    .run = fold_run,
    .fini = fold_fini,
};
