/* Kernels that work on rows or on all elements of a tensor: many rows, rows that fill no vector. */
#include "backend/kernel_check.h"

static const int64_t widths[] = { 1, 7, 16, 33, 130, 1000 };

static QnValue *in(QnGraph *g, const QnShape *s)
{
    return check_input(g, QN_DTYPE_F32, s, QN_LAYOUT_PLAIN);
}

static void test_softmax(void **state)
{
    for (int i = 0; i < QN_COUNT(widths); i++) {
        QnGraph *g = qn_graph_new();
        QnShape s = QN_SHAPE(67, widths[i], 3);
        QnValue *x = in(g, &s);
        for (int axis = 0; axis < 3; axis++) {
            assert_true(check_node(g, qn_softmax(g, x, axis), -30, 30, 2e-6) > 0);
            assert_true(check_node(g, qn_log_softmax(g, x, axis), -30, 30, 2e-6) > 0);
        }
        qn_graph_free(g);
    }
}

static void loss_case(const QnShape *s, double smoothing, bool grad)
{
    uint64_t seed = 5;
    QnGraph *g = qn_graph_new();
    QnShape rows = { s->rank - 1, { s->dim[0] } };
    for (int i = 2; i < s->rank; i++)
        rows.dim[i - 1] = s->dim[i];
    QnValue *x = in(g, s), *labels = check_input(g, QN_DTYPE_I64, &rows, QN_LAYOUT_PLAIN);
    QnNode *n = grad ? qn_cross_entropy_grad(g, in(g, &rows), x, labels, smoothing, 0)->node
                     : qn_cross_entropy_rows(g, x, labels, smoothing, 0);
    assert_ok(qn_graph_check(g));
    Check c = { .n = n, .tol = 5e-6 };
    for (int i = 0; i < n->n_in; i++) {
        bool is_label = n->in[i] == labels;
        c.in[i] = check_fill(&n->in[i]->type, is_label ? 0 : -20,
                             is_label ? (double)(s->dim[1] - 1) : 20, false, &seed);
    }
    check_run(&c);
    assert_true(c.n_run > 0);
    qn_graph_free(g);
}

static void test_cross_entropy(void **state)
{
    for (int i = 0; i < 2 * QN_COUNT(widths); i++) {
        loss_case(&QN_SHAPE(67, widths[i / 2]), 0, i % 2);
        loss_case(&QN_SHAPE(67, widths[i / 2]), 0.1, i % 2);
        loss_case(&QN_SHAPE(3, widths[i / 2], 5, 4), 1, i % 2);
    }
}

/* A label that is no class is an error that names it, before anything is written. */
static void test_cross_entropy_refuses_labels(void **state)
{
    QnGraph *g = qn_graph_new();
    QnValue *x = in(g, &QN_SHAPE(3, 4));
    QnValue *labels = check_input(g, QN_DTYPE_I64, &QN_SHAPE(3), QN_LAYOUT_PLAIN);
    QnNode *n = qn_cross_entropy_rows(g, x, labels, 0, -100);
    QnKernelEnv env = { .n_threads = 1, .isa = qn_cpu_isa_best() };
    float scores[12] = { 0 }, loss[3] = { 7, 7, 7 }, weight[3];
    int64_t given[3] = { 1, -100, 4 };
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        QnPrepared p = { .kernel = qn_backend_cpu.kernels[i], .node = n, .env = &env };
        if (p.kernel->op != n->op)
            continue;
        assert_ok(p.kernel->prepare(&p));
        void *work = check_buffer(p.workspace_bytes);
        assert_fails(
            p.kernel->run(&p, (const void *[]){ scores, given }, (void *[]){ loss, weight }, work),
            QN_EARG, "label 4 at row 2");
        assert_true(loss[0] == 7);
        free(work);
        p.kernel->fini(&p);
    }
    qn_graph_free(g);
}

