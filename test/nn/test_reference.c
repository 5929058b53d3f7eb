/* A small GPT-2 and a narrow ResNet-18 against PyTorch: logits, loss, every gradient, and every
 * parameter after ten steps of Adam. The figures come from reference/make_reference.py. */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "io/safetensors.h"
#include "nn/models.h"
#include "nn/optim.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include <math.h>

/* Where float32 is compared: a sum of n terms of size s is off by about sqrt(n) * 2^-24 * s; the
 * longest sums here have some thousand terms of size 1, and pass through some twenty layers. */
#define TOL_F32 2e-4
#define TOL_F64 1e-6 /* what storing the reference as float32 leaves, 2^-24, and some layers */

typedef struct Case {
    QnDtype dtype;
    double tol;
    QnGraph *g;
    QnNet net;
    QnDevice *device;
    QnStore *store;
    QnPlan *plan;
    QnSafetensors *want;
    QnValue *logits, *loss;
    bool passes;
} Case;

static uint32_t fnv(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (uint32_t)h;
}

/* The formula of make_reference.py. */
static double uniform(const char *name, int64_t i)
{
    uint32_t x = (uint32_t)((uint64_t)i * 2654435761u + fnv(name));
    x = (x ^ (x >> 15)) * 2246822519u;
    x = x ^ (x >> 13);
    return (double)(x >> 8) * 0x1p-23 - 1.0;
}

static void fill_states(Case *c)
{
    for (int64_t k = 0; k < c->store->n; k++) {
        const QnSlot *s = &c->store->slots[k];
        const QnShape *d = &s->type.shape;
        int64_t n = qn_shape_count(d);
        bool trainable = ((const QnStateAttr *)s->attr)->trainable;
        bool is_var = strstr(s->name, "running_var") != NULL;
        double *x = malloc((size_t)(n + 1) * sizeof *x);
        void *narrow = malloc((size_t)s->bytes + 8);
        for (int64_t i = 0; i < n; i++) {
            double u = uniform(s->name, i);
            size_t len = strlen(s->name);
            if (!trainable)
                x[i] = is_var;
            else if (d->rank >= 2)
                x[i] = u / sqrt((double)(n / d->dim[0]));
            else
                x[i] = len > 6 && !strcmp(s->name + len - 6, "weight") ? 1 + 0.1 * u : 0.1 * u;
        }
        qn_dtype_from_f64(s->type.dtype, x, narrow, n);
        assert_ok(qn_store_write(c->store, s, narrow));
        free(x);
        free(narrow);
    }
}

static void compare(Case *c, const char *kind, const char *name, QnDtype dtype, const void *got,
                    int64_t n)
{
    char full[300];
    snprintf(full, sizeof full, "%s%s", kind, name);
    const QnSafetensor *t = qn_safetensors_find(c->want, full);
    if (!t)
        fail_msg("the reference has no %s", full);
    assert_int_equal(t->count, n);
    double *x = malloc((size_t)(n + 1) * sizeof *x), scale = 0;
    float *want = malloc((size_t)(n + 1) * sizeof *want);
    memcpy(want, t->data, (size_t)n * sizeof *want);
    qn_dtype_to_f64(dtype, got, x, n);
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)want[i]));
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(x[i] - want[i]) <= c->tol * (1e-2 + scale)))
            fail_msg("%s[%lld] is %.9g, PyTorch's is %.9g", full, (long long)i, x[i], want[i]);
    }
    free(x);
    free(want);
}

static void start(Case *c, const char *file)
{
    char path[600];
    snprintf(path, sizeof path, "test/reference/%s", file); /* tests run in the source folder */
    assert_ok(qn_safetensors_open(path, &c->want));
    assert_ok(qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 2 }, &c->device));
    c->g = qn_graph_new();
    qn_net_init(&c->net, c->g, true);
    c->net.dtype = c->dtype;
}

