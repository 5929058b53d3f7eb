#include "backend/cpu/tape.h"
#include "ops/body.h"
#include "ops/ops.h"

#include <string.h>

/* FLOPs an element from which a core has more to do than the memory: then writing past the caches,
 * by way of a register, would cost and not gain. */
enum { BUSY = 20 };

/* Bytes of operands from which they are fetched ahead: fewer are near anyway. */
enum { FAR_BYTES = 1 << 20 };

static bool is_loadable(QnDtype d)
{
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || d == QN_DTYPE_BOOL ||
           d == QN_DTYPE_U8 || d == QN_DTYPE_I8 || d == QN_DTYPE_U16 || d == QN_DTYPE_I16 ||
           qn_dtype_is_storage(d);
}

static bool is_storable(QnDtype d)
{
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || d == QN_DTYPE_BOOL;
}

const char *qn_tape_refuses(const QnBody *b, const QnType *const *in, const QnKernelEnv *env)
{
    if (b->n_in > QN_TAPE_MAX_OPERAND || b->n_out > QN_TAPE_MAX_OPERAND ||
        b->n_instr > QN_TAPE_MAX_INSTR)
        return "too large a group";
    for (int i = 0; i < b->n_in; i++) {
        if (!is_loadable(in[i]->dtype))
            return "reads numbers that f32 holds";
    }
    for (int i = 0; i < b->n_instr; i++) {
        if (!is_storable(b->instr[i].dtype))
            return "computes f32, f16, bf16 and bool";
        if (!qn_cpu_tile(env->isa, b->instr[i].op))
            return "an operator of it has no tile function";
    }
    return NULL;
}

/* ---- making one ---- */

/* Results within a group stay in f32, but a bool must be 0 or 1, and a cast is there to round. */
static QnDtype rounding(const QnBodyInstr *x)
{
    return x->dtype == QN_DTYPE_BOOL || x->op == &qn_op_cast ? x->dtype : QN_DTYPE_F32;
}

static void round_tile(const QnConvertFns *c, QnDtype dtype, float *x, int64_t n)
{
    uint16_t small[QN_TAPE_TILE];
    c->from_f32(dtype, x, small, n);
    c->to_f32(dtype, small, x, n);
}

/* Strides of input x by the output's memory order, 0 where it is broadcast. */
static void input_strides(const QnType *x, const QnType *y, int64_t out[QN_MAX_RANK])
{
    int64_t s[QN_MAX_RANK];
    int order[QN_MAX_RANK], lead = y->shape.rank - x->shape.rank;
    qn_type_strides(x, s);
    qn_type_order(y, order);
    for (int i = 0; i < y->shape.rank; i++) {
        int axis = order[i] - lead;
        out[i] = axis < 0 || x->shape.dim[axis] == 1 ? 0 : s[axis];
    }
}

/* Drops axes of length 1 and joins neighbours that every operand walks as one. */
static void collapse(QnTape *t)
{
    int r = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1)
            continue;
        bool joins = r > 0;
        for (int k = 0; joins && k < t->n_in; k++)
            joins = t->in[k].stride[r - 1] == t->in[k].stride[i] * t->dim[i];
        int to = joins ? r - 1 : r++;
        t->dim[to] = joins ? t->dim[to] * t->dim[i] : t->dim[i];
        for (int k = 0; k < t->n_in; k++)
            t->in[k].stride[to] = t->in[k].stride[i];
    }
    t->rank = r;
}

/* Elements of the inner axes, over which it is walked tightly, if it is the same for all outer
 * ones; else 0. */
static int64_t period_of(const QnTape *t, const QnTapeOperand *o)
{
    int64_t period = 1;
    int i = t->rank - 1;
    for (; i >= 0 && o->stride[i] == period; i--)
        period *= t->dim[i];
    for (; i >= 0; i--) {
        if (o->stride[i] != 0)
            return 0;
    }
    return period;
}

/* Whether it has rows of the innermost axis as they are. */
static bool has_rows(const QnTape *t, const QnTapeOperand *o)
{
    return t->rank && o->dtype == QN_DTYPE_F32 && o->stride[t->rank - 1] == 1;
}

/* Elements of a tile: a multiple of a vector's 16, so that tiles keep the alignment of memory, and
 * whole periods of a broadcast operand, or whole parts of its rows where those are longer: it need
 * not be gathered then. */
