/* Text of every operator's samples: print, parse, print gives the same text and an equal node; in
 * every floating dtype, and with all attributes at their defaults where those are legal. */
#include "ops/harness.h"

#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"

static void check_equal(const Case *c, const QnNode *got)
{
    const QnNode *want = c->node;
    assert_ptr_equal(got->op, want->op);
    if (want->op->attr_bytes && !qn_attr_is_equal(want->op, want->attr, got->attr))
        fail_msg("%s: attributes do not survive text", c->name);
    assert_int_equal(got->n_in, want->n_in);
    assert_int_equal(got->n_out, want->n_out);
    for (int i = 0; i < want->n_in; i++)
        assert_int_equal(got->in[i] != NULL, want->in[i] != NULL);
    for (int i = 0; i < want->n_out; i++)
        assert_true(qn_type_is_equal(&got->out[i].type, &want->out[i].type));
}

static void check_round_trip(const Case *c)
{
    QnStr first = { 0 }, second = { 0 };
    QnGraph *g = NULL;
    for (int i = 0; i < c->node->n_out; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        assert_ok(qn_graph_output(c->g, name, &c->node->out[i]));
    }
    assert_ok(qn_graph_print(c->g, &first));
    if (qn_graph_parse(qn_str_text(&first), first.n, qn_op_find, &g))
        fail_msg("%s: %s in\n%s", c->name, qn_error_last()->text, qn_str_text(&first));
    assert_ok(qn_graph_print(g, &second));
    assert_string_equal(qn_str_text(&first), qn_str_text(&second));
    check_equal(c, g->last);
    assert_ok(qn_graph_verify(g));
    qn_graph_free(g);
    qn_str_fini(&first);
    qn_str_fini(&second);
}

static void test_samples_survive_text(void **state)
{
    static const QnDtype dtypes[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16, QN_DTYPE_F64 };
    int n = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            for (int d = 0; d < QN_COUNT(dtypes); d++) {
                Case c;
                if (!case_try(&c, all_ops[o], k, dtypes[d]))
                    continue;
                check_round_trip(&c);
                case_close(&c);
                n++;
            }
        }
    }
    print_message("%d round trips\n", n);
    assert_true(n > 4 * QN_COUNT(all_ops));
}
