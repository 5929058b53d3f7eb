/* A small GPT and a small ResNet against PyTorch: logits, loss, all gradients and ten Adam steps,
 * by the float64 evaluator and by a compiled plan in f32 with all passes. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "ir/eval.h"
#include "nn/models.h"
#include "nn/optim.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include "nn/reference.h"

#include <math.h>

enum { STEPS = 10, MOST = 64 };

typedef struct Net {
    QnGraph *g;
    QnNet net;
    QnValue *x, *labels, *lr, *step, *logits, *loss, *grads[MOST];
    const Tensor *want;
    int n; /* parameters */
    const double *want_logits, *want_losses;
    int n_logits;
} Net;

static double input_at(const QnValue *v, int64_t k, int64_t classes)
{
    if (v->type.dtype == QN_DTYPE_F32)
        return (double)((k * 6007 + 5) % 997) / 997 * 2 - 1;
    return (double)((v->type.shape.rank == 2 ? k * 5 + 3 : k * 7 + 2) % classes);
}

/* First content of a state; number -1: no parameter. */
static double state_at(const QnValue *state, const char *name, int number, int64_t k)
{
    const QnShape *s = &state->type.shape;
    double fan = 1, u = (double)((k * 7919 + number * 104729 + 17) % 1009) / 1009 - 0.5;
    size_t n = strlen(name);
    if (number < 0)
        return n > 11 && !strcmp(name + n - 11, "running_var");
    for (int i = 1; i < s->rank; i++)
        fan *= (double)s->dim[i];
    if (s->rank > 1)
        return u * sqrt(12 / fan);
    return 0.4 * u + (n > 6 && !strcmp(name + n - 6, "weight"));
}

static void sums(const double *x, int64_t n, int number, double out[3])
{
    out[0] = out[1] = out[2] = 0;
    for (int64_t k = 0; k < n; k++) {
        out[0] += x[k] * cos(0.7 * (double)k + number);
        out[1] += x[k] * cos(1.3 * (double)k + 2 * number + 1);
        out[2] += x[k] * x[k];
    }
}

static void same(const char *what, const char *name, double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol * (1 + fabs(want))))
        fail_msg("%s of %s: %.12g, PyTorch has %.12g", what, name, got, want);
}

static void same_sums(const char *what, const double *x, int64_t count, int i, const Tensor *t,
                      const double want[3], double tol)
{
    double got[3];
    sums(x, count, i, got);
    for (int k = 0; k < 3; k++)
        same(what, t->name, got[k], want[k], tol);
}

static void finish_graph(Net *n)
{
    QnGraph *g = n->g;
    n->loss = qn_cross_entropy(g, n->logits, n->labels, 0, -100, QN_REDUCTION_MEAN);
    n->lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    n->step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    assert_ok(qn_graph_check(g));
    assert_int_equal(n->net.n_params, n->n);
    QnValue *wrt[MOST];
    for (int i = 0; i < n->n; i++) {
        assert_string_equal(n->net.params[i].name, n->want[i].name);
        wrt[i] = n->net.params[i].state;
    }
    assert_ok(qn_grad(g, n->loss, wrt, n->n, n->grads));
    QnOptim o = { .name = "adam", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6 };
    assert_ok(qn_optim_apply(&n->net, &o, n->grads, n->lr, n->step, NULL));
    assert_ok(qn_graph_output(g, "loss", n->loss));
    assert_ok(qn_graph_output(g, "logits", n->logits));
    for (int i = 0; i < n->n; i++)
        assert_ok(qn_graph_output(g, n->want[i].name, n->grads[i]));
    assert_ok(qn_graph_verify(g));
}

static void build_gpt(Net *n)
{
    *n = (Net){ .g = qn_graph_new(),
                .want = gpt_params,
                .n = QN_COUNT(gpt_params),
                .want_logits = gpt_logits,
                .want_losses = gpt_losses,
                .n_logits = QN_COUNT(gpt_logits) };
    QnGptSpec spec = {
        .vocab = 11, .window = 6, .layers = 2, .heads = 2, .width = 8, .tied = true, .bias = true
    };
    qn_net_init(&n->net, n->g, true);
    n->x = qn_input(n->g, "x", QN_DTYPE_I64, &QN_SHAPE(2, 6));
    n->labels = qn_input(n->g, "y", QN_DTYPE_I64, &QN_SHAPE(12));
    n->logits = qn_reshape(n->g, qn_nn_gpt2(&n->net, n->x, &spec), &QN_SHAPE(12, 11));
    finish_graph(n);
}

