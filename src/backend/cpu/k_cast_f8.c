/* cast between f8e4m3fn or f8e5m2 and f32 or bf16: from 8 bits and from bf16 by tables, which the
 * reference's conversion fills when the plan is made. */
#include "backend/cpu/cpu.h"
#include "base/half.h"
#include "ops/ops.h"

enum { GRAIN = 32768, N_BF16 = 1 << 16, N_F8 = 1 << 8 };

typedef struct CastState {
    QnFloat8 format;
    QnDtype from, to;
    bool saturate;
    uint8_t *of_bf16;       /* N_BF16 */
    uint16_t to_bf16[N_F8]; /* bits */
    float to_f32[N_F8];
} CastState;

static bool is_f8(QnDtype t)
{
    return t == QN_DTYPE_F8E4M3FN || t == QN_DTYPE_F8E5M2;
}

static bool is_wide(QnDtype t)
{
    return t == QN_DTYPE_F32 || t == QN_DTYPE_BF16;
}

static const char *cast_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype from = n->in[0]->type.dtype, to = n->out[0].type.dtype;
    (void)env;
    if (!(is_f8(from) && is_wide(to)) && !(is_wide(from) && is_f8(to)))
        return "casts between f8e4m3fn or f8e5m2 and f32 or bf16";
    return qn_cpu_need_plain(n);
}

static uint8_t encode(const CastState *s, float x)
{
    return qn_float8_encode(s->format, qn_float8_bound(s->format, (double)x, s->saturate));
}

static void cast_fini(QnPrepared *p)
{
    CastState *s = p->state;
    if (s)
        qn_free(s->of_bf16);
    qn_free(s);
}

static QnStatus cast_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    CastState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    *s = (CastState){ .from = n->in[0]->type.dtype, .to = n->out[0].type.dtype };
    s->saturate = *(const bool *)qn_cpu_attr(n, "saturate");
    qn_dtype_float8(is_f8(s->from) ? s->from : s->to, &s->format);
    if (s->from == QN_DTYPE_BF16) {
        s->of_bf16 = qn_alloc(N_BF16);
        if (!s->of_bf16)
            return QN_ENOMEM; /* fini frees the rest */
        for (int i = 0; i < N_BF16; i++)
            s->of_bf16[i] = encode(s, qn_bf16_to_f32((uint16_t)i));
    }
    for (int i = 0; is_f8(s->from) && i < N_F8; i++) {
        uint8_t bits = (uint8_t)i;
        qn_dtype_to_f32(s->from, &bits, &s->to_f32[i], 1);
        s->to_bf16[i] = qn_f32_to_bf16(s->to_f32[i]);
    }
    return QN_OK;
}

typedef struct CastRun {
    const CastState *s;
    const void *x;
    void *y;
    int64_t n, n_parts;
} CastRun;

static void cast_part(void *ctx, int64_t part)
{
    const CastRun *r = ctx;
    const CastState *s = r->s;
    int64_t i = qn_cpu_part_begin(r->n, r->n_parts, part);
    int64_t end = qn_cpu_part_begin(r->n, r->n_parts, part + 1);
    const uint8_t *x8 = r->x;
    uint8_t *y8 = r->y;
    if (s->from == QN_DTYPE_BF16) {
        for (const uint16_t *x = r->x; i < end; i++)
            y8[i] = s->of_bf16[x[i]];
    } else if (s->from == QN_DTYPE_F32) {
        for (const float *x = r->x; i < end; i++)
            y8[i] = encode(s, x[i]);
    } else if (s->to == QN_DTYPE_BF16) {
        for (uint16_t *y = r->y; i < end; i++)
            y[i] = s->to_bf16[x8[i]];
    } else {
        for (float *y = r->y; i < end; i++)
            y[i] = s->to_f32[x8[i]];
    }
}

static QnStatus cast_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    CastRun r = { .s = p->state, .x = in[0], .y = out[0] };
    (void)workspace;
    r.n = qn_shape_count(&p->node->out[0].type.shape);
    r.n_parts = qn_cpu_parts(qn_cpu_threads(p), r.n, GRAIN);
    qn_cpu_parallel(qn_cpu_threads(p), r.n_parts, cast_part, &r);
    return QN_OK;
}

const QnKernel qn_kernel_cast_f8 = {
    .name = "cpu.cast.f8",
    .backend = "cpu",
    .op = &qn_op_cast,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = cast_accepts,
    .prepare = cast_prepare,
    .run = cast_run,
    .fini = cast_fini,
};
