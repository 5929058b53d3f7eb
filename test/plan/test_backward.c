/* Which nodes of a gradient frameworks compute in one kernel. */
#include "test.h"

#include "ops/ops.h"
#include "plan/backward.h"

/* x through two functions of elements, which are added, and a norm; with the gradient by x. */
static QnGraph *net(void)
{
    QnGraph *g = qn_graph_new();
    assert_non_null(g);
    QnShape s = QN_SHAPE(4, 8);
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &s), *dx = NULL;
    QnValue *y = qn_add(g, qn_silu(g, x), qn_gelu(g, x));
    y = qn_sum(g, qn_square(g, qn_layer_norm(g, y, NULL, NULL, -1, 1e-5)), (QnInts){ 0 }, false);
    assert_ok(qn_grad(g, y, &x, 1, &dx));
    assert_ok(qn_graph_output(g, "dx", dx));
    assert_ok(qn_graph_check(g));
    return g;
}

static bool after_norm(const QnNode *n)
{
    while (n && n->op != &qn_op_layer_norm_grad)
        n = n->prev;
    return n != NULL;
}

/* The gradients of silu and of gelu are a kernel each, of two reads and a write; their sum is a
 * third; nothing before the first gradient is joined. */
static void test_kernels(void **state)
{
    QnGraph *g = net();
    QnBackward b;
    int roots = 0, sums = 0;
    assert_ok(qn_backward_find(g, &b));
    QN_GRAPH_EACH(g, n)
    {
        if (!after_norm(n)) {
            assert_ptr_equal(b.kernel[n->id], n);
            continue;
        }
        if (!(n->op->traits & QN_MAP) || b.kernel[n->id] != n)
            continue;
        if (n->op == &qn_op_add) { /* of one node */
            assert_true(b.read[n->id] == 0);
            sums++;
            continue;
        }
        double read = b.read[n->id], one = 4 * 8 * 4;
        if (!(read == 2 * one))
            fail_msg("%s of %s reads %g bytes", n->op->name, n->name ? n->name : "", read);
        roots++;
    }
    assert_int_equal(roots, 2);
    assert_int_equal(sums, 1);
    qn_graph_free(g);
}
