/* Operators that only move elements, in every dtype: transpose, slice, slice_put, expand, constant
 * pads, concat, split. Slices, concat and split also of channels-last images. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "ops/ops.h"
#include "ops/region.h"

#include <string.h>

typedef struct MoveState {
    QnMove move;
    uint64_t fill; /* pads: the constant's bits */
} MoveState;

static const char *move_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_cpu_need_plain(n);
}

/* For those that may take either layout, of all their tensors alike. */
static const char *alike_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i]->type.layout != n->out[0].type.layout)
            return "its tensors differ in layout";
    }
    for (int i = 1; i < n->n_out; i++) {
        if (n->out[i].type.layout != n->out[0].type.layout)
            return "its tensors differ in layout";
    }
    return NULL;
}

static MoveState *state_new(QnPrepared *p)
{
    return p->state = qn_alloc(sizeof(MoveState));
}

static void move_fini(QnPrepared *p)
{
    qn_free(p->state);
}

static QnStatus move_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const MoveState *s = p->state;
    (void)workspace;
    qn_move_run(&s->move, p->env->n_threads, in[0], out[0]);
    return QN_OK;
}

/* From strides of input 0 to the output. */
static QnStatus prepare_from(QnPrepared *p, const int64_t *from, int64_t at)
{
    const QnType *y = &p->node->out[0].type;
    MoveState *s = state_new(p);
    int64_t to[QN_MAX_RANK];
    if (!s)
        return QN_ENOMEM;
    qn_type_strides(y, to);
    qn_move_init(&s->move, &y->shape, from, at, to, 0, qn_dtype_bytes(y->dtype), p->env->isa);
    return QN_OK;
}

static QnStatus transpose_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    int order[QN_MAX_RANK];
    int64_t tight[QN_MAX_RANK], from[QN_MAX_RANK];
    if (!qn_transpose_order(&n->out[0], order))
        return qn_fail(QN_EINTERNAL, "transpose: the node has no permutation");
    qn_shape_strides(&n->in[0]->type.shape, tight);
    for (int i = 0; i < n->out[0].type.shape.rank; i++)
        from[i] = tight[order[i]];
    return prepare_from(p, from, 0);
}

/* Strides and offset of the region that slice and slice_put name. */
static QnStatus region_of(const QnNode *n, int64_t stride[QN_MAX_RANK], int64_t *at)
{
    const QnShape *s = &n->in[0]->type.shape;
    QnRegion r;
    QN_TRY(qn_region_slice(NULL, n->op->name, s, n->attr, &r));
    qn_type_strides(&n->in[0]->type, stride);
    *at = qn_util_offset(s->rank, r.start, stride);
    for (int i = 0; i < s->rank; i++)
        stride[i] *= r.step[i];
    return QN_OK;
}

static QnStatus slice_prepare(QnPrepared *p)
{
    int64_t from[QN_MAX_RANK], at;
    QN_TRY(region_of(p->node, from, &at));
    return prepare_from(p, from, at);
}

static QnStatus expand_prepare(QnPrepared *p)
{
    const QnShape *s = &p->node->in[0]->type.shape, *to = &p->node->out[0].type.shape;
    int64_t tight[QN_MAX_RANK], from[QN_MAX_RANK] = { 0 };
    qn_shape_strides(s, tight);
    for (int i = 0; i < s->rank; i++)
        from[to->rank - s->rank + i] = s->dim[i] == 1 ? 0 : tight[i];
    return prepare_from(p, from, 0);
}

/* ---- a copy with a part replaced ---- */

static QnStatus slice_put_prepare(QnPrepared *p)
{
    const QnType *u = &p->node->in[1]->type;
    MoveState *s = state_new(p);
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], at;
    if (!s)
        return QN_ENOMEM;
    QN_TRY(region_of(p->node, to, &at));
    qn_shape_strides(&u->shape, from);
    qn_move_init(&s->move, &u->shape, from, 0, to, at, qn_dtype_bytes(u->dtype), p->env->isa);
    return QN_OK;
}

