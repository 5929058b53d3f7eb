/* Maps and fused groups of maps: straight-line code over tiles that stay in the first-level cache,
 * each instruction one vectorised loop. A tile is a run of the output's memory; operands that are
 * broadcast or lie in another order are gathered into a register first. */
#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"
#include "ops/ops.h"

#include <string.h>

enum { TILE = 512, MAX_INSTR = 64, MAX_OPERAND = 32, GRAIN = 16384 };

typedef enum Access {
    CONTIGUOUS,
    SCALAR,
    PERIODIC, /* the same for every tile, such as one value a channel of channels-last images */
    STRIDED
} Access;

typedef struct Operand {
    Access access;
    QnDtype dtype;
    int64_t stride[QN_MAX_RANK]; /* by collapsed output axis; STRIDED */
} Operand;

typedef struct Instr {
    QnTileFn *fn;
    int arg[QN_MAP_MAX_IN]; /* registers */
    int n_arg, to;          /* register */
    int out;                /* output it is stored to, -1: none */
    QnDtype round;          /* what a later instruction reads is of this type; F32: as it is */
    float param[QN_MAP_MAX_PARAM];
} Instr;

typedef struct MapState {
    const QnConvertFns *convert;
    int n_in, n_instr, n_out, n_reg;
    int rank; /* collapsed */
    int64_t dim[QN_MAX_RANK], count;
    Operand in[MAX_OPERAND];
    QnDtype out_dtype[MAX_OPERAND];
    Instr instr[MAX_INSTR];
} MapState;

/* ---- accepts ---- */

static bool is_loadable(QnDtype d)
{
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || d == QN_DTYPE_BOOL ||
           d == QN_DTYPE_U8 || d == QN_DTYPE_I8;
}

static bool is_storable(QnDtype d)
{
    return d == QN_DTYPE_F32 || d == QN_DTYPE_F16 || d == QN_DTYPE_BF16 || d == QN_DTYPE_BOOL;
}

static const char *map_accepts(const QnNode *n, const QnKernelEnv *env)
{
    const QnBody *body = qn_fused_body(n);
    if (!n->op->map && !body)
        return "not an elementwise operator";
    if (n->n_in > MAX_OPERAND || n->n_out > MAX_OPERAND || (body && body->n_instr > MAX_INSTR))
        return "too large a group";
    for (int i = 0; i < n->n_in; i++) {
        if (!is_loadable(n->in[i]->type.dtype))
            return "reads f32, f16, bf16, bool and 8-bit integers";
    }
    for (int i = 0; i < n->n_out; i++) {
        if (!is_storable(n->out[i].type.dtype))
            return "writes f32, f16, bf16 and bool";
        if (n->out[i].type.layout != n->out[0].type.layout)
            return "outputs differ in layout";
    }
    for (int i = 0; i < (body ? body->n_instr : 1); i++) {
        if (body && !is_storable(body->instr[i].dtype))
            return "its intermediates are f32, f16, bf16 and bool";
        if (!qn_cpu_tile(env->isa, body ? body->instr[i].op : n->op))
            return "an operator of it has no tile function";
    }
    return NULL;
}

/* ---- prepare ---- */

/* Results within a group stay in f32, but a bool must be 0 or 1, and a cast is there to round. */
static QnDtype rounding(const QnBodyInstr *x)
{
    return x->dtype == QN_DTYPE_BOOL || x->op == &qn_op_cast ? x->dtype : QN_DTYPE_F32;
}

