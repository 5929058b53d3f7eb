/* A small convolutional net with its update, for tests that train it on two devices. */
#ifndef QN_TEST_BACKEND_SMALL_NET_H
#define QN_TEST_BACKEND_SMALL_NET_H

#include "test.h"

#include "nn/optim.h"
#include "pass/pipeline.h"
#include "quern/plan.h"
#include "rt/plan.h"

#include <math.h>

enum { BATCH = 4, STEPS = 3 };

static inline QnGraph *build(void)
{
    QnGraph *g = qn_graph_new();
    QnNet net;
    qn_net_init(&net, g, true);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(BATCH, 1, 8, 8));
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(BATCH));
    QnConvSpec spec = { .out = 4, .kernel = 3, .pad = 1 };
    QnPoolAttr pool = { .kernel = { 2, { 2, 2 } }, .strides = { 2, { 2, 2 } } };
    QnValue *h = qn_relu(g, qn_nn_batch_norm(&net, "bn", qn_nn_conv(&net, "conv", x, &spec)));
    h = qn_nn_linear(&net, "fc", qn_flatten(g, qn_max_pool(g, h, &pool), 1), 5, true);
    QnValue *loss = qn_cross_entropy(g, h, y, 0.1, -100, QN_REDUCTION_MEAN);
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim o = { .name = "adamw",
                  .beta1 = 0.9,
                  .beta2 = 0.999,
                  .eps = 1e-4,
                  .weight_decay = 0.01,
                  .clip_norm = 1 };
    assert_ok(qn_optim_minimise(&net, &o, loss, lr, step, NULL));
    assert_ok(qn_graph_output(g, "loss", loss));
    qn_net_fini(&net);
    return g;
}

static inline void fill(QnStore *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const QnSlot *slot = &s->slots[i];
        float *x = calloc((size_t)slot->bytes + 4, 1);
        int64_t n = slot->bytes / 4;
        bool moment = !strncmp(slot->name, "optim.", 6);
        for (int64_t k = 0; k < n && !moment; k++)
            x[k] = strstr(slot->name, "var") ? 1.0f : 0.3f * sinf((float)(k * 7 + i));
        assert_ok(qn_store_write(s, slot, x));
        free(x);
    }
}

static inline void feed(QnDevice *d, QnPlan *p, int step)
{
    float x[BATCH * 64], lr = 0.01f;
    int64_t y[BATCH] = { 1, 4, 0, 2 }, t = step;
    for (int i = 0; i < BATCH * 64; i++)
        x[i] = cosf((float)(i * (step + 3)));
    assert_ok(d->backend->write(d, qn_plan_input(p, "x", NULL), x, sizeof x));
    assert_ok(d->backend->write(d, qn_plan_input(p, "y", NULL), y, sizeof y));
    assert_ok(d->backend->write(d, qn_plan_input(p, "lr", NULL), &lr, sizeof lr));
    assert_ok(d->backend->write(d, qn_plan_input(p, "step", NULL), &t, sizeof t));
}

/* All states after some steps, one after the other; *n elements. The caller frees. */
static inline float *train(QnDevice *d, int64_t *n, int *on_host)
{
    QnGraph *g = build();
    QnStore *s = qn_store_new(d);
    QnPlan *p;
    QnPipelineOptions o = {
        .level = QN_O2, .verify = true, .keep = qn_device_has_kernel, .keep_ctx = d
    };
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    fill(s);
    assert_ok(qn_plan_new(g, d, s, NULL, &p));
    assert_int_equal(qn_plan_memory(p).planned_peak_bytes, d->peak_bytes);
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep t = qn_plan_step(p, i);
        if (strstr(t.kernel->name, ".host")) {
            print_message("%s runs on the host\n", t.node->op->name);
            ++*on_host;
        }
    }
    for (int i = 0; i < STEPS; i++) {
        feed(d, p, i);
        assert_ok(qn_plan_run(p));
    }
    float *all = calloc((size_t)s->bytes, 1);
    *n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        assert_ok(qn_store_read(s, &s->slots[i], all + *n));
        *n += s->slots[i].bytes / 4;
    }
    qn_plan_free(p);
    qn_store_free(s);
    qn_graph_free(g);
    return all;
}

#endif