static int64_t choose_step(const QnTape *t)
{
    enum { VECTOR = 16 };
    for (int k = 0; k < t->n_in; k++) {
        const QnTapeOperand *o = &t->in[k];
        int64_t period = period_of(t, o), row = has_rows(t, o) ? t->dim[t->rank - 1] : 0;
        bool repeats = period > 1 && period <= QN_TAPE_TILE;
        if (o->access != QN_TAPE_STRIDED || (!repeats && row <= QN_TAPE_TILE))
            continue;
        for (int64_t step = QN_TAPE_TILE; step >= QN_TAPE_TILE / 2; step -= VECTOR)
            if (repeats ? step % period == 0 : row % step == 0)
                return step;
        return repeats ? QN_TAPE_TILE / period * period : QN_TAPE_TILE;
    }
    return QN_TAPE_TILE;
}

static void classify(QnTape *t)
{
    for (int k = 0; k < t->n_in; k++) {
        QnTapeOperand *o = &t->in[k];
        int64_t tight = 1;
        bool scalar = true, contiguous = true;
        for (int i = t->rank - 1; i >= 0; i--) {
            scalar &= o->stride[i] == 0;
            contiguous &= o->stride[i] == tight;
            tight *= t->dim[i];
        }
        o->access = contiguous ? QN_TAPE_CONTIGUOUS : scalar ? QN_TAPE_SCALAR : QN_TAPE_STRIDED;
    }
}

/* Of strided operands those that tiles of this step need not gather. tile: their most elements. */
static void spare_gathering(QnTape *t, int64_t tile)
{
    for (int k = 0; k < t->n_in; k++) {
        QnTapeOperand *o = &t->in[k];
        int64_t period = period_of(t, o);
        if (o->access != QN_TAPE_STRIDED)
            continue;
        if (period > 0 && t->step % period == 0)
            o->access = QN_TAPE_PERIODIC;
        else if (has_rows(t, o) && t->dim[t->rank - 1] % t->step == 0 && tile <= t->step)
            o->access = QN_TAPE_ROW;
    }
}

/* Registers: 0..n_in-1 hold operands; results take the lowest free one. */
static void assign_registers(QnTape *t, const QnBody *b)
{
    int last[QN_TAPE_MAX_REG], reg[QN_TAPE_MAX_REG];
    bool used[QN_TAPE_MAX_REG] = { 0 };
    for (int i = 0; i < b->n_in; i++) {
        last[i] = b->n_instr;
        reg[i] = i;
        used[i] = true;
    }
    for (int i = 0; i < b->n_instr; i++) {
        last[b->n_in + i] = i;
        for (int k = 0; k < b->instr[i].op->n_in; k++)
            last[b->instr[i].arg[k]] = QN_MAX(last[b->instr[i].arg[k]], i);
    }
    for (int i = 0; i < b->n_out; i++)
        last[b->n_in + b->out[i]] = b->n_instr; /* stored after the last instruction */
    t->n_reg = b->n_in;
    for (int i = 0; i < b->n_instr; i++) {
        int r = b->n_in;
        while (used[r])
            r++;
        used[r] = true;
        reg[b->n_in + i] = t->instr[i].to = r;
        t->n_reg = QN_MAX(t->n_reg, r + 1);
        for (int k = 0; k < t->instr[i].n_arg; k++)
            t->instr[i].arg[k] = reg[b->instr[i].arg[k]];
        for (int k = b->n_in; k <= b->n_in + i; k++) {
            if (last[k] == i)
                used[reg[k]] = false;
        }
    }
}

static void set_instr(QnTape *t, const QnKernelEnv *env, const QnBody *b, int i)
{
    const QnBodyInstr *x = &b->instr[i];
    double param[QN_MAP_MAX_PARAM] = { 0 };
    qn_attr_floats(x->op, x->attr, param);
    t->instr[i] = (QnTapeInstr){ .fn = qn_cpu_tile(env->isa, x->op),
                                 .out = -1,
                                 .round = b->n_instr == 1 ? QN_DTYPE_F32 : rounding(x),
                                 .n_arg = x->op->n_in };
    memcpy(t->instr[i].arg, x->arg, sizeof t->instr[i].arg);
    for (int k = 0; k < QN_MAP_MAX_PARAM; k++)
        t->instr[i].param[k] = (float)param[k];
}