static void test_norms(void **state)
{
    for (int i = 0; i < QN_COUNT(widths); i++) {
        QnGraph *g = qn_graph_new();
        QnShape s = QN_SHAPE(67, widths[i]), last = QN_SHAPE(widths[i]), first = QN_SHAPE(67);
        QnValue *x = in(g, &s), *dy = in(g, &s), *a = in(g, &last), *b = in(g, &last);
        QnValue *m = in(g, &first), *r = in(g, &first), *y[8];
        y[0] = qn_layer_norm(g, x, a, b, -1, 1e-3);
        y[1] = qn_layer_norm(g, x, NULL, NULL, -1, 1e-3);
        y[2] = qn_rms_norm(g, x, a, -1, 1e-3);
        y[3] = qn_rms_norm(g, x, NULL, -1, 1e-3);
        y[4] = qn_emitn(g, &qn_op_layer_norm_grad, NULL, (QnValue *[]){ dy, x, m, r, a }, 5);
        y[5] = qn_emitn(g, &qn_op_layer_norm_grad, NULL, (QnValue *[]){ dy, x, m, r }, 4);
        y[6] = qn_emitn(g, &qn_op_rms_norm_grad, NULL, (QnValue *[]){ dy, x, r, a }, 4);
        y[7] = qn_emitn(g, &qn_op_rms_norm_grad, NULL, (QnValue *[]){ dy, x, r }, 3);
        for (int k = 0; k < QN_COUNT(y); k++)
            assert_true(check_node(g, y[k], -1, 1, 2e-5) > 0);
        qn_graph_free(g);
    }
}

enum { ROWS = 67, WIDTH = 130, CELLS = ROWS * WIDTH };

typedef struct Normed {
    uint16_t sum[CELLS], y[CELLS];
    float mean[ROWS], rstd[ROWS];
} Normed;

/* The operator's kernel of the highest rank. */
static void run_best(const QnNode *n, const void *const *from, void *const *to)
{
    QnKernelEnv env = { .n_threads = 2, .isa = qn_cpu_isa_best() };
    QnPrepared p = { .node = n, .env = &env };
    for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
        const QnKernel *k = qn_backend_cpu.kernels[i];
        if (k->op == n->op && (!p.kernel || k->rank > p.kernel->rank))
            p.kernel = k;
    }
    assert_non_null(p.kernel);
    assert_ok(p.kernel->prepare(&p));
    void *work = check_buffer(p.workspace_bytes);
    assert_ok(p.kernel->run(&p, from, to, work));
    free(work);
    p.kernel->fini(&p);
}

/* The norm of a sum in 16 bits is that of the sum as it is stored, kept or not, to the bit: another
 * node may normalise it again (recompute). */
static void norm_of_sum(QnDtype dtype)
{
    uint64_t seed = 11;
    Normed both, alone, again;
    QnGraph *g = qn_graph_new();
    const QnShape s = QN_SHAPE(ROWS, WIDTH), last = QN_SHAPE(WIDTH);
    QnValue *v[5];
    void *raw[5];
    for (int i = 0; i < QN_COUNT(v); i++) {
        v[i] = check_input(g, dtype, i < 3 ? &s : &last, QN_LAYOUT_PLAIN);
        int64_t n = qn_shape_count(&v[i]->type.shape);
        double *x = check_fill(&v[i]->type, -2, 2, false, &seed);
        raw[i] = check_buffer((size_t)n * sizeof(uint16_t));
        qn_dtype_from_f64(dtype, x, raw[i], n);
        free(x);
    }
    QnNode *norm = qn_layer_norm(g, v[0], v[3], v[4], -1, 1e-5)->node;
    QnNode *kept = qn_add_layer_norm(g, v[1], v[2], norm, true);
    QnNode *dropped = qn_add_layer_norm(g, v[1], v[2], norm, false);
    assert_ok(qn_graph_check(g));
    const void *const in[] = { raw[1], raw[2], raw[3], raw[4] };
    run_best(kept, in, (void *[]){ both.sum, both.y, both.mean, both.rstd });
    run_best(dropped, in, (void *[]){ alone.y, alone.mean, alone.rstd });
    run_best(norm, (const void *[]){ both.sum, raw[3], raw[4] },
             (void *[]){ again.y, again.mean, again.rstd });
    assert_memory_equal(both.y, again.y, sizeof both.y);
    assert_memory_equal(both.mean, again.mean, sizeof both.mean);
    assert_memory_equal(both.rstd, again.rstd, sizeof both.rstd);
    assert_memory_equal(alone.y, again.y, sizeof alone.y);
    for (int i = 0; i < QN_COUNT(v); i++)
        free(raw[i]);
    qn_graph_free(g);
}

