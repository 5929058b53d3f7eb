/* lrn whole, in f32, to which 16-bit tensors are widened, in either layout. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/lrn.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

enum { GRAIN = 4096 }; /* elements of a unit at least */

typedef struct LrnState {
    QnLrn lrn;
    const QnLrnFns *fns;
    int64_t scratch, n_blocks, n_units;
    int64_t rows, unit_rows; /* channels-last: pixels of all images */
    bool plain;
} LrnState;

static const char *lrn_accepts(const QnNode *n, const QnKernelEnv *env)
{
    if (n->in[0]->type.layout != n->out[0].type.layout)
        return "its tensors differ in layout";
    if (*(const int64_t *)qn_cpu_attr(n, "size") > QN_LRN_MOST)
        return "for windows of at most 64 channels";
    return qn_lrn_find(env->isa) ? qn_widen_refuses(n) : "no such instruction set";
}

static QnStatus lrn_prepare(QnPrepared *p)
{
    const QnNode *n = p->node;
    const QnShape *x = &n->in[0]->type.shape;
    LrnState *s = p->state = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnLrn *l = &s->lrn;
    l->c = x->dim[1];
    l->pixels = 1;
    for (int i = 2; i < x->rank; i++)
        l->pixels *= x->dim[i];
    l->size = *(const int64_t *)qn_cpu_attr(n, "size");
    l->scale = (float)(*(const double *)qn_cpu_attr(n, "alpha") / (double)l->size);
    l->beta = (float)*(const double *)qn_cpu_attr(n, "beta");
    l->k = (float)*(const double *)qn_cpu_attr(n, "k");
    s->fns = qn_lrn_find(p->env->isa);
    /* a pixel alone is a row in either layout */
    s->plain = n->out[0].type.layout == QN_LAYOUT_PLAIN && l->pixels > 1;
    s->rows = x->dim[0] * l->pixels;
    s->unit_rows = QN_MAX(1, GRAIN / QN_MAX(l->c, 1));
    s->n_blocks = (l->pixels + QN_LRN_PIXELS - 1) / QN_LRN_PIXELS;
    s->n_units = s->plain ? x->dim[0] * s->n_blocks : (s->rows + s->unit_rows - 1) / s->unit_rows;
    s->scratch = s->plain ? 0 : (qn_lrn_scratch(l) + 15) / 16 * 16;
    p->workspace_bytes = (size_t)(s->scratch * p->env->n_threads) * sizeof(float);
    qn_widen_prepare(p);
    return QN_OK;
}

static void lrn_fini(QnPrepared *p)
{
    qn_free(p->state);
}

typedef struct LrnRun {
    const LrnState *s;
    const float *x;
    float *y, *scratch;
} LrnRun;

static void lrn_unit(void *ctx, int worker, int64_t unit)
{
    const LrnRun *r = ctx;
    const LrnState *s = r->s;
    const QnLrn *l = &s->lrn;
    if (s->plain) {
        int64_t image = unit / s->n_blocks * l->c * l->pixels;
        int64_t first = unit % s->n_blocks * QN_LRN_PIXELS;
        s->fns->plain(l, r->x + image, r->y + image, first,
                      QN_MIN(first + QN_LRN_PIXELS, l->pixels));
        return;
    }
    int64_t end = QN_MIN((unit + 1) * s->unit_rows, s->rows);
    for (int64_t i = unit * s->unit_rows; i < end; i++)
        s->fns->last(l, r->x + i * l->c, r->y + i * l->c, r->scratch + worker * s->scratch);
}

static QnStatus lrn_f32(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    const LrnState *s = p->state;
    LrnRun r = { s, in[0], out[0], workspace };
    qn_cpu_units(qn_cpu_threads(p), s->n_units, lrn_unit, &r);
    return QN_OK;
}

static QnStatus lrn_run(const QnPrepared *p, const void *const *in, void *const *out,
                        void *workspace)
{
    return qn_widen_run(p, in, out, workspace, lrn_f32);
}

const QnKernel qn_kernel_lrn_windows = {
    .name = "cpu.lrn.windows",
    .backend = "cpu",
    .op = &qn_op_lrn,
    .rank = 60,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = lrn_accepts,
    .prepare = lrn_prepare,
    .run = lrn_run,
    .fini = lrn_fini,
};