static bool is_far(const QnTape *t, const QnBody *b)
{
    int64_t bytes = 0;
    for (int k = 0; k < t->n_in; k++) {
        if (t->in[k].access == QN_TAPE_CONTIGUOUS)
            bytes += t->count * (int64_t)qn_dtype_bytes(t->in[k].dtype);
    }
    return bytes >= FAR_BYTES && qn_body_flops(b) < BUSY;
}

void qn_tape_init(QnTape *t, const QnKernelEnv *env, const QnBody *b, const QnType *const *in,
                  const QnType *y, int64_t step)
{
    int order[QN_MAX_RANK];
    qn_type_order(y, order);
    *t = (QnTape){ .convert = qn_convert_find(env->isa),
                   .n_in = b->n_in,
                   .n_instr = b->n_instr,
                   .n_out = b->n_out,
                   .rank = y->shape.rank,
                   .count = qn_shape_count(&y->shape) };
    for (int i = 0; i < t->rank; i++)
        t->dim[i] = y->shape.dim[order[i]];
    for (int k = 0; k < t->n_in; k++) {
        t->in[k].dtype = in[k]->dtype;
        input_strides(in[k], y, t->in[k].stride);
    }
    collapse(t);
    classify(t);
    t->step = step ? step : choose_step(t);
    spare_gathering(t, step ? QN_TAPE_TILE : t->step);
    for (int i = 0; i < t->n_instr; i++)
        set_instr(t, env, b, i);
    for (int i = 0; i < t->n_out; i++) {
        t->out_dtype[i] = b->instr[b->out[i]].dtype;
        t->instr[b->out[i]].out = i;
        if (qn_body_flops(b) < BUSY)
            t->stream[i] =
                qn_stream_for(env->isa, (size_t)t->count * qn_dtype_bytes(t->out_dtype[i]));
    }
    t->fetches = is_far(t, b);
    assign_registers(t, b);
}

/* ---- running it ---- */

static void load_f32(const QnTape *t, QnDtype dtype, const void *src, int64_t at, float *dst,
                     int64_t n)
{
    t->convert->to_f32(dtype, (const char *)src + (size_t)at * qn_dtype_bytes(dtype), dst, n);
}

/* Where the operand has element i of the output's order, whose indices are left in `index`. */
static int64_t place_of(const QnTape *t, const QnTapeOperand *o, int64_t i,
                        int64_t index[QN_MAX_RANK])
{
    int64_t at = 0;
    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = i % t->dim[k];
        i /= t->dim[k];
        at += index[k] * o->stride[k];
    }
    return at;
}

/* Elements [i, i+n) of the output's order. */
static void gather(const QnTape *t, const QnTapeOperand *o, const void *src, int64_t i, float *dst,
                   int64_t n)
{
    int64_t index[QN_MAX_RANK], at = place_of(t, o, i, index);
    int inner = t->rank - 1;
    while (n > 0) {
        int64_t run = QN_MIN(n, t->dim[inner] - index[inner]), s = o->stride[inner];
        if (s == 1) {
            load_f32(t, o->dtype, src, at, dst, run);
        } else if (s == 0) {
            load_f32(t, o->dtype, src, at, dst, 1);
            for (int64_t k = 1; k < run; k++)
                dst[k] = dst[0];
        } else {
            for (int64_t k = 0; k < run; k++)
                load_f32(t, o->dtype, src, at + k * s, dst + k, 1);
        }
        dst += run;
        n -= run;
        index[inner] += run;
        at += run * s;
        for (int k = inner; k > 0 && index[k] == t->dim[k]; k--) {
            at += o->stride[k - 1] - t->dim[k] * o->stride[k];
            index[k] = 0;
            index[k - 1]++;
        }
    }
}

void qn_tape_begin(const QnTape *t, const void *const *in, float *registers)
{
    for (int k = 0; t->count && k < t->n_in; k++) {
        float *own = registers + k * QN_TAPE_TILE;
        if (t->in[k].access == QN_TAPE_PERIODIC)
            gather(t, &t->in[k], in[k], 0, own, QN_MIN((int64_t)QN_TAPE_TILE, t->count));
        if (t->in[k].access != QN_TAPE_SCALAR)
            continue;
        load_f32(t, t->in[k].dtype, in[k], 0, own, 1);
        for (int j = 1; j < QN_TAPE_TILE; j++)
            own[j] = own[0];
    }
}

