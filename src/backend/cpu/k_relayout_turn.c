/* relayout: each image is a matrix (channels, pixels) that is turned, or copied. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/relayout.h"
#include "ops/ops.h"

#include <string.h>

enum { UNIT_PIXELS = 1024 };

typedef struct TurnState {
    QnTurnFn *fn;
    int64_t n, c, pixels, blocks; /* blocks of pixels, a work unit each */
    size_t size;                  /* bytes of an element */
    bool to_plain, copies;
} TurnState;

static const char *turn_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)n;
    (void)env;
    return NULL;
}

static QnStatus turn_prepare(QnPrepared *p)
{
    const QnType *x = &p->node->in[0]->type, *y = &p->node->out[0].type;
    TurnState *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    s->fn = qn_relayout_find(p->env->isa);
    s->size = qn_dtype_bytes(x->dtype);
    s->copies = x->layout == y->layout || x->shape.rank < 3;
    s->to_plain = y->layout == QN_LAYOUT_PLAIN;
    s->n = s->c = 1;
    s->pixels = qn_shape_count(&x->shape);
    if (!s->copies) {
        s->n = x->shape.dim[0];
        s->c = x->shape.dim[1];
        s->pixels = 1;
        for (int i = 2; i < x->shape.rank; i++)
            s->pixels *= x->shape.dim[i];
        if (s->c == 1 || s->pixels == 1) {
            s->copies = true;
            s->pixels *= s->n * s->c;
            s->n = s->c = 1;
        }
    }
    s->blocks = QN_MAX(1, (s->pixels + UNIT_PIXELS - 1) / UNIT_PIXELS);
    p->state = s;
    return QN_OK;
}

typedef struct TurnRun {
    const TurnState *s;
    const char *x;
    char *y;
} TurnRun;

/* rows x columns elements of 1, 2 or 8 bytes. */
static void turn_bytes(size_t size, const char *from, int64_t from_step, int64_t rows,
                       int64_t columns, char *to, int64_t to_step)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            memcpy(to + (size_t)(j * to_step + i) * size, from + (size_t)(i * from_step + j) * size,
                   size);
    }
}

static void turn_unit(void *ctx, int worker, int64_t unit)
{
    const TurnRun *r = ctx;
    const TurnState *s = r->s;
    (void)worker;
    int64_t image = unit / s->blocks, p0 = unit % s->blocks * UNIT_PIXELS;
    int64_t n = QN_MIN((int64_t)UNIT_PIXELS, s->pixels - p0), base = image * s->c * s->pixels;
    size_t plain = (size_t)(base + p0) * s->size, last = (size_t)(base + p0 * s->c) * s->size;
    if (s->copies) {
        memcpy(r->y + plain, r->x + plain, (size_t)n * s->size);
        return;
    }
    const char *from = r->x + (s->to_plain ? last : plain);
    char *to = r->y + (s->to_plain ? plain : last);
    int64_t rows = s->to_plain ? n : s->c, columns = s->to_plain ? s->c : n;
    int64_t from_step = s->to_plain ? s->c : s->pixels, to_step = s->to_plain ? s->pixels : s->c;
    if (s->size == sizeof(float))
        s->fn((const float *)(const void *)from, from_step, rows, columns, (float *)(void *)to,
              to_step);
    else
        turn_bytes(s->size, from, from_step, rows, columns, to, to_step);
}

static QnStatus turn_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const TurnState *s = p->state;
    TurnRun r = { s, in[0], out[0] };
    (void)workspace;
    if (s->pixels)
        qn_cpu_units(qn_cpu_threads(p), s->n * s->blocks, turn_unit, &r);
    return QN_OK;
}

static void turn_fini(QnPrepared *p)
{
    qn_free(p->state);
}

const QnKernel qn_kernel_relayout_turn = {
    .name = "cpu.relayout.turn",
    .backend = "cpu",
    .op = &qn_op_relayout,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_EXACT_COPY,
    .accepts = turn_accepts,
    .prepare = turn_prepare,
    .run = turn_run,
    .fini = turn_fini,
};
