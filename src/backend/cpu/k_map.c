/* Maps and fused groups of maps, tile by tile of the output's memory. */
#include "backend/cpu/tape.h"
#include "ops/body.h"
#include "ops/ops.h"

enum { GRAIN = 16384 };

static void types_of(const QnNode *n, const QnType *in[QN_TAPE_MAX_OPERAND])
{
    for (int i = 0; i < n->n_in; i++)
        in[i] = &n->in[i]->type;
}

static const char *map_accepts(const QnNode *n, const QnKernelEnv *env)
{
    QnBodyOne one;
    const QnType *in[QN_TAPE_MAX_OPERAND];
    const QnBody *b = qn_body_of_maps(n, &one);
    if (!b)
        return "not an elementwise operator";
    if (n->n_in > QN_TAPE_MAX_OPERAND)
        return "too large a group";
    for (int i = 1; i < n->n_out; i++) {
        if (n->out[i].type.layout != n->out[0].type.layout)
            return "outputs differ in layout";
    }
    types_of(n, in);
    return qn_tape_refuses(b, in, env);
}

static QnStatus map_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    QnBodyOne one;
    const QnType *in[QN_TAPE_MAX_OPERAND];
    QnTape *t = qn_alloc(sizeof *t);
    if (!t)
        return QN_ENOMEM;
    types_of(n, in);
    qn_tape_init(t, p->env, qn_body_of_maps(n, &one), in, &n->out[0].type, 0);
    p->state = t;
    p->workspace_bytes = (size_t)(p->env->n_threads * 4 * qn_tape_floats(t)) * sizeof(float);
    return QN_OK;
}

static void map_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct MapRun {
    const QnTape *t;
    const void *const *in;
    void *const *out;
    float *registers;
    int64_t n_parts;
} MapRun;

static void run_part(void *ctx, int64_t part)
{
    const MapRun *r = ctx;
    const QnTape *t = r->t;
    float *own = r->registers + part * qn_tape_floats(t);
    int64_t n_tiles = (t->count + t->step - 1) / t->step;
    int64_t begin = qn_cpu_part_begin(n_tiles, r->n_parts, part) * t->step;
    int64_t end = QN_MIN(qn_cpu_part_begin(n_tiles, r->n_parts, part + 1) * t->step, t->count);
    qn_tape_begin(t, r->in, own);
    for (int64_t i = begin; i < end; i += t->step)
        qn_tape_run(t, r->in, r->out, own, i, QN_MIN(t->step, end - i));
    qn_stream_end();
}

static QnStatus map_run(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    const QnTape *t = p->state;
    int n_threads = qn_cpu_threads(p);
    MapRun r = { t, in, out, workspace, qn_cpu_parts(n_threads, t->count, GRAIN) };
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
