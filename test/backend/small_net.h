/* A small convolutional net and a small transformer with their updates, for tests that train them
 * on two devices. */
#ifndef QN_TEST_BACKEND_SMALL_NET_H
#define QN_TEST_BACKEND_SMALL_NET_H

#include "test.h"

#include "nn/optim.h"
#include "pass/pipeline.h"
#include "quern/plan.h"
#include "rt/device.h"
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

enum { WORDS = 11, LENGTH = 6 };

static inline QnGraph *build_gpt(void)
{
    QnGraph *g = qn_graph_new();
    QnNet net;
    qn_net_init(&net, g, true);
    QnGptSpec spec = { .vocab = WORDS,
                       .window = LENGTH,
                       .layers = 1,
                       .heads = 2,
                       .width = 8,
                       .bias = true,
                       .dropout = 0.1 };
    qn_net_set_key(&net, qn_input(g, "key", QN_DTYPE_I64, &QN_SHAPE(2)));
    QnValue *x = qn_input(g, "x", QN_DTYPE_I64, &QN_SHAPE(2, LENGTH));
    QnValue *y = qn_input(g, "y", QN_DTYPE_I64, &QN_SHAPE(2 * LENGTH));
    QnValue *h = qn_reshape(g, qn_nn_gpt2(&net, x, &spec), &QN_SHAPE(2 * LENGTH, WORDS));
    QnValue *loss = qn_cross_entropy(g, h, y, 0, -100, QN_REDUCTION_MEAN);
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim o = { .name = "adamw", .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .clip_norm = 1 };
    assert_ok(qn_optim_minimise(&net, &o, loss, lr, step, NULL));
    assert_ok(qn_graph_output(g, "loss", loss));
    qn_net_fini(&net);
    return g;
}

static inline void feed_gpt(QnDevice *d, QnPlan *p, int step)
{
    int64_t x[2 * LENGTH], y[2 * LENGTH], key[2] = { step, 5 }, t = step;
    float lr = 0.01f;
    for (int i = 0; i < 2 * LENGTH; i++) {
        x[i] = (i * 7 + step) % WORDS;
        y[i] = (i * 7 + step + 7) % WORDS;
    }
    assert_ok(d->backend->write(d, qn_plan_input(p, "x", NULL), x, sizeof x));
    assert_ok(d->backend->write(d, qn_plan_input(p, "y", NULL), y, sizeof y));
    assert_ok(d->backend->write(d, qn_plan_input(p, "key", NULL), key, sizeof key));
    assert_ok(d->backend->write(d, qn_plan_input(p, "lr", NULL), &lr, sizeof lr));
    assert_ok(d->backend->write(d, qn_plan_input(p, "step", NULL), &t, sizeof t));
}

typedef struct SmallNet {
    QnGraph *(*build)(void);
    void (*feed)(QnDevice *d, QnPlan *p, int step);
} SmallNet;

static const SmallNet conv_net = { build, feed };
static const SmallNet gpt_net = { build_gpt, feed_gpt };

/* All states after some steps, one after the other; *n elements. The caller frees. */
static inline float *train(const SmallNet *net, QnDevice *d, int64_t *n, int *on_host)
{
    QnGraph *g = net->build();
    QnStore *s = qn_store_new(d);
    QnPlan *p;
    QnPipelineOptions o = qn_device_passes(d);
    o.verify = true;
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
        net->feed(d, p, i);
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

/* The same net gives the same states on both. */
static inline void compare_devices(const SmallNet *net, QnDevice *a, QnDevice *b, int *on_host)
{
    int64_t n, n_b;
    int ignored = 0;
    float *got = train(net, a, &n, on_host), *want = train(net, b, &n_b, &ignored);
    assert_int_equal(n, n_b);
    assert_true(n > 300);
    for (int64_t i = 0; i < n; i++) {
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
            fail_msg("state element %lld is %g on %s, %g on %s", (long long)i, got[i],
                     a->backend->name, want[i], b->backend->name);
    }
    free(got);
    free(want);
    assert_int_equal(a->now_bytes, 0);
}

#endif