static void round_tile(const QnConvertFns *c, QnDtype dtype, float *x, int64_t n)
{
    uint16_t small[TILE];
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
static void collapse(MapState *m)
{
    int r = 0;
    for (int i = 0; i < m->rank; i++) {
        if (m->dim[i] == 1)
            continue;
        bool joins = r > 0;
        for (int k = 0; joins && k < m->n_in; k++)
            joins = m->in[k].stride[r - 1] == m->in[k].stride[i] * m->dim[i];
        int to = joins ? r - 1 : r++;
        m->dim[to] = joins ? m->dim[to] * m->dim[i] : m->dim[i];
        for (int k = 0; k < m->n_in; k++)
            m->in[k].stride[to] = m->in[k].stride[i];
    }
    m->rank = r;
}

/* Whether it is walked tightly over the inner axes, whose elements divide a tile, and is the same
 * for all outer ones. */
static bool is_periodic(const MapState *m, const Operand *o)
{
    int64_t period = 1;
    int i = m->rank - 1;
    for (; i >= 0 && o->stride[i] == period; i--)
        period *= m->dim[i];
    for (; i >= 0; i--) {
        if (o->stride[i] != 0)
            return false;
    }
    return TILE % period == 0;
}

static void classify(MapState *m)
{
    for (int k = 0; k < m->n_in; k++) {
        Operand *o = &m->in[k];
        int64_t tight = 1;
        bool scalar = true, contiguous = true;
        for (int i = m->rank - 1; i >= 0; i--) {
            scalar &= o->stride[i] == 0;
            contiguous &= o->stride[i] == tight;
            tight *= m->dim[i];
        }
        o->access = contiguous ? CONTIGUOUS : scalar ? SCALAR : STRIDED;
        if (o->access == STRIDED && is_periodic(m, o))
            o->access = PERIODIC;
    }
}

/* Registers: 0..n_in-1 hold operands; results take the lowest free one. */
static void assign_registers(MapState *m, const QnBody *b)
{
    int last[MAX_OPERAND + MAX_INSTR], reg[MAX_OPERAND + MAX_INSTR];
    bool used[MAX_OPERAND + MAX_INSTR] = { 0 };
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
    m->n_reg = b->n_in;
    for (int i = 0; i < b->n_instr; i++) {
        int r = b->n_in;
        while (used[r])
            r++;
        used[r] = true;
        reg[b->n_in + i] = m->instr[i].to = r;
        m->n_reg = QN_MAX(m->n_reg, r + 1);
        for (int k = 0; k < m->instr[i].n_arg; k++)
            m->instr[i].arg[k] = reg[b->instr[i].arg[k]];
        for (int k = b->n_in; k <= b->n_in + i; k++) {
            if (last[k] == i)
                used[reg[k]] = false;
        }
    }
}

static QnStatus map_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    QnBodyInstr one = { n->op, n->attr, { 0, 1, 2 }, n->out[0].type.dtype };
    int zero = 0;
    QnBody single = { n->n_in, 1, 1, &one, &zero };
    const QnBody *b = qn_fused_body(n) ? qn_fused_body(n) : &single;
    MapState *m = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    const QnType *y = &n->out[0].type;
    int order[QN_MAX_RANK];
    qn_type_order(y, order);
    m->convert = qn_convert_find(p->env->isa);
    m->n_in = b->n_in;
    m->n_instr = b->n_instr;
    m->n_out = b->n_out;
    m->rank = y->shape.rank;
    m->count = qn_shape_count(&y->shape);
    for (int i = 0; i < m->rank; i++)
        m->dim[i] = y->shape.dim[order[i]];
    for (int k = 0; k < m->n_in; k++) {
        m->in[k].dtype = n->in[k]->type.dtype;
        input_strides(&n->in[k]->type, y, m->in[k].stride);
    }
    collapse(m);
    classify(m);
    for (int i = 0; i < m->n_instr; i++) {
        Instr *x = &m->instr[i];
        double param[QN_MAP_MAX_PARAM] = { 0 };
        qn_attr_floats(b->instr[i].op, b->instr[i].attr, param);
        *x = (Instr){ .fn = qn_cpu_tile(p->env->isa, b->instr[i].op),
                      .out = -1,
                      .round = b == &single ? QN_DTYPE_F32 : rounding(&b->instr[i]),
                      .n_arg = b->instr[i].op->n_in };
        for (int k = 0; k < QN_MAP_MAX_PARAM; k++)
            x->param[k] = (float)param[k];
    }
    for (int i = 0; i < m->n_out; i++) {
        m->out_dtype[i] = n->out[i].type.dtype;
        m->instr[b->out[i]].out = i;
    }
    assign_registers(m, b);
    p->state = m;
    p->workspace_bytes = (size_t)p->env->n_threads * 4 * (size_t)m->n_reg * TILE * sizeof(float);
    return QN_OK;
}

static void map_fini(QnPrepared *p)
{
    qn_free(p->state);
}

/* ---- run ---- */

static void load_f32(const MapState *m, QnDtype dtype, const void *src, int64_t at, float *dst,
                     int64_t n)
{
    m->convert->to_f32(dtype, (const char *)src + (size_t)at * qn_dtype_bytes(dtype), dst, n);
}

