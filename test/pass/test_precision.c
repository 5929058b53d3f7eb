/* Mixed precision: what becomes 16-bit, what stays, and the loss scale's bookkeeping. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "ir/eval.h"
#include "nn/optim.h"
#include "nn/scaler.h"
#include "ops/f8.h"
#include "ops/ops.h"
#include "pass/grad.h"
#include "pass/pipeline.h"
#include "pass/precision.h"
#include "rt/plan.h"

#include <math.h>

static QnDevice *device;

static int setup(void **state)
{
    (void)state;
    return qn_device_open(&qn_backend_cpu, NULL, &device) != QN_OK;
}

static int teardown(void **state)
{
    (void)state;
    int leaked = device->now_bytes != 0;
    qn_device_close(device);
    return leaked;
}

/* softmax(silu(x w) v): two products, a map between them, a power sum behind. */
static QnGraph *two_layers(void)
{
    QnGraph *g = qn_graph_new();
    QnStateAttr w = { .name = "w", .dims = { 2, { 12, 8 } }, .trainable = true };
    QnStateAttr v = { .name = "v", .dims = { 2, { 8, 5 } }, .trainable = true };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(6, 12));
    QnValue *h = qn_silu(g, qn_matmul(g, x, qn_state(g, &w), NULL, false, false));
    QnValue *z = qn_matmul(g, h, qn_state(g, &v), NULL, false, false);
    assert_ok(qn_graph_output(g, "y", qn_softmax(g, z, 1)));
    return g;
}

static const QnNode *find(const QnGraph *g, const QnOp *op)
{
    QN_GRAPH_EACH(g, n)
    {
        if (n->op == op)
            return n;
    }
    return NULL;
}

static void test_classes(void **state)
{
    (void)state;
    QnGraph *g = two_layers(), *mixed;
    QnValue **map;
    QnPrecisionReport r;
    assert_ok(qn_precision(g, &(QnPrecisionOptions){ .low = QN_DTYPE_BF16 }, &mixed, &map, &r));
    assert_ok(qn_graph_verify(mixed));
    assert_int_equal(find(mixed, &qn_op_matmul)->out[0].type.dtype, QN_DTYPE_BF16);
    assert_int_equal(find(mixed, &qn_op_silu)->out[0].type.dtype, QN_DTYPE_BF16);
    assert_int_equal(find(mixed, &qn_op_softmax)->in[0]->type.dtype, QN_DTYPE_BF16);
    assert_int_equal(qn_graph_output_find(mixed, "y")->type.dtype, QN_DTYPE_F32);
    QN_GRAPH_EACH(mixed, n)
    {
        if (n->op == &qn_op_state)
            assert_int_equal(n->out[0].type.dtype, QN_DTYPE_F32);
    }
    assert_int_equal(r.low_nodes, 4);
    assert_int_equal(r.high_nodes, 0);
    assert_int_equal(r.casts, 4); /* x, w, v down; the result up */
    qn_graph_free(mixed);
    qn_graph_free(g);
}

/* Values and gradients stay within a few roundings of bf16, 2^-9 each. */
static void test_close_to_f32(void **state)
{
    (void)state;
    QnGraph *g = two_layers(), *mixed;
    QnValue **map, *wrt, *dw[2];
    const double *got;
    double want[2][96], x[72], w[96], v[40];
    assert_ok(qn_precision(g, &(QnPrecisionOptions){ .low = QN_DTYPE_BF16 }, &mixed, &map, NULL));
    for (int i = 0; i < 96; i++)
        w[i] = 0.3 * sin(i * 1.7); /* scores near 1, or softmax magnifies their roundings */
    for (int i = 0; i < 72; i++)
        x[i] = cos(i * 0.9);
    for (int i = 0; i < 40; i++)
        v[i] = 0.3 * sin(i * 0.6 + 1);
    QnGraph *graphs[] = { g, mixed };
    for (int k = 0; k < 2; k++) {
        wrt = NULL;
        QnEval *e = qn_eval_new(graphs[k], true);
        QN_GRAPH_EACH(graphs[k], n)
        {
            if (n->op == &qn_op_state && !strcmp(qn_node_label(n), "w"))
                wrt = &n->out[0];
        }
        QnValue *y = qn_graph_output_find(graphs[k], "y");
        assert_ok(qn_grad(graphs[k], qn_mul(graphs[k], y, y), &wrt, 1, &dw[k]));
        assert_int_equal(dw[k]->type.dtype, QN_DTYPE_F32);
        QN_GRAPH_EACH(graphs[k], n)
        {
            if (n->op == &qn_op_input)
                assert_ok(qn_eval_set(e, &n->out[0], x));
            if (n->op == &qn_op_state)
                assert_ok(qn_eval_set(e, &n->out[0], strcmp(qn_node_label(n), "w") ? v : w));
        }
        assert_ok(qn_eval_get(e, dw[k], &got));
        memcpy(want[k], got, sizeof want[k]);
        qn_eval_free(e);
    }
    double differ = 0, size = 0;
    for (int i = 0; i < 96; i++) {
        differ = fmax(differ, fabs(want[0][i] - want[1][i]));
        size = fmax(size, fabs(want[0][i]));
    }
    assert_true(differ > 0);                 /* it did compute in 16 bits */
    assert_true(differ < 8 * 0x1p-9 * size); /* about eight roundings lie on the way */
    qn_graph_free(mixed);
    qn_graph_free(g);
}