/* NULL: it is written as usual; so is what lies over an operand, whose lines have been read. */
static QnStreamFn *stream_of(const QnTape *t, const void *const *in, void *const *out, int k)
{
    for (int i = 0; t->stream[k] && i < t->n_in; i++) {
        if (in[i] == out[k])
            return NULL;
    }
    return t->stream[k];
}

static void stream(const QnTape *t, QnStreamFn *fn, const float *x, QnDtype dtype, void *y,
                   int64_t n)
{
    char small[QN_TAPE_TILE * sizeof(float)];
    if (dtype != QN_DTYPE_F32)
        t->convert->from_f32(dtype, x, small, n);
    fn(dtype == QN_DTYPE_F32 ? (const void *)x : small, y, (size_t)n * qn_dtype_bytes(dtype));
}

static void store(const QnTape *t, const void *const *in, const float *const *reg, void *const *out,
                  int64_t i, int64_t n)
{
    for (int k = 0; k < t->n_instr; k++) {
        const QnTapeInstr *x = &t->instr[k];
        if (x->out < 0)
            continue;
        QnDtype dtype = t->out_dtype[x->out];
        char *y = (char *)out[x->out] + (size_t)i * qn_dtype_bytes(dtype);
        QnStreamFn *fn = stream_of(t, in, out, x->out);
        if (fn)
            stream(t, fn, reg[x->to], dtype, y, n);
        else if ((const void *)reg[x->to] != (void *)y)
            t->convert->from_f32(dtype, reg[x->to], y, n);
    }
}

/* The next tile of an operand: while instructions work on this one nothing reads ahead, and the
 * processor's own prefetching begins anew with each tile. */
static void fetch(const QnTapeOperand *o, const void *src, int64_t i, int64_t n)
{
    enum { LINE = 64 };
    int64_t size = (int64_t)qn_dtype_bytes(o->dtype);
    const char *next = (const char *)src + i * size;
    for (int64_t b = 0; b < n * size; b += LINE)
        qn_prefetch(next + b);
}

const float *qn_tape_run(const QnTape *t, const void *const *in, void *const *out, float *registers,
                         int64_t i, int64_t n)
{
    const float *reg[QN_TAPE_MAX_REG], *first = NULL;
    for (int k = 0; k < t->n_reg; k++)
        reg[k] = registers + k * QN_TAPE_TILE;
    for (int k = 0; k < t->n_in; k++) {
        const QnTapeOperand *o = &t->in[k];
        float *own = registers + k * QN_TAPE_TILE;
        if (t->fetches && o->access == QN_TAPE_CONTIGUOUS)
            fetch(o, in[k], i + n, QN_MIN(n, t->count - i - n));
        if (o->access == QN_TAPE_CONTIGUOUS && o->dtype == QN_DTYPE_F32)
            reg[k] = (const float *)in[k] + i;
        else if (o->access == QN_TAPE_ROW)
            reg[k] = (const float *)in[k] + place_of(t, o, i, (int64_t[QN_MAX_RANK]){ 0 });
        else if (o->access == QN_TAPE_CONTIGUOUS)
            load_f32(t, o->dtype, in[k], i, own, n);
        else if (o->access == QN_TAPE_STRIDED)
            gather(t, o, in[k], i, own, n);
    }
    for (int k = 0; k < t->n_instr; k++) {
        const QnTapeInstr *x = &t->instr[k];
        const float *arg[QN_MAP_MAX_IN] = { 0 };
        for (int a = 0; a < x->n_arg; a++)
            arg[a] = reg[x->arg[a]];
        /* The last one may write straight to memory: no operand is read any more. */
        bool direct = out && k == t->n_instr - 1 && x->out >= 0 &&
                      t->out_dtype[x->out] == QN_DTYPE_F32 && !stream_of(t, in, out, x->out);
        float *y = direct ? (float *)out[x->out] + i : registers + x->to * QN_TAPE_TILE;
        x->fn(y, arg, x->param, n);
        if (x->round != QN_DTYPE_F32)
            round_tile(t->convert, x->round, y, n);
        reg[x->to] = y;
        first = x->out == 0 ? y : first;
    }
    if (out)
        store(t, in, reg, out, i, n);
    return first;
}