/* Elements [i, i+n) of the output's order. */
static void gather(const MapState *m, const Operand *o, const void *src, int64_t i, float *dst,
                   int64_t n)
{
    int64_t index[QN_MAX_RANK], at = 0, rest = i;
    int inner = m->rank - 1;
    for (int k = inner; k >= 0; k--) {
        index[k] = rest % m->dim[k];
        rest /= m->dim[k];
        at += index[k] * o->stride[k];
    }
    while (n > 0) {
        int64_t run = QN_MIN(n, m->dim[inner] - index[inner]), s = o->stride[inner];
        if (s == 1) {
            load_f32(m, o->dtype, src, at, dst, run);
        } else if (s == 0) {
            load_f32(m, o->dtype, src, at, dst, 1);
            for (int64_t k = 1; k < run; k++)
                dst[k] = dst[0];
        } else {
            for (int64_t k = 0; k < run; k++)
                load_f32(m, o->dtype, src, at + k * s, dst + k, 1);
        }
        dst += run;
        n -= run;
        index[inner] += run;
        at += run * s;
        for (int k = inner; k > 0 && index[k] == m->dim[k]; k--) {
            at += o->stride[k - 1] - m->dim[k] * o->stride[k];
            index[k] = 0;
            index[k - 1]++;
        }
    }
}

typedef struct MapRun {
    const MapState *m;
    const void *const *in;
    void *const *out;
    float *registers;
    int64_t n_parts;
} MapRun;

static void run_tile(const MapRun *r, float *const *own, int64_t i, int64_t n)
{
    const MapState *m = r->m;
    const float *reg[MAX_OPERAND + MAX_INSTR];
    float *to[MAX_OPERAND + MAX_INSTR];
    for (int k = 0; k < m->n_reg; k++)
        reg[k] = to[k] = own[k];
    for (int k = 0; k < m->n_in; k++) {
        const Operand *o = &m->in[k];
        if (o->access == CONTIGUOUS && o->dtype == QN_DTYPE_F32)
            reg[k] = (const float *)r->in[k] + i;
        else if (o->access == CONTIGUOUS)
            load_f32(m, o->dtype, r->in[k], i, own[k], n);
        else if (o->access == STRIDED)
            gather(m, o, r->in[k], i, own[k], n);
    }
    for (int k = 0; k < m->n_instr; k++) {
        const Instr *x = &m->instr[k];
        const float *arg[QN_MAP_MAX_IN] = { 0 };
        for (int a = 0; a < x->n_arg; a++)
            arg[a] = reg[x->arg[a]];
        /* The last one may write straight to memory: no operand is read any more. */
        bool direct = k == m->n_instr - 1 && x->out >= 0 && m->out_dtype[x->out] == QN_DTYPE_F32;
        float *y = direct ? (float *)r->out[x->out] + i : to[x->to];
        x->fn(y, arg, x->param, n);
        if (x->round != QN_DTYPE_F32)
            round_tile(m->convert, x->round, y, n);
        reg[x->to] = y;
    }
    for (int k = 0; k < m->n_instr; k++) {
        const Instr *x = &m->instr[k];
        if (x->out < 0)
            continue;
        char *y = (char *)r->out[x->out] + (size_t)i * qn_dtype_bytes(m->out_dtype[x->out]);
        if ((const void *)reg[x->to] != (void *)y)
            m->convert->from_f32(m->out_dtype[x->out], reg[x->to], y, n);
    }
}

static void run_part(void *ctx, int64_t part)
{
    const MapRun *r = ctx;
    const MapState *m = r->m;
    float *own[MAX_OPERAND + MAX_INSTR];
    int64_t n_tiles = (m->count + TILE - 1) / TILE;
    int64_t begin = qn_cpu_part_begin(n_tiles, r->n_parts, part) * TILE;
    int64_t end = QN_MIN(qn_cpu_part_begin(n_tiles, r->n_parts, part + 1) * TILE, m->count);
    for (int k = 0; k < m->n_reg; k++)
        own[k] = r->registers + (part * m->n_reg + k) * TILE;
    for (int k = 0; k < m->n_in; k++) {
        if (m->in[k].access == PERIODIC)
            gather(m, &m->in[k], r->in[k], 0, own[k], QN_MIN((int64_t)TILE, m->count));
        if (m->in[k].access != SCALAR)
            continue;
        load_f32(m, m->in[k].dtype, r->in[k], 0, own[k], 1);
        for (int j = 1; j < TILE; j++)
            own[k][j] = own[k][0];
    }
    for (int64_t i = begin; i < end; i += TILE)
        run_tile(r, own, i, QN_MIN((int64_t)TILE, end - i));
}

static QnStatus map_run(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    const MapState *m = p->state;
    int n_threads = qn_cpu_threads(p);
    MapRun r = { m, in, out, workspace, qn_cpu_parts(n_threads, m->count, GRAIN) };
    qn_cpu_parallel(n_threads, r.n_parts, run_part, &r);
    return QN_OK;
}

const QnKernel qn_kernel_map = {
    .name = "map",
    .backend = "cpu",
    .rank = 50,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = map_accepts,
    .prepare = map_prepare,
    .run = map_run,
    .fini = map_fini,
};