/* A parameter that two products read: its two gradients are added in float32. */
static void test_gradients_add_in_f32(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new(), *mixed;
    QnValue **map, *dw;
    QnStateAttr w = { .name = "w", .dims = { 2, { 8, 8 } }, .trainable = true };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4, 8)), *s = qn_state(g, &w);
    QnValue *h = qn_matmul(g, x, s, NULL, false, false);
    h = qn_matmul(g, h, s, NULL, false, false);
    QnPrecisionOptions o = { .low = QN_DTYPE_BF16 };
    assert_ok(qn_precision(g, &o, &mixed, &map, NULL));
    s = map[s->id];
    assert_ok(qn_grad(mixed, map[h->id], &s, 1, &dw));
    assert_ptr_equal(dw->node->op, &qn_op_add);
    assert_int_equal(dw->node->in[0]->type.dtype, QN_DTYPE_F32);
    assert_ptr_equal(dw->node->in[0]->node->op, &qn_op_cast);
    qn_graph_free(mixed);
    qn_graph_free(g);
}

/* What is computed from the model's result is the loss, whatever the dtype of the result. */
static void test_losses_are_f32(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new(), *mixed;
    QnValue **map;
    QnStateAttr w = { .name = "w", .dims = { 2, { 8, 3 } }, .trainable = true };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4, 8));
    QnValue *y = qn_input(g, "y", QN_DTYPE_F32, &QN_SHAPE(4, 3));
    QnValue *labels = qn_input(g, "labels", QN_DTYPE_I64, &QN_SHAPE(4));
    QnValue *result = qn_matmul(g, x, qn_state(g, &w), NULL, false, false);
    QnValue *d = qn_sub(g, result, y), *mse = qn_mean(g, qn_mul(g, d, d), (QnInts){ 0 }, false);
    QnValue *ce = qn_node_out(g, qn_cross_entropy_rows(g, result, labels, 0, -100), 0);
    QnPrecisionOptions o = { .low = QN_DTYPE_F16, .result = result };
    assert_ok(qn_precision(g, &o, &mixed, &map, NULL));
    assert_int_equal(map[result->id]->type.dtype, QN_DTYPE_F16);
    assert_int_equal(map[d->id]->type.dtype, QN_DTYPE_F32);
    assert_int_equal(map[mse->id]->type.dtype, QN_DTYPE_F32);
    assert_int_equal(map[ce->id]->type.dtype, QN_DTYPE_F32);
    assert_int_equal(map[ce->id]->node->in[0]->type.dtype, QN_DTYPE_F16);
    qn_graph_free(mixed);
    qn_graph_free(g);
}