/* Gradients become outputs, the update is appended, all is compiled. */
static void finish_graph(Case *c)
{
    int n = (int)c->net.n_params;
    QnValue **wrt = qn_arena_array(c->g->arena, (size_t)n + 1, sizeof *wrt);
    QnValue **grads = qn_arena_array(c->g->arena, (size_t)n + 1, sizeof *grads);
    for (int i = 0; i < n; i++)
        wrt[i] = c->net.params[i].state;
    assert_ok(qn_grad(c->g, c->loss, wrt, n, grads));
    QnValue *lr = qn_input(c->g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(c->g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim adam = { .name = "adam", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-4 };
    assert_ok(qn_optim_apply(&c->net, &adam, grads, lr, step, NULL));
    for (int i = 0; i < n; i++)
        assert_ok(qn_graph_output(c->g, c->net.params[i].name, grads[i]));
    assert_ok(qn_graph_output(c->g, "logits", c->logits));
    assert_ok(qn_graph_output(c->g, "loss", c->loss));
    assert_ok(qn_pipeline_run(
        c->g, &(QnPipelineOptions){ .level = c->passes ? QN_O2 : QN_O0, .verify = true }));
    c->store = qn_store_new(c->device);
    assert_ok(qn_store_add(c->store, c->g));
    assert_ok(qn_store_alloc(c->store));
    fill_states(c);
    assert_ok(qn_plan_new(c->g, c->device, c->store, &(QnPlanOptions){ .poison = true }, &c->plan));
}

static void check_first_step(Case *c)
{
    QnType t;
    const void *p = qn_plan_output(c->plan, "logits", &t);
    compare(c, "logits", "", t.dtype, p, qn_shape_count(&t.shape));
    p = qn_plan_output(c->plan, "loss", &t);
    compare(c, "loss", "", t.dtype, p, 1);
    for (int64_t i = 0; i < c->net.n_params; i++) {
        const char *name = c->net.params[i].name;
        p = qn_plan_output(c->plan, name, &t);
        compare(c, "grad.", name, t.dtype, p, qn_shape_count(&t.shape));
    }
}

static void check_after_ten(Case *c)
{
    int compared = 0;
    for (int64_t k = 0; k < c->store->n; k++) {
        const QnSlot *s = &c->store->slots[k];
        if (!strncmp(s->name, "optim.", 6))
            continue;
        void *x = malloc((size_t)s->bytes + 8);
        assert_ok(qn_store_read(c->store, s, x));
        compare(c, "adam10.", s->name, s->type.dtype, x, qn_shape_count(&s->type.shape));
        free(x);
        compared++;
    }
    assert_true(compared >= c->net.n_params && compared > 20);
}

static void finish(Case *c)
{
    qn_plan_free(c->plan);
    qn_store_free(c->store);
    qn_net_fini(&c->net);
    qn_graph_free(c->g);
    qn_device_close(c->device);
    qn_safetensors_free(c->want);
}

static void feed_step(Case *c, int64_t step)
{
    *(float *)qn_plan_input(c->plan, "lr", NULL) = 1e-3f;
    *(int64_t *)qn_plan_input(c->plan, "step", NULL) = step;
}

static void run_gpt(QnDtype dtype, double tol, bool passes)
{
    Case c = { .dtype = dtype, .tol = tol, .passes = passes };
    start(&c, "gpt.safetensors");
    QnValue *x = qn_input(c.g, "x", QN_DTYPE_I64, &QN_SHAPE(3, 8));
    QnValue *y = qn_input(c.g, "y", QN_DTYPE_I64, &QN_SHAPE(24));
    QnGptSpec spec = {
        .vocab = 13, .window = 8, .layers = 2, .heads = 2, .width = 16, .bias = true
    };
    c.logits = qn_nn_gpt2(&c.net, x, &spec);
    c.loss = qn_cross_entropy(c.g, qn_reshape(c.g, c.logits, &QN_SHAPE(24, 13)), y, 0, -100,
                              QN_REDUCTION_MEAN);
    assert_ok(qn_graph_check(c.g));
    finish_graph(&c);
    for (int64_t step = 0; step < 10; step++) {
        int64_t *px = qn_plan_input(c.plan, "x", NULL), *py = qn_plan_input(c.plan, "y", NULL);
        for (int i = 0; i < 24; i++) {
            px[i] = (int64_t)((uniform("x", i) + 1) * 6.5);
            py[i] = (int64_t)((uniform("y", i) + 1) * 6.5);
        }
        feed_step(&c, step);
        assert_ok(qn_plan_run(c.plan));
        if (step == 0)
            check_first_step(&c);
    }
    check_after_ten(&c);
    finish(&c);
}

static void run_resnet(QnDtype dtype, double tol, bool passes)
{
    static const int64_t labels[] = { 0, 4, 2, 1 };
    Case c = { .dtype = dtype, .tol = tol, .passes = passes };
    start(&c, "resnet.safetensors");
    QnValue *x = qn_input(c.g, "x", dtype, &QN_SHAPE(4, 3, 16, 16));
    QnValue *y = qn_input(c.g, "y", QN_DTYPE_I64, &QN_SHAPE(4));
    QnResnetSpec spec = { .depth = 18, .small = true, .width = 2, .outputs = 5 };
    c.logits = qn_nn_resnet(&c.net, x, &spec);
    c.loss = qn_cross_entropy(c.g, c.logits, y, 0, -100, QN_REDUCTION_MEAN);
    assert_ok(qn_graph_check(c.g));
    finish_graph(&c);
    for (int64_t step = 0; step < 10; step++) {
        double image[4 * 3 * 16 * 16];
        for (int i = 0; i < QN_COUNT(image); i++)
            image[i] = uniform("image", i);
        qn_dtype_from_f64(dtype, image, qn_plan_input(c.plan, "x", NULL), QN_COUNT(image));
        memcpy(qn_plan_input(c.plan, "y", NULL), labels, sizeof labels);
        feed_step(&c, step);
        assert_ok(qn_plan_run(c.plan));
        if (step == 0)
            check_first_step(&c);
    }
    check_after_ten(&c);
    finish(&c);
}

static void test_gpt_f64(void **state)
{
    (void)state;
    run_gpt(QN_DTYPE_F64, TOL_F64, false);
}

static void test_gpt_f32(void **state)
{
    (void)state;
    run_gpt(QN_DTYPE_F32, TOL_F32, false);
}

static void test_gpt_f32_optimised(void **state)
{
    (void)state;
    run_gpt(QN_DTYPE_F32, TOL_F32, true);
}

static void test_resnet_f64(void **state)
{
    (void)state;
    run_resnet(QN_DTYPE_F64, TOL_F64, false);
}

static void test_resnet_f32(void **state)
{
    (void)state;
    run_resnet(QN_DTYPE_F32, TOL_F32, false);
}

static void test_resnet_f32_optimised(void **state)
{
    (void)state;
    run_resnet(QN_DTYPE_F32, TOL_F32, true);
}