static QnStatus slice_put_run(const QnPrepared *p, const void *const *in, void *const *out,
                              void *workspace)
{
    const MoveState *s = p->state;
    int n_threads = p->env->n_threads;
    (void)workspace;
    if (in[0] != out[0])
        qn_move_all(n_threads, (size_t)qn_type_bytes(&p->node->out[0].type), in[0], out[0]);
    qn_move_run(&s->move, n_threads, in[1], out[0]);
    return QN_OK;
}

static const char *pad_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (*(const int *)qn_cpu_attr(n, "mode") != QN_PAD_CONSTANT)
        return "pads with a constant";
    return move_accepts(n, env);
}

static QnStatus pad_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    const QnShape *x = &n->in[0]->type.shape, *y = &n->out[0].type.shape;
    const QnInts *before = qn_cpu_attr(n, "before"), *after = qn_cpu_attr(n, "after");
    QnDtype dtype = n->out[0].type.dtype;
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], from_at = 0, to_at = 0;
    QnShape common = *x; /* what neither side cuts off */
    MoveState *s = state_new(p);
    if (!s)
        return QN_ENOMEM;
    qn_shape_strides(x, from);
    qn_shape_strides(y, to);
    for (int i = 0; i < x->rank; i++) {
        int64_t b = before->v[i], a = after->v[i];
        common.dim[i] = QN_MAX(0, x->dim[i] + QN_MIN(b, 0) + QN_MIN(a, 0));
        from_at += QN_MAX(-b, 0) * from[i];
        to_at += QN_MAX(b, 0) * to[i];
    }
    qn_move_init(&s->move, &common, from, from_at, to, to_at, qn_dtype_bytes(dtype), p->env->isa);
    qn_dtype_from_f64(dtype, qn_cpu_attr(n, "value"), &s->fill, 1);
    return QN_OK;
}

typedef struct FillRun {
    char *to;
    size_t size;
    int64_t n, parts;
    uint64_t bits;
} FillRun;

static void fill_part(void *ctx, int64_t part)
{
    const FillRun *f = ctx;
    int64_t begin = qn_cpu_part_begin(f->n, f->parts, part);
    int64_t end = qn_cpu_part_begin(f->n, f->parts, part + 1);
    char *to = f->to + (size_t)begin * f->size;
    if (!f->bits) {
        memset(to, 0, (size_t)(end - begin) * f->size);
        return;
    }
    for (int64_t i = begin; i < end; i++, to += f->size)
        memcpy(to, &f->bits, f->size);
}

static void fill(int n_threads, const QnType *t, uint64_t bits, void *to)
{
    FillRun f = { to, qn_dtype_bytes(t->dtype), qn_shape_count(&t->shape), 1, bits };
    f.parts = qn_cpu_parts(n_threads, f.n, 1 << 14);
    qn_cpu_parallel(n_threads, f.parts, fill_part, &f);
}

static QnStatus pad_run(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    const MoveState *s = p->state;
    (void)workspace;
    fill(p->env->n_threads, &p->node->out[0].type, s->fill, out[0]);
    qn_move_run(&s->move, p->env->n_threads, in[0], out[0]);
    return QN_OK;
}

static QnStatus full_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const QnType *t = &p->node->out[0].type;
    uint64_t bits = 0;
    (void)in;
    (void)workspace;
    qn_dtype_from_f64(t->dtype, qn_cpu_attr(p->node, "value"), &bits, 1);
    fill(p->env->n_threads, t, bits, out[0]);
    return QN_OK;
}

/* ---- parts along an axis ---- */

