/* Many steps in one launch: as many as there are updates, with the bits of one launch a step. */
#ifndef QN_TEST_BACKEND_DEVICE_BATCHES_H
#define QN_TEST_BACKEND_DEVICE_BATCHES_H

#include "backend/device_node.h"
#include "backend/small_net.h"

typedef struct Rule {
    const char *name;
    double momentum;
} Rule;

/* An optimizer's step alone: parameters of several sizes, one of them empty, and their gradients
 * scaled. */
static inline QnGraph *updates_graph(const Rule *r)
{
    static const int64_t sizes[] = { 1, 3, 4, 1027, 0, 256, 4099 };
    QnGraph *g = qn_graph_new();
    QnNet net;
    qn_net_init(&net, g, true);
    QnValue *grads[QN_COUNT(sizes)], *scale = qn_input(g, "scale", QN_DTYPE_F32, &(QnShape){ 0 });
    for (int i = 0; i < QN_COUNT(sizes); i++) {
        char label[16];
        snprintf(label, sizeof label, "p%d", i);
        qn_net_param(&net, label, &QN_SHAPE(sizes[i]), &(QnInitSpec){ 0 }, false);
        snprintf(label, sizeof label, "g%d", i);
        grads[i] = qn_input(g, label, QN_DTYPE_F32, &QN_SHAPE(sizes[i]));
    }
    for (int i = 0; i < QN_COUNT(sizes); i++)
        grads[i] = qn_mul(g, grads[i], scale);
    QnOptim o = {
        .name = r->name, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .momentum = r->momentum
    };
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    assert_ok(qn_optim_apply(&net, &o, grads, lr, step, NULL));
    qn_net_fini(&net);
    return g;
}

static inline void feed_updates(QnGraph *g, QnPlan *p, int step)
{
    QN_GRAPH_EACH(g, n)
    {
        if (!(n->op->traits & QN_INPUT))
            continue;
        const QnType *t = &n->out[0].type;
        int64_t count = qn_shape_count(&t->shape), whole = step;
        float *x = calloc((size_t)count + 1, sizeof *x);
        for (int64_t i = 0; i < count; i++)
            x[i] = 0.5f + 0.3f * cosf((float)(i * (step + 3)));
        bool is_step = t->dtype == QN_DTYPE_I64;
        if (step == 2 && !strcmp(qn_node_label(n), "lr"))
            x[0] = -1; /* left out: nothing changes */
        assert_ok(qn_plan_write(p, qn_node_label(n), is_step ? (void *)&whole : x,
                                (size_t)qn_type_bytes(t)));
        free(x);
    }
}

/* Steps of the update and launches that do them. */
static inline void count_launches(QnPlan *p, const char *op, int *steps, int *launches)
{
    *steps = *launches = 0;
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, i);
        *steps += !strcmp(s.node->op->name, op);
        *launches += !strcmp(s.node->op->name, op) && s.n_launched > 0;
    }
}

/* All states after some steps; with `alone` every step is launched alone. */
static inline float *run_updates(QnDevice *d, const Rule *r, bool alone, int64_t *n)
{
    QnGraph *g = updates_graph(r);
    QnStore *s = qn_store_new(d);
    QnPlan *p;
    int steps, launches;
    assert_ok(qn_store_add(s, g));
    assert_ok(qn_store_alloc(s));
    fill(s);
    assert_ok(qn_plan_new(g, d, s, &(QnPlanOptions){ .profile = alone }, &p));
    assert_int_equal(qn_plan_memory(p).planned_peak_bytes, d->peak_bytes);
    count_launches(p, r->name, &steps, &launches);
    assert_int_equal(steps, 7);
    assert_int_equal(launches, 1);
    count_launches(p, "mul", &steps, &launches);
    assert_int_equal(steps, 7);
    assert_int_equal(launches, 2); /* that of one element is of another text */
    for (int i = 0; i < STEPS; i++) {
        feed_updates(g, p, i);
        assert_ok(qn_plan_run(p));
    }
    float *all = calloc((size_t)s->bytes + 4, 1);
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

static inline void check_batches(QnDevice *d)
{
    static const Rule rules[] = { { "sgd", 0 },    { "sgd", 0.9 },   { "adam", 0 },
                                  { "adamw", 0 },  { "rmsprop", 0 }, { "rmsprop", 0.9 },
                                  { "adagrad", 0 } };
    for (int i = 0; i < QN_COUNT(rules); i++) {
        int64_t n, n_alone;
        d->peak_bytes = d->now_bytes;
        float *got = run_updates(d, &rules[i], false, &n);
        d->peak_bytes = d->now_bytes;
        float *want = run_updates(d, &rules[i], true, &n_alone);
        assert_int_equal(n, n_alone);
        for (int64_t k = 0; k < n; k++) {
            if (memcmp(&got[k], &want[k], sizeof *got))
                fail_msg("%s: state element %lld is %.9g in one launch, %.9g in many",
                         rules[i].name, (long long)k, got[k], want[k]);
        }
        free(got);
        free(want);
    }
}

/* Steps of one text that read what the one before wrote. */
static inline void check_chain(QnDevice *d)
{
    static const int64_t launched[] = { 2, 0, 2, 0, 1 };
    QnGraph *g = qn_graph_new();
    QnPlan *p;
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(5000));
    QnValue *y = qn_input(g, "y", QN_DTYPE_F32, &QN_SHAPE(70));
    QnValue *a = qn_sin(g, x), *b = qn_sin(g, y), *c = qn_sin(g, a), *e = qn_sin(g, b);
    QnValue *last = qn_sin(g, c);
    assert_ok(qn_graph_output(g, "a", a));
    assert_ok(qn_graph_output(g, "e", e));
    assert_ok(qn_graph_output(g, "last", last));
    assert_ok(qn_plan_new(g, d, NULL, NULL, &p));
    assert_int_equal(qn_plan_n_steps(p), QN_COUNT(launched));
    for (int i = 0; i < QN_COUNT(launched); i++)
        assert_int_equal(qn_plan_step(p, i).n_launched, launched[i]);
    qn_plan_free(p);
    check_on_device(d, g, "a chain of sines", 0, 1e-5);
}

#endif