static void test_norm_of_a_rounded_sum(void **state)
{
    norm_of_sum(QN_DTYPE_BF16);
    norm_of_sum(QN_DTYPE_F16);
}

/* Enough elements for several parts; scalars are drawn from 1..2. */
static void test_updates(void **state)
{
    for (int i = 0; i < 2; i++) {
        QnGraph *g = qn_graph_new();
        QnShape s = QN_SHAPE(i ? 70001 : 5);
        QnValue *p = in(g, &s), *m = in(g, &s), *v = in(g, &s), *d = in(g, &s);
        QnValue *lr = in(g, &(QnShape){ 0 });
        QnValue *step = check_input(g, QN_DTYPE_I64, &(QnShape){ 0 }, QN_LAYOUT_PLAIN);
        QnNode *n[] = { qn_sgd(g, p, NULL, d, lr, 0, 0.1, false),
                        qn_sgd(g, p, m, d, lr, 0.9, 0.1, false),
                        qn_sgd(g, p, m, d, lr, 0.9, 0.1, true),
                        qn_adam(g, p, m, v, d, lr, step, 0.9, 0.999, 1e-8, 0.1),
                        qn_adam(g, p, m, v, d, lr, step, 0, 0.9, 1e-8, 0),
                        qn_adamw(g, p, m, v, d, lr, step, 0.9, 0.999, 1e-8, 0.1) };
        for (int k = 0; k < QN_COUNT(n); k++) {
            assert_non_null(n[k]);
            assert_true(check_node(g, &n[k]->out[0], 1, 2, 2e-5) > 0);
        }
        qn_graph_free(g);
    }
}

typedef struct AttentionCase {
    int64_t b, h, hkv, t, s, d, e;
    bool causal, mask;
} AttentionCase;

/* Several blocks of queries, shared heads, fewer queries than keys and the other way round. */
static void test_attention(void **state)
{
    static const AttentionCase cases[] = {
        { 2, 2, 2, 130, 130, 16, 16, true, false }, { 1, 4, 2, 7, 33, 5, 9, true, true },
        { 2, 3, 1, 100, 50, 32, 8, true, false },   { 1, 2, 1, 20, 700, 12, 40, false, true },
        { 1, 1, 1, 1, 1, 1, 1, false, false },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        const AttentionCase *c = &cases[i];
        QnGraph *g = qn_graph_new();
        QnShape rows = QN_SHAPE(c->b, c->h, c->t), y = QN_SHAPE(c->b, c->h, c->t, c->e);
        QnValue *q = in(g, &QN_SHAPE(c->b, c->h, c->t, c->d));
        QnValue *k = in(g, &QN_SHAPE(c->b, c->hkv, c->s, c->d));
        QnValue *v = in(g, &QN_SHAPE(c->b, c->hkv, c->s, c->e));
        QnValue *mask = c->mask ? in(g, &QN_SHAPE(c->h, 1, c->s)) : NULL;
        QnValue *dy = in(g, &y), *lse = in(g, &rows), *delta = in(g, &rows);
        QnNode *n[] = { qn_attention_node(g, q, k, v, mask, c->causal, 0),
                        qn_attention_grad(g, dy, q, k, v, lse, delta, mask, c->causal, 0.1) };
        for (int j = 0; j < QN_COUNT(n); j++)
            assert_true(check_node(g, &n[j]->out[0], 0.5, 1.5, 2e-5) > 0);
        qn_graph_free(g);
    }
}

/* Operands of one value a channel, in both layouts: tiles of whole periods and others. */
static void test_maps_of_channels(void **state)
{
    static const int64_t channels[] = { 1, 16, 64, 3, 512, 1024 };
    for (int i = 0; i < 2 * QN_COUNT(channels); i++) {
        QnGraph *g = qn_graph_new();
        QnLayout l = (QnLayout)(i % 2);
        QnShape s = QN_SHAPE(3, channels[i / 2], 7, 5), c = QN_SHAPE(1, channels[i / 2], 1, 1);
        QnValue *x = check_input(g, QN_DTYPE_F32, &s, l);
        QnValue *y = qn_mul(g, x, check_input(g, QN_DTYPE_F32, &c, QN_LAYOUT_PLAIN));
        y->type.layout = l;
        assert_true(check_node(g, y, -1, 1, 1e-6) > 0);
        qn_graph_free(g);
    }
}
