/* What a product costs with its gradients, by 16-bit and by 8-bit operands: the graph that training
 * has of it, rounding and histories included, compiled and timed as the device runs it. */
#include "train/f8_choice.h"

#include "base/clock.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "pass/precision.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 5, WARM_UP = 3, MOST_RUNS = 200 };
#define ROUND_NS 1e7 /* a round of one of the two lasts about this long */

typedef struct Side {
    QnDevice *d;
    QnGraph *g;
    QnStore *store;
    QnPlan *plan;
    double ns;
} Side;

static void side_fini(Side *s)
{
    qn_plan_free(s->plan);
    qn_store_free(s->store);
    qn_graph_free(s->g);
}

/* x comes in 16 bits, as it does from the layer before; weights are f32. */
static QnStatus forward(const QnF8Product *p, QnGraph *g, QnValue *leaf[2], QnValue **y)
{
    QnStateAttr w = { .name = "w",
                      .dims = { 2, { p->k, p->n } },
                      .trainable = true,
                      .init = QN_INIT_NORMAL,
                      .b = 0.02 };
    QnStateAttr b = { .name = "b", .dims = { 1, { p->n } }, .trainable = true };
    if (p->trans_b) {
        w.dims.d[0] = p->n;
        w.dims.d[1] = p->k;
    }
    leaf[0] = qn_input(g, "x", QN_DTYPE_BF16, &QN_SHAPE(p->m, p->k));
    leaf[1] = qn_state(g, &w);
    QnValue *x = qn_cast(g, leaf[0], QN_DTYPE_F32);
    *y = qn_matmul(g, x, leaf[1], p->bias ? qn_state(g, &b) : NULL, false, p->trans_b);
    return qn_graph_check(g);
}

static QnStatus with_gradients(QnGraph *g, QnValue *y, QnValue *x, QnValue *w)
{
    QnValue *wrt[] = { x, w }, *grads[2];
    QnValue *dy = qn_input(g, "dy", y->type.dtype, &y->type.shape);
    QN_TRY(qn_grad_from(g, y, dy, wrt, 2, grads));
    QN_TRY(qn_graph_output(g, "y", y));
    QN_TRY(qn_graph_output(g, "dx", grads[0]));
    return qn_graph_output(g, "dw", grads[1]);
}

static QnStatus build(Side *s, const QnF8Product *p, QnDtype low)
{
    QnValue *leaf[2], *y, **map;
    QnGraph *g = qn_graph_new();
    if (!g)
        return QN_ENOMEM;
    QnStatus st = forward(p, g, leaf, &y);
    if (st == QN_OK)
        st = qn_precision(g, &(QnPrecisionOptions){ .low = low, .updates = true }, &s->g, &map,
                          NULL);
    if (st == QN_OK)
        st = with_gradients(s->g, map[y->id], map[leaf[0]->id], map[leaf[1]->id]);
    qn_graph_free(g);
    QnPipelineOptions passes = qn_device_passes(s->d);
    return st == QN_OK ? qn_pipeline_run(s->g, &passes) : st;
}

static bool has_f8(const QnGraph *g)
{
    QN_GRAPH_EACH(g, n)
    {
        if (n->op == &qn_op_matmul_f8)
            return true;
    }
    return false;
}

/* Numbers of both signs, of about unit size. */
static QnStatus feed(Side *s, const char *name)
{
    QnType t;
    if (!qn_plan_input(s->plan, name, &t))
        return QN_OK;
    int64_t n = qn_shape_count(&t.shape);
    uint16_t *x = qn_alloc_array((size_t)n, sizeof *x);
    uint32_t seed = 12345;
    if (!x)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        float v = (float)(int32_t)seed * 0x1p-31f;
        qn_dtype_from_f32(t.dtype, &v, &x[i], 1);
    }
    QnStatus st = qn_plan_write(s->plan, name, x, (size_t)qn_type_bytes(&t));
    qn_free(x);
    return st;
}

static QnStatus open_side(Side *s, const QnChoices *c)
{
    s->store = qn_store_new(s->d);
    if (!s->store)
        return QN_ENOMEM;
    QN_TRY(qn_store_add(s->store, s->g));
    QN_TRY(qn_store_alloc(s->store));
    QN_TRY(qn_store_fill(s->store, 1));
    QN_TRY(qn_plan_new(s->g, s->d, s->store, &(QnPlanOptions){ .choices = c }, &s->plan));
    QN_TRY(feed(s, "x"));
    return feed(s, "dy");
}

static QnStatus run(Side *s, int runs, double *ns)
{
    int64_t start = qn_clock_ns();
    for (int i = 0; i < runs; i++)
        QN_TRY(qn_plan_run(s->plan));
    if (s->d->backend->sync)
        QN_TRY(s->d->backend->sync(s->d));
    *ns = (double)(qn_clock_ns() - start) / runs;
    return QN_OK;
}

/* The fastest of rounds in turn, so that noise hits both alike. */
static QnStatus time_both(Side sides[2])
{
    for (int i = 0; i < 2 * (1 + ROUNDS); i++) {
        Side *s = &sides[i % 2];
        double ns;
        bool warm = i >= 2;
        int runs = warm ? (int)fmin(MOST_RUNS, fmax(1, ROUND_NS / s->ns)) : WARM_UP;
        QN_TRY(run(s, runs, &ns));
        s->ns = warm && i >= 4 ? fmin(s->ns, ns) : ns; /* compiling and capture come first */
    }
    return QN_OK;
}

QnStatus qn_f8_measure(QnDevice *d, const QnChoices *c, const QnF8Product *p, QnF8Time *out)
{
    static const QnDtype low[] = { QN_DTYPE_BF16, QN_DTYPE_F8E4M3FN };
    Side sides[2] = { { .d = d }, { .d = d } };
    QnStatus st = QN_OK;
    *out = (QnF8Time){ 0 };
    for (int i = 0; st == QN_OK && i < 2; i++)
        st = build(&sides[i], p, low[i]);
    out->is_emulated = st == QN_OK && !has_f8(sides[1].g);
    for (int i = 0; st == QN_OK && !out->is_emulated && i < 2; i++)
        st = open_side(&sides[i], c);
    if (st == QN_OK && !out->is_emulated)
        st = time_both(sides);
    out->bf16_ns = sides[0].ns;
    out->fp8_ns = sides[1].ns;
    for (int i = 0; i < 2; i++)
        side_fini(&sides[i]);
    return st;
}
