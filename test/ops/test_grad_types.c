/* Gradients of 16-bit tensors are 16-bit tensors: the first and second derivative of every operator
 * can be built in f16 and bf16, whatever mix of dtypes its statistics have. */
#include "ops/harness.h"

#include "pass/grad.h"

/* Sum of squares of all float values in f32, so that every one gets a gradient of its own. */
static QnValue *total_of(QnGraph *g, QnValue *const *y, int n)
{
    QnValue *total = NULL;
    for (int i = 0; i < n; i++) {
        if (!qn_dtype_is_float(y[i]->type.dtype))
            continue;
        QnValue *s = qn_square(g, qn_cast(g, y[i], QN_DTYPE_F32));
        s = qn_sum(g, s, QN_ALL_AXES, false);
        total = total ? qn_add(g, total, s) : s;
    }
    return total;
}

static void differentiate(const Case *c, QnValue *y, QnValue *const *wrt, int n, QnValue **d)
{
    if (qn_grad(c->g, y, wrt, n, d) != QN_OK)
        fail_msg("%s: %s", c->name, qn_error_last()->text);
    for (int i = 0; i < n; i++) {
        if (!qn_type_is_equal(&d[i]->type, &wrt[i]->type))
            fail_msg("%s: gradient %d has another type", c->name, i);
    }
}

/* Whether there was anything to differentiate. */
static bool check(const Case *c)
{
    QnValue *out[QN_MAX_OUT], *wrt[QN_SAMPLE_IN], *d[QN_SAMPLE_IN], *dd[QN_SAMPLE_IN];
    int n = 0;
    for (int i = 0; i < c->node->n_out; i++)
        out[i] = &c->node->out[i];
    for (int i = 0; i < c->sample->n_in; i++) {
        if (c->in[i] && qn_dtype_is_float(c->in[i]->type.dtype))
            wrt[n++] = c->in[i];
    }
    QnValue *y = total_of(c->g, out, c->node->n_out);
    if (!y || !n)
        return false;
    differentiate(c, y, wrt, n, d);
    if (!(c->sample->flags & QN_SAMPLE_NO_GRAD2))
        differentiate(c, total_of(c->g, d, n), wrt, n, dd);
    if (qn_graph_verify(c->g) != QN_OK)
        fail_msg("%s: %s", c->name, qn_error_last()->text);
    return true;
}

static void run(QnDtype f)
{
    int checked = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        for (int k = 0; k < op->n_samples && !(op->traits & QN_NO_GRAD); k++) {
            Case c;
            if (op->samples[k].flags & (QN_SAMPLE_NO_GRAD | QN_SAMPLE_F32_ONLY))
                continue;
            if (!case_try(&c, op, k, f))
                continue;
            checked += check(&c);
            case_close(&c);
        }
    }
    assert_true(checked >= 300);
}

static void test_f16(void **state)
{
    run(QN_DTYPE_F16);
}

static void test_bf16(void **state)
{
    run(QN_DTYPE_BF16);
}
