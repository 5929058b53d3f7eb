/* Random operators: tiles of words from the counter, then one loop over them. A tile depends on its
 * number alone, so the threads do not matter. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/draw.h"
#include "ops/draw.h"
#include "ops/ops.h"

#include <string.h>

enum { TILE = 4 * QN_DRAW_BLOCKS, UNIT_TILES = 32 };

typedef struct RandomRun {
    const QnOp *op;
    QnDrawFn *words;
    QnDraw draw;
    QnDtype dtype;
    int64_t count;
    uint64_t threshold;
    double a, b; /* the operator's two numbers */
    const char *x;
    char *y;
    uint8_t *mask;
} RandomRun;

static const char *random_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnDtype d = n->out[0].type.dtype;
    (void)env;
    if (d != QN_DTYPE_F32 && d != QN_DTYPE_F16 && d != QN_DTYPE_BF16 && d != QN_DTYPE_BOOL)
        return "gives f32, f16, bf16 and bool";
    return qn_cpu_need_plain(n);
}

static void drop_tile(const RandomRun *r, const uint32_t *word, int64_t at, int64_t n, float *v)
{
    const float *x = (const float *)(const void *)(r->x + (size_t)at * sizeof(float));
    uint8_t *mask = r->mask + at;
    float scale = (float)r->a;
    uint32_t threshold = (uint32_t)QN_MIN(r->threshold, UINT32_MAX);
    bool none = r->threshold > UINT32_MAX;
    if (r->dtype != QN_DTYPE_F32) {
        qn_dtype_to_f32(r->dtype, r->x + (size_t)at * qn_dtype_bytes(r->dtype), v, n);
        x = v;
    }
    for (int64_t i = 0; i < n; i++)
        mask[i] = word[i] >= threshold && !none;
    for (int64_t i = 0; i < n; i++)
        v[i] = mask[i] ? x[i] * scale : 0.0f;
}

static void fill_tile(const RandomRun *r, const uint32_t *word, int64_t at, int64_t n)
{
    float v[TILE];
    if (r->op == &qn_op_bernoulli) {
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)r->y)[at + i] = word[i] < r->threshold;
        return;
    }
    if (r->op == &qn_op_dropout) {
        drop_tile(r, word, at, n, v);
    } else if (r->op == &qn_op_random_uniform) {
        for (int64_t i = 0; i < n; i++)
            v[i] = (float)(r->a + (r->b - r->a) * (double)qn_rng_to_uniform(word[i]));
    } else {
        qn_rng_to_normals(word, TILE, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = (float)(r->a + r->b * (double)v[i]);
    }
    qn_dtype_from_f32(r->dtype, v, r->y + (size_t)at * qn_dtype_bytes(r->dtype), n);
}

static void random_unit(void *ctx, int64_t unit)
{
    const RandomRun *r = ctx;
    uint32_t word[TILE];
    int64_t end = QN_MIN((unit + 1) * UNIT_TILES * TILE, r->count);
    for (int64_t at = unit * UNIT_TILES * TILE; at < end; at += TILE) {
        r->words(r->draw.seed, r->draw.stream, (uint64_t)at / 4, word);
        fill_tile(r, word, at, QN_MIN((int64_t)TILE, end - at));
    }
}

static QnStatus random_run(const QnPrepared *p, const void *const *in, void *const *out,
                           void *workspace)
{
    const QnNode *n = p->node;
    bool drops = n->op == &qn_op_dropout;
    const int64_t *key = in[drops];
    bool seeded = qn_shape_count(&n->in[drops]->type.shape) > 1;
    RandomRun r = { .op = n->op,
                    .words = qn_draw_words_find(p->env->isa),
                    .dtype = n->out[0].type.dtype };
    double v[QN_MAP_MAX_PARAM] = { 0 };
    (void)workspace;
    qn_attr_floats(n->op, n->attr, v);
    r.draw = qn_draw_new(key[0], seeded ? key[1] : 0, *(const int64_t *)qn_cpu_attr(n, "stream"));
    r.count = qn_shape_count(&n->out[0].type.shape);
    if (drops || n->op == &qn_op_bernoulli)
        r.threshold = qn_draw_threshold(v[0]);
    r.a = !drops ? v[0] : v[0] < 1 ? 1 / (1 - v[0]) : 0;
    r.b = v[1];
    r.x = drops ? in[0] : NULL;
    r.y = out[0];
    r.mask = drops ? out[1] : NULL;
    int64_t each = UNIT_TILES * TILE;
    qn_cpu_parallel(qn_cpu_threads(p), (r.count + each - 1) / each, random_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_dropout_tiles = {
    .name = "cpu.dropout.tiles",
    .backend = "cpu",
    .op = &qn_op_dropout,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = random_accepts,
    .run = random_run,
};

const QnKernel qn_kernel_bernoulli_tiles = {
    .name = "cpu.bernoulli.tiles",
    .backend = "cpu",
    .op = &qn_op_bernoulli,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = random_accepts,
    .run = random_run,
};

const QnKernel qn_kernel_random_uniform_tiles = {
    .name = "cpu.random_uniform.tiles",
    .backend = "cpu",
    .op = &qn_op_random_uniform,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = random_accepts,
    .run = random_run,
};

const QnKernel qn_kernel_random_normal_tiles = {
    .name = "cpu.random_normal.tiles",
    .backend = "cpu",
    .op = &qn_op_random_normal,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = random_accepts,
    .run = random_run,
};
