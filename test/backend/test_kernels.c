/* Every kernel of the CPU on the samples of every operator, in each float type and both layouts.
 * timeout: 300 */
#include "backend/kernel_check.h"
#include "ops/ops_list.h"

static const QnOp *const all_ops[] = {
#define QN_X(name) &qn_op_##name,
    QN_OP_LIST(QN_X)
#undef QN_X
};

static int run_sample(const QnOp *op, const QnSample *s, QnDtype dtype, QnLayout layout)
{
    QnGraph *g = qn_graph_new();
    QnValue *in[QN_SAMPLE_IN];
    uint64_t seed = 3;
    int n_run = 0;
    for (int i = 0; i < s->n_in; i++) {
        QnShape shape = qn_shape_make(s->in[i].rank, s->in[i].dim);
        QnDtype d = s->in[i].dtype == QN_DTYPE_F32 ? dtype : s->in[i].dtype;
        in[i] = check_input(g, d, &shape, layout);
    }
    QnNode *n = qn_emit(g, op, s->attr, in, s->n_in);
    if (n) { /* else the operator refuses this type */
        for (int o = 0; o < n->n_out; o++)
            n->out[o].type.layout = n->out[o].type.shape.rank >= 3 ? layout : QN_LAYOUT_PLAIN;
        Check c = { .n = n, .tol = check_tolerance(dtype) };
        c.tol = QN_MAX(c.tol, dtype == QN_DTYPE_F32 ? op->tol.f32 : op->tol.bf16);
        for (int i = 0; i < s->n_in; i++) {
            const QnSampleIn *x = &s->in[i];
            bool own = x->lo != 0 || x->hi != 0, given = s->lo != 0 || s->hi != 0;
            double lo = own ? x->lo : given ? s->lo : -1, hi = own ? x->hi : given ? s->hi : 1;
            c.in[i] = check_fill(&n->in[i]->type, lo, hi, x->distinct, &seed);
        }
        check_run(&c);
        n_run = c.n_run;
    }
    qn_graph_free(g);
    return n_run;
}

static int run_all(QnDtype dtype, QnLayout layout)
{
    int n_run = 0;
    for (int i = 0; i < QN_COUNT(all_ops); i++) {
        const QnOp *op = all_ops[i];
        bool tuned = false;
        for (int k = 0; k < qn_backend_cpu.n_kernels; k++)
            tuned |= qn_backend_cpu.kernels[k]->op == op;
        for (int k = 0; tuned && k < op->n_samples; k++) {
            if (dtype == QN_DTYPE_F32 || !(op->samples[k].flags & QN_SAMPLE_F32_ONLY))
                n_run += run_sample(op, &op->samples[k], dtype, layout);
        }
    }
    return n_run;
}

static void test_samples_f32(void **state)
{
    assert_true(run_all(QN_DTYPE_F32, QN_LAYOUT_PLAIN) > 0);
}

static void test_samples_bf16(void **state)
{
    assert_true(run_all(QN_DTYPE_BF16, QN_LAYOUT_PLAIN) > 0);
}

static void test_samples_f16(void **state)
{
    assert_true(run_all(QN_DTYPE_F16, QN_LAYOUT_PLAIN) > 0);
}

static void test_samples_channels_last(void **state)
{
    run_all(QN_DTYPE_F32, QN_LAYOUT_CHANNELS_LAST);
}