/* 4,096 numbers near 2, in bf16: sums in bf16 would stick at 512. */
static void test_sums_are_f32(void **state)
{
    (void)state;
    enum { N = 4096 };
    QnGraph *g = qn_graph_new();
    QnValue *row = qn_input(g, "row", QN_DTYPE_BF16, &QN_SHAPE(1, N));
    QnValue *column = qn_reshape(g, row, &QN_SHAPE(N, 1));
    QnValue *scale = qn_full(g, 1, QN_DTYPE_BF16, &QN_SHAPE(1));
    QnValue *label = qn_full(g, 0, QN_DTYPE_I64, &QN_SHAPE(1));
    qn_graph_output(g, "layer", qn_node_out(g, qn_layer_norm_node(g, row, NULL, NULL, 1, 1e-5), 1));
    qn_graph_output(g, "batch", qn_node_out(g, qn_batch_norm(g, column, scale, scale, 1e-5), 1));
    qn_graph_output(g, "loss", qn_node_out(g, qn_cross_entropy_rows(g, row, label, 0, -100), 0));
    QnValue *flat = qn_full(g, 3, QN_DTYPE_BF16, &QN_SHAPE(1, N));
    qn_graph_output(g, "even", qn_cast(g, qn_softmax(g, flat, 1), QN_DTYPE_F32));
    QnPlan *p;
    assert_ok(qn_plan_new(g, device, NULL, &(QnPlanOptions){ .poison = true }, &p));
    uint16_t *x = qn_plan_input(p, "row", NULL);
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? 0x4040 : 0x3f80; /* 3, 1 */
    assert_ok(qn_plan_run(p));
    const float *got = qn_plan_output(p, "layer", NULL);
    assert_true(fabsf(got[0] - 2) < 1e-5f);
    got = qn_plan_output(p, "batch", NULL);
    assert_true(fabsf(got[0] - 2) < 1e-5f);
    got = qn_plan_output(p, "loss", NULL);
    assert_true(fabs(got[0] - (log(N / 2 * (exp(3) + exp(1))) - 1)) < 1e-4);
    got = qn_plan_output(p, "even", NULL);
    assert_true(got[0] == 1.0f / N);
    qn_plan_free(p);
    qn_graph_free(g);
}

static void test_other_dtypes_are_refused(void **state)
{
    (void)state;
    QnGraph *g = two_layers(), *mixed;
    QnValue **map;
    assert_fails(qn_precision(g, &(QnPrecisionOptions){ .low = QN_DTYPE_F64 }, &mixed, &map, NULL),
                 QN_EDTYPE, "f64");
    qn_graph_free(g);
}

/* loss = sum(x w): its gradient is x. An x of 1e38 overflows at a scale of 65,536 and at each half
 * of it above 3; an x of 1 does not. */
static void test_scale_follows_overflow(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new();
    QnNet net;
    QnScaler scaler;
    QnValue *grad, *finite;
    qn_net_init(&net, g, true);
    QnInitSpec ones = { .kind = QN_INIT_KIND_ONES };
    QnValue *w = qn_net_param(&net, "w", &QN_SHAPE(4), &ones, false);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(4));
    QnValue *loss = qn_sum(g, qn_mul(g, x, w), (QnInts){ 0 }, false);
    assert_ok(qn_grad(g, qn_scaler_scale(&scaler, &net, loss), &w, 1, &grad));
    assert_ok(qn_scaler_unscale(&scaler, &net, &grad, 1, &finite));
    QnValue *lr = qn_input(g, "lr", QN_DTYPE_F32, &(QnShape){ 0 });
    QnValue *step = qn_input(g, "step", QN_DTYPE_I64, &(QnShape){ 0 });
    QnOptim o = { .name = "sgd", .apply_if = finite };
    assert_ok(qn_optim_apply(&net, &o, &grad, lr, step, NULL));
    QnStore *store = qn_store_new(device);
    QnPlan *p;
    assert_ok(qn_store_add(store, g));
    assert_ok(qn_store_alloc(store));
    assert_ok(qn_plan_new(g, device, store, &(QnPlanOptions){ .poison = true }, &p));
    float first = 65536, weights[4] = { 1, 1, 1, 1 }, got[4];
    assert_ok(qn_store_write(store, qn_store_find(store, "optim.loss_scale"), &first));
    assert_ok(qn_store_write(store, qn_store_find(store, "w"), weights));
    static const struct {
        float x, scale, w, clean;
    } steps[] = {
        { 1e38f, 32768, 1, 0 }, { 1, 32768, 0.5f, 1 }, { 1, 32768, 0, 2 }, { 1e38f, 16384, 0, 0 }
    };
    for (int i = 0; i < QN_COUNT(steps); i++) {
        float *in = qn_plan_input(p, "x", NULL);
        for (int k = 0; k < 4; k++)
            in[k] = steps[i].x;
        *(float *)qn_plan_input(p, "lr", NULL) = 0.5f;
        assert_ok(qn_plan_run(p));
        assert_ok(qn_store_read(store, qn_store_find(store, "w"), got));
        assert_true(got[3] == steps[i].w);
        assert_ok(qn_store_read(store, qn_store_find(store, "optim.loss_scale"), got));
        assert_true(got[0] == steps[i].scale);
        assert_ok(qn_store_read(store, qn_store_find(store, "optim.loss_scale_clean"), got));
        assert_true(got[0] == steps[i].clean);
    }
    /* 2,000 clean ones double it. */
    float almost = QN_SCALER_PERIOD - 1;
    assert_ok(qn_store_write(store, qn_store_find(store, "optim.loss_scale_clean"), &almost));
    float *in = qn_plan_input(p, "x", NULL);
    for (int k = 0; k < 4; k++)
        in[k] = 0;
    assert_ok(qn_plan_run(p));
    assert_ok(qn_store_read(store, qn_store_find(store, "optim.loss_scale"), got));
    assert_true(got[0] == 32768);
    /* But not beyond the largest, to which infinity leads back. */
    static const float large[] = { (float)QN_SCALER_MOST, INFINITY };
    for (int i = 0; i < QN_COUNT(large); i++) {
        assert_ok(qn_store_write(store, qn_store_find(store, "optim.loss_scale"), &large[i]));
        assert_ok(qn_store_write(store, qn_store_find(store, "optim.loss_scale_clean"), &almost));
        memset(qn_plan_input(p, "x", NULL), 0, 4 * sizeof(float));
        *(float *)qn_plan_input(p, "lr", NULL) = 0.5f;
        assert_ok(qn_plan_run(p));
        assert_ok(qn_store_read(store, qn_store_find(store, "optim.loss_scale"), got));
        assert_true(got[0] == (float)QN_SCALER_MOST);
    }
    qn_plan_free(p);
    qn_store_free(store);
    qn_net_fini(&net);
    qn_graph_free(g);
}