/* The axes as they lie in memory: of channels-last images the channels come at the end. */
static QnRows rows_of(const QnNode *n, const QnType *t)
{
    QnShape s = t->shape;
    int axis = 0, last = s.rank - 1;
    qn_shape_axis(&s, *(const int64_t *)qn_cpu_attr(n, "axis"), &axis);
    if (t->layout == QN_LAYOUT_CHANNELS_LAST && s.rank >= 3) {
        for (int i = 1; i < last; i++)
            s.dim[i] = t->shape.dim[i + 1];
        s.dim[last] = t->shape.dim[1];
        axis = axis == 0 ? 0 : axis == 1 ? last : axis - 1;
    }
    return qn_util_rows(&s, axis);
}

static QnStatus concat_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const QnNode *n = p->node;
    const QnType *t = &n->out[0].type;
    size_t size = qn_dtype_bytes(t->dtype), at = 0;
    (void)workspace;
    if (qn_shape_count(&t->shape) == 0)
        return QN_OK;
    QnRows y = rows_of(n, t);
    for (int k = 0; k < n->n_in; k++) {
        QnRows x = rows_of(n, &n->in[k]->type);
        size_t bytes = (size_t)(x.n * x.inner) * size;
        qn_move_rows(p->env->n_threads, y.outer, bytes, in[k], bytes, (char *)out[0] + at,
                     (size_t)(y.n * y.inner) * size);
        at += bytes;
    }
    return QN_OK;
}

static QnStatus split_run(const QnPrepared *p, const void *const *in, void *const *out,
                          void *workspace)
{
    const QnNode *n = p->node;
    const QnType *t = &n->in[0]->type;
    size_t size = qn_dtype_bytes(t->dtype), at = 0;
    (void)workspace;
    if (qn_shape_count(&t->shape) == 0)
        return QN_OK;
    QnRows x = rows_of(n, t);
    for (int k = 0; k < n->n_out; k++) {
        QnRows y = rows_of(n, &n->out[k].type);
        size_t bytes = (size_t)(y.n * y.inner) * size;
        qn_move_rows(p->env->n_threads, x.outer, bytes, (const char *)in[0] + at,
                     (size_t)(x.n * x.inner) * size, out[k], bytes);
        at += bytes;
    }
    return QN_OK;
}

const QnKernel qn_kernel_transpose_move = {
    .name = "cpu.transpose.move",
    .backend = "cpu",
    .op = &qn_op_transpose,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = move_accepts,
    .prepare = transpose_prepare,
    .run = move_run,
    .fini = move_fini,
};

const QnKernel qn_kernel_slice_move = {
    .name = "cpu.slice.move",
    .backend = "cpu",
    .op = &qn_op_slice,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = alike_accepts,
    .prepare = slice_prepare,
    .run = move_run,
    .fini = move_fini,
};

const QnKernel qn_kernel_expand_move = {
    .name = "cpu.expand.move",
    .backend = "cpu",
    .op = &qn_op_expand,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = move_accepts,
    .prepare = expand_prepare,
    .run = move_run,
    .fini = move_fini,
};

const QnKernel qn_kernel_slice_put_move = {
    .name = "cpu.slice_put.move",
    .backend = "cpu",
    .op = &qn_op_slice_put,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = move_accepts,
    .prepare = slice_put_prepare,
    .run = slice_put_run,
    .fini = move_fini,
};

const QnKernel qn_kernel_pad_move = {
    .name = "cpu.pad.move",
    .backend = "cpu",
    .op = &qn_op_pad,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = pad_accepts,
    .prepare = pad_prepare,
    .run = pad_run,
    .fini = move_fini,
};

const QnKernel qn_kernel_full_move = {
    .name = "cpu.full.move",
    .backend = "cpu",
    .op = &qn_op_full,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = move_accepts,
    .run = full_run,
};

const QnKernel qn_kernel_concat_move = {
    .name = "cpu.concat.move",
    .backend = "cpu",
    .op = &qn_op_concat,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = alike_accepts,
    .run = concat_run,
};

const QnKernel qn_kernel_split_move = {
    .name = "cpu.split.move",
    .backend = "cpu",
    .op = &qn_op_split,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = alike_accepts,
    .run = split_run,
};
