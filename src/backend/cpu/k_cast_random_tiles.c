/* cast_random: tiles of words from the counter, then one loop over them. A tile depends on its
 * number alone, so the threads do not matter. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/draw.h"
#include "ops/draw.h"
#include "ops/ops.h"
#include "ops/round_random.h"

#include <string.h>

enum { TILE = 4 * QN_DRAW_BLOCKS, UNIT_TILES = 32 };

typedef struct CastRun {
    QnDrawFn *words;
    QnDraw draw;
    QnDtype dtype;
    int64_t count;
    const float *x;
    char *y;
} CastRun;

static const char *cast_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    return qn_cpu_need_plain(n);
}

static void cast_unit(void *ctx, int64_t unit)
{
    const CastRun *r = ctx;
    uint32_t word[TILE];
    float v[TILE];
    int64_t end = QN_MIN((unit + 1) * UNIT_TILES * TILE, r->count);
    for (int64_t at = unit * UNIT_TILES * TILE; at < end; at += TILE) {
        int64_t n = QN_MIN((int64_t)TILE, end - at);
        r->words(r->draw.seed, r->draw.stream, (uint64_t)at / 4, word);
        for (int64_t i = 0; i < n; i++)
            v[i] = qn_round_random(r->x[at + i], word[i], r->dtype == QN_DTYPE_F16);
        qn_dtype_from_f32(r->dtype, v, r->y + (size_t)at * qn_dtype_bytes(r->dtype), n);
    }
}

static QnStatus cast_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    const QnNode *n = p->node;
    const int64_t *key = in[1];
    bool seeded = qn_shape_count(&n->in[1]->type.shape) > 1;
    CastRun r = { .words = qn_draw_words_find(p->env->isa),
                  .dtype = n->out[0].type.dtype,
                  .count = qn_shape_count(&n->out[0].type.shape),
                  .x = in[0],
                  .y = out[0] };
    (void)workspace;
    r.draw = qn_draw_new(key[0], seeded ? key[1] : 0, *(const int64_t *)qn_cpu_attr(n, "stream"));
    int64_t each = UNIT_TILES * TILE;
    qn_cpu_parallel(qn_cpu_threads(p), (r.count + each - 1) / each, cast_unit, &r);
    return QN_OK;
}

const QnKernel qn_kernel_cast_random_tiles = {
    .name = "cpu.cast_random.tiles",
    .backend = "cpu",
    .op = &qn_op_cast_random,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = cast_accepts,
    .run = cast_run,
};