/* ---- 8 bits ---- */

/* What x is scaled by, and its reciprocal is 1. */
static double scale_of(QnGraph *g, QnF8Operand q, const float *x, int n, const float *history)
{
    QnStore *store = qn_store_new(device);
    QnPlan *p;
    assert_ok(qn_graph_output(g, "inverse", q.inverse));
    assert_ok(qn_store_add(store, g));
    assert_ok(qn_store_alloc(store));
    if (history)
        assert_ok(qn_store_write(store, qn_store_find(store, "h"), history));
    QnPipelineOptions passes = qn_device_passes(device);
    assert_ok(qn_pipeline_run(g, &passes));
    assert_ok(qn_plan_new(g, device, store, NULL, &p));
    memcpy(qn_plan_input(p, "x", NULL), x, (size_t)n * sizeof *x);
    assert_ok(qn_plan_run(p));
    double got = 1 / (double)*(const float *)qn_plan_output(p, "inverse", NULL);
    float kept[QN_F8_HISTORY];
    if (history) { /* moved by one, what came now in front */
        assert_ok(qn_store_read(store, qn_store_find(store, "h"), kept));
        assert_memory_equal(kept + 1, history, sizeof kept - sizeof *kept);
        assert_true(kept[0] == (isfinite(x[0]) ? 3.5f : 28));
    }
    qn_plan_free(p);
    qn_store_free(store);
    return got;
}

/* 448 / 3.5 is 128: that at the first step, and what the history says later. Half a unit more than
 * 3.5 is an octave less. */
static void test_f8_scale_is_delayed(void **state)
{
    (void)state;
    float none[QN_F8_HISTORY] = { 0 }, seen[QN_F8_HISTORY] = { 1, 28, 2 };
    static const float x[4] = { 1, -3.5f, 2, 0 }, zeros[4], bad[4] = { INFINITY, 1, 1, 1 };
    static const float more[4] = { 1, 0x1.c00002p1f }, nan[4] = { NAN, 1 };
    const struct {
        const float *x, *history;
        double want;
    } cases[] = { { x, none, 128 },   { x, seen, 16 },    { bad, seen, 16 },
                  { zeros, NULL, 1 }, { more, NULL, 64 }, { nan, NULL, 1 } };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnGraph *g = qn_graph_new();
        QnValue *v = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(2, 2));
        const char *name = cases[i].history ? "h" : NULL;
        QnF8Operand q = qn_f8_operand(g, v, name, QN_DTYPE_F8E4M3FN, name != NULL);
        double got = scale_of(g, q, cases[i].x, 4, cases[i].history);
        if (got != cases[i].want)
            fail_msg("case %d: %g, not %g", i, got, cases[i].want);
        qn_graph_free(g);
    }
}

static double rounded(QnDtype dtype, double x)
{
    uint8_t bits;
    double y;
    qn_dtype_from_f64(dtype, &x, &bits, 1);
    qn_dtype_to_f64(dtype, &bits, &y, 1);
    return y;
}

/* By the power of two that brings the largest below `most`. */
static void round_all(QnDtype dtype, double most, double *x, int n)
{
    double largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i]));
    double scale = exp2(floor(log2(most / largest)));
    for (int i = 0; i < n; i++)
        x[i] = rounded(dtype, x[i] * scale) / scale;
}