static void build_resnet(Net *n)
{
    *n = (Net){ .g = qn_graph_new(),
                .want = resnet_params,
                .n = QN_COUNT(resnet_params),
                .want_logits = resnet_logits,
                .want_losses = resnet_losses,
                .n_logits = QN_COUNT(resnet_logits) };
    QnResnetSpec spec = { .depth = 18, .small = true, .width = 2, .outputs = 4 };
    qn_net_init(&n->net, n->g, true);
    n->x = qn_input(n->g, "x", QN_DTYPE_F32, &QN_SHAPE(8, 1, 16, 16));
    n->labels = qn_input(n->g, "y", QN_DTYPE_I64, &QN_SHAPE(8));
    n->logits = qn_nn_resnet(&n->net, n->x, &spec);
    finish_graph(n);
}

static void close_net(Net *n)
{
    qn_net_fini(&n->net);
    qn_graph_free(n->g);
}

static int number_of(const Net *n, const char *name)
{
    for (int i = 0; i < n->n; i++) {
        if (!strcmp(n->want[i].name, name))
            return i;
    }
    return -1;
}

static double *new_doubles(int64_t n)
{
    double *p = calloc((size_t)n + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

/* ---- by the evaluator ---- */

static void set_state(QnEval *e, const QnValue *state, const Net *n)
{
    const char *name = ((const QnStateAttr *)state->node->attr)->name;
    int64_t count = qn_shape_count(&state->type.shape);
    double *x = new_doubles(count);
    for (int64_t k = 0; k < count; k++)
        x[k] = state_at(state, name, number_of(n, name), k);
    assert_ok(qn_eval_set(e, state, x));
    free(x);
}

/* Every state takes the value assigned to it. */
static void assign_all(QnEval *e, const Net *n)
{
    enum { MANY = 512 };
    QnValue *state[MANY];
    double *next[MANY];
    int m = 0;
    QN_GRAPH_EACH(n->g, node)
    {
        const double *x;
        if (node->op != &qn_op_assign)
            continue;
        assert_true(m < MANY);
        int64_t count = qn_shape_count(&node->out[0].type.shape);
        assert_ok(qn_eval_get(e, &node->out[0], &x));
        state[m] = node->in[0];
        next[m] = new_doubles(count);
        memcpy(next[m++], x, (size_t)count * sizeof *x);
    }
    for (int i = 0; i < m; i++) {
        assert_ok(qn_eval_set(e, state[i], next[i]));
        free(next[i]);
    }
}

static void give_inputs(QnEval *e, const Net *n, int64_t classes)
{
    const QnValue *in[] = { n->x, n->labels };
    for (int i = 0; i < 2; i++) {
        int64_t count = qn_shape_count(&in[i]->type.shape);
        double *x = new_doubles(count);
        for (int64_t k = 0; k < count; k++)
            x[k] = input_at(in[i], k, classes);
        assert_ok(qn_eval_set(e, in[i], x));
        free(x);
    }
    assert_ok(qn_eval_set(e, n->lr, (double[]){ 0.003 }));
}

static void check_by_evaluator(Net *n)
{
    QnEval *e = qn_eval_new(n->g, false);
    const double *x;
    QN_GRAPH_EACH(n->g, node)
    {
        if (node->op == &qn_op_state)
            set_state(e, &node->out[0], n);
    }
    give_inputs(e, n, n->logits->type.shape.dim[1]);
    for (int s = 0; s < STEPS; s++) {
        assert_ok(qn_eval_set(e, n->step, (double[]){ s }));
        assert_ok(qn_eval_get(e, n->loss, &x));
        same("loss", "a step", x[0], n->want_losses[s], 1e-9);
        if (s == 0) {
            assert_ok(qn_eval_get(e, n->logits, &x));
            for (int k = 0; k < n->n_logits; k++)
                same("an element", "logits", x[k], n->want_logits[k], 1e-9);
            for (int i = 0; i < n->n; i++) {
                assert_ok(qn_eval_get(e, n->grads[i], &x));
                same_sums("gradient", x, qn_shape_count(&n->grads[i]->type.shape), i, &n->want[i],
                          n->want[i].grad, 1e-9);
            }
        }
        assign_all(e, n);
    }
    for (int i = 0; i < n->n; i++) {
        const QnValue *p = n->net.params[i].state;
        assert_ok(qn_eval_get(e, p, &x));
        /* gradients that are 0 but for rounding move a parameter by up to 1e-16 / eps */
        same_sums("ten steps", x, qn_shape_count(&p->type.shape), i, &n->want[i], n->want[i].after,
                  1e-7);
    }
    qn_eval_free(e);
}

/* ---- by a plan ---- */

static void write_input(const QnPlan *p, const char *name, const QnValue *v, int64_t classes)
{
    QnType type;
    void *to = qn_plan_input(p, name, &type);
    int64_t count = qn_shape_count(&v->type.shape);
    double *x = new_doubles(count);
    assert_non_null(to);
    assert_int_equal(type.layout, QN_LAYOUT_PLAIN);
    for (int64_t k = 0; k < count; k++)
        x[k] = input_at(v, k, classes);
    qn_dtype_from_f64(type.dtype, x, to, count);
    free(x);
}

static double *read_f32(const float *from, int64_t count)
{
    double *x = new_doubles(count);
    qn_dtype_to_f64(QN_DTYPE_F32, from, x, count);
    return x;
}

static void check_output(const QnPlan *p, const char *name, int i, const Tensor *t)
{
    QnType type;
    const float *y = qn_plan_output(p, name, &type);
    assert_non_null(y);
    assert_int_equal(type.layout, QN_LAYOUT_PLAIN);
    double *x = read_f32(y, qn_shape_count(&type.shape));
    same_sums("gradient in f32", x, qn_shape_count(&type.shape), i, t, t->grad, 2e-4);
    free(x);
}

static void write_states(QnStore *s, const Net *n)
{
    for (int64_t i = 0; i < s->n; i++) {
        const QnSlot *slot = &s->slots[i];
        QnValue v = { .type = slot->type };
        int64_t count = qn_shape_count(&slot->type.shape);
        float *x = calloc((size_t)count + 1, sizeof *x);
        assert_non_null(x);
        for (int64_t k = 0; k < count; k++)
            x[k] = (float)state_at(&v, slot->name, number_of(n, slot->name), k);
        assert_ok(qn_store_write(s, slot, x));
        free(x);
    }
}

static void check_states(const QnStore *s, const Net *n)
{
    for (int i = 0; i < n->n; i++) {
        const QnSlot *slot = qn_store_find(s, n->want[i].name);
        assert_non_null(slot);
        int64_t count = qn_shape_count(&slot->type.shape);
        float *x = calloc((size_t)count + 1, sizeof *x);
        assert_non_null(x);
        assert_ok(qn_store_read(s, slot, x));
        double *wide = read_f32(x, count);
        same_sums("ten steps in f32", wide, count, i, &n->want[i], n->want[i].after, 2e-3);
        free(wide);
        free(x);
    }
}

static void check_by_plan(Net *n)
{
    QnDevice *d = NULL;
    QnPlan *p = NULL;
    int64_t classes = n->logits->type.shape.dim[1];
    assert_ok(qn_device_open(&qn_backend_cpu, NULL, &d));
    assert_ok(qn_pipeline_run(n->g, &(QnPipelineOptions){ .level = QN_O2, .verify = true }));
    QnStore *s = qn_store_new(d);
    assert_ok(qn_store_add(s, n->g));
    assert_ok(qn_store_alloc(s));
    write_states(s, n);
    assert_ok(qn_plan_new(n->g, d, s, &(QnPlanOptions){ .poison = true }, &p));
    for (int64_t step = 0; step < STEPS; step++) {
        QnType type;
        write_input(p, "x", n->x, classes);
        write_input(p, "y", n->labels, classes);
        *(float *)qn_plan_input(p, "lr", &type) = 0.003f;
        *(int64_t *)qn_plan_input(p, "step", &type) = step;
        assert_ok(qn_plan_run(p));
        const float *loss = qn_plan_output(p, "loss", &type);
        same("loss in f32", "a step", *loss, n->want_losses[step], 1e-4);
        for (int i = 0; step == 0 && i < n->n; i++)
            check_output(p, n->want[i].name, i, &n->want[i]);
    }
    check_states(s, n);
    qn_plan_free(p);
    qn_store_free(s);
    qn_device_close(d);
}

static void test_gpt_by_the_evaluator(void **state)
{
    Net n;
    build_gpt(&n);
    check_by_evaluator(&n);
    close_net(&n);
}

static void test_resnet_by_the_evaluator(void **state)
{
    Net n;
    build_resnet(&n);
    check_by_evaluator(&n);
    close_net(&n);
}

static void test_gpt_by_a_plan(void **state)
{
    Net n;
    build_gpt(&n);
    check_by_plan(&n);
    close_net(&n);
}

static void test_resnet_by_a_plan(void **state)
{
    Net n;
    build_resnet(&n);
    check_by_plan(&n);
    close_net(&n);
}
