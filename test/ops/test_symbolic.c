/* Inference with a symbol for the batch, bound afterwards, gives the types of concrete inference.
 */
#include "ops/harness.h"

typedef struct Swap {
    QnDim from, to;
} Swap;

static QnDim swap_dim(void *ctx, QnDim d)
{
    const Swap *s = ctx;
    return d == s->from ? s->to : d;
}

/* Axis 0 of the inputs in `mask` becomes `batch`; the node's outputs are named y0.. */
static QnNode *emit_with(QnGraph *g, const Case *c, unsigned mask, QnDim batch)
{
    QnValue *in[QN_SAMPLE_IN] = { 0 };
    for (int i = 0; i < c->sample->n_in; i++) {
        char name[16];
        if (!c->in[i])
            continue;
        QnShape s = c->in[i]->type.shape;
        if (mask >> i & 1)
            s.dim[0] = batch;
        snprintf(name, sizeof name, "x%d", i);
        in[i] = qn_input(g, name, c->in[i]->type.dtype, &s);
    }
    /* shapes among the attributes follow: where they name the old batch, the new one */
    Swap swap = { c->in[0]->type.shape.dim[0], batch };
    const void *attr = c->sample->attr;
    if (attr)
        attr = qn_attr_copy(g->arena, c->op, attr, swap_dim, &swap);
    QnNode *n = qn_emit(g, c->op, attr, in, c->sample->n_in);
    for (int i = 0; n && i < n->n_out; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        assert_ok(qn_graph_output(g, name, &n->out[i]));
    }
    return n;
}

static unsigned mask_of(const Case *c, int choice)
{
    unsigned mask = 0;
    for (int i = 0; i < c->sample->n_in; i++) {
        const QnShape *s = c->in[i] ? &c->in[i]->type.shape : NULL, *first = &c->in[0]->type.shape;
        bool same = s && s->rank > 0 && s->dim[0] == first->dim[0];
        if (same && (choice == 0 || (choice == 1 && s->rank == first->rank) || i == 0))
            mask |= 1u << i;
    }
    return mask;
}

/* Binds B to `batch` and compares with emission at that batch. */
static void check_bound(const Case *c, QnGraph *g, const QnNode *n, unsigned mask, int64_t batch)
{
    QnGraph *bound = NULL, *plain = qn_graph_new();
    QnNode *want = emit_with(plain, c, mask, batch);
    if (want) {
        if (qn_graph_bind(g, (const char *[]){ "B" }, &batch, 1, &bound))
            fail_msg("%s: binding B=%lld: %s", c->name, (long long)batch, qn_error_last()->text);
        assert_int_equal(n->n_out, want->n_out);
        for (int i = 0; i < want->n_out; i++) {
            char name[16], a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
            snprintf(name, sizeof name, "y%d", i);
            const QnValue *v = qn_graph_output_find(bound, name);
            assert_non_null(v);
            if (!qn_type_is_equal(&v->type, &want->out[i].type))
                fail_msg("%s: B=%lld gives output %d as %s, concrete inference %s", c->name,
                         (long long)batch, i, qn_type_text(&v->type, a),
                         qn_type_text(&want->out[i].type, b));
        }
    }
    qn_graph_free(bound);
    qn_graph_free(plain);
}

static bool check_symbolic(const Case *c, unsigned mask)
{
    QnGraph *g = qn_graph_new();
    QnNode *n = emit_with(g, c, mask, qn_dim_symbol(g, "B"));
    if (n) {
        check_bound(c, g, n, mask, c->in[0]->type.shape.dim[0]);
        check_bound(c, g, n, mask, 3 * c->in[0]->type.shape.dim[0]);
        assert_ok(qn_graph_verify(g));
    }
    qn_graph_free(g);
    return n != NULL;
}

static void test_a_symbolic_batch_binds(void **state)
{
    int taken = 0, operators = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        bool any = false, leaf = true;
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            Case c;
            if (all_ops[o]->samples[k].n_in == 0 || all_ops[o]->samples[k].in[0].rank == 0)
                continue;
            leaf = false;
            case_open(&c, all_ops[o], k, QN_DTYPE_F32);
            bool done = false;
            for (int choice = 0; choice < 3 && !done; choice++)
                done = check_symbolic(&c, mask_of(&c, choice));
            taken += done;
            any |= done;
            case_close(&c);
        }
        if (!any && !leaf)
            print_message("%s takes no symbolic batch\n", all_ops[o]->name);
        operators += any;
    }
    print_message("%d samples of %d operators with a symbolic batch\n", taken, operators);
    assert_true(operators >= QN_COUNT(all_ops) * 3 / 4);
}