static void fill_input(QnPlan *p, const char *name, double *x, int n)
{
    float *to = qn_plan_input(p, name, NULL);
    for (int i = 0; i < n; i++)
        x[i] = (double)(to[i] = (float)x[i]);
}

/* The product and its gradients against products of numbers rounded by hand. */
static void test_f8_product(void **state)
{
    (void)state;
    enum { M = 16, K = 32, N = 16 };
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(M, K)), *grads[2];
    QnValue *w = qn_input(g, "w", QN_DTYPE_F32, &QN_SHAPE(K, N));
    QnValue *dy = qn_input(g, "dy", QN_DTYPE_F32, &QN_SHAPE(M, N));
    QnValue *y = qn_matmul_by_f8(g, x, w, false, NULL, false);
    assert_ok(qn_grad_from(g, y, dy, (QnValue *[]){ x, w }, 2, grads));
    double vx[M * K], vw[K * N], vd[M * N];
    for (int i = 0; i < M * K; i++)
        vx[i] = sin(i * 1.1);
    for (int i = 0; i < K * N; i++)
        vw[i] = 3 * cos(i * 0.7);
    for (int i = 0; i < M * N; i++)
        vd[i] = 0.01 * sin(i * 2.3);
    QnValue *outputs[] = { y, grads[0], grads[1] };
    static const char *const names[] = { "y", "dx", "dw" };
    for (int i = 0; i < 3; i++)
        assert_ok(qn_graph_output(g, names[i], outputs[i]));
    QnPipelineOptions passes = qn_device_passes(device);
    QnPlan *p;
    assert_ok(qn_pipeline_run(g, &passes));
    assert_ok(qn_plan_new(g, device, NULL, &(QnPlanOptions){ .poison = true }, &p));
    fill_input(p, "x", vx, M * K);
    fill_input(p, "w", vw, K * N);
    fill_input(p, "dy", vd, M * N);
    assert_ok(qn_plan_run(p));
    const float *got[3];
    for (int i = 0; i < 3; i++)
        got[i] = qn_plan_output(p, names[i], NULL);
    round_all(QN_DTYPE_F8E4M3FN, 448, vx, M * K);
    round_all(QN_DTYPE_F8E4M3FN, 448, vw, K * N);
    round_all(QN_DTYPE_F8E5M2, 57344, vd, M * N);
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            double want = 0;
            for (int k = 0; k < K; k++)
                want += vx[m * K + k] * vw[k * N + n];
            assert_true(fabs((double)got[0][m * N + n] - want) < 1e-5 * (1 + fabs(want)));
        }
        for (int k = 0; k < K; k++) {
            double want = 0;
            for (int n = 0; n < N; n++)
                want += vd[m * N + n] * vw[k * N + n];
            assert_true(fabs((double)got[1][m * K + k] - want) < 1e-5 * (1 + fabs(want)));
        }
    }
    for (int k = 0; k < K; k++) {
        for (int n = 0; n < N; n++) {
            double want = 0;
            for (int m = 0; m < M; m++)
                want += vx[m * K + k] * vd[m * N + n];
            assert_true(fabs((double)got[2][k * N + n] - want) < 1e-5 * (1 + fabs(want)));
        }
    }
    qn_plan_free(p);
    qn_graph_free(g);
}

/* Only products of matrices whose lengths tensor cores take. */
static void test_f8_is_for_matrices_of_16(void **state)
{
    (void)state;
    QnGraph *g = qn_graph_new(), *mixed;
    QnValue **map;
    QnPrecisionReport r;
    QnStateAttr w = { .name = "w", .dims = { 2, { 32, 48 } }, .trainable = true };
    QnStateAttr v = { .name = "v", .dims = { 2, { 48, 10 } }, .trainable = true };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(16, 32));
    QnValue *h = qn_matmul(g, x, qn_state(g, &w), NULL, false, false);
    h = qn_matmul(g, h, qn_state(g, &v), NULL, false, false);
    QnPrecisionOptions o = { .low = QN_DTYPE_F8E4M3FN, .updates = true };
    assert_ok(qn_precision(g, &o, &mixed, &map, &r));
    assert_int_equal(r.f8_nodes, 1);
    assert_non_null(find(mixed, &qn_op_matmul_by_f8));
    assert_int_equal(find(mixed, &qn_op_matmul)->out[0].type.dtype, QN_DTYPE_BF16);
    assert_int_equal(map[h->id]->type.dtype, QN_DTYPE_BF16);
    qn_graph_free(mixed);
    qn_graph_free(g);
}
