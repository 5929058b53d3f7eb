/* Costs: finite, not negative, and twice as much for a batch of twice the size. */
#include "ops/harness.h"

static void check_sane(const Case *c, QnCost cost)
{
    double in = 0, out = 0;
    for (int i = 0; i < c->node->n_in; i++)
        in += c->node->in[i] ? (double)qn_type_bytes(&c->node->in[i]->type) : 0;
    for (int i = 0; i < c->node->n_out; i++)
        out += (double)qn_type_bytes(&c->node->out[i].type);
    if (!isfinite(cost.flops) || !isfinite(cost.bytes_read) || !isfinite(cost.bytes_written))
        fail_msg("%s: the cost is not finite", c->name);
    if (cost.flops < 0 || cost.bytes_read < 0 || cost.bytes_written < 0)
        fail_msg("%s: a cost is negative", c->name);
    /* the least that one run must move: no more than everything, twice for a second look, and
     * what is gathered again and again */
    if (cost.bytes_read > 2 * (in + out) + 64 || cost.bytes_written > 2 * (in + out) + 64)
        fail_msg("%s: reads %g of %g bytes, writes %g of %g", c->name, cost.bytes_read, in,
                 cost.bytes_written, out);
}

static void test_costs_are_sane(void **state)
{
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            Case c;
            case_open(&c, all_ops[o], k, QN_DTYPE_F32);
            check_sane(&c, qn_cost_of(c.node));
            case_close(&c);
        }
    }
}

/* The sample with axis 0 of the inputs in `mask` doubled; NULL if the operator refuses it. */
static QnNode *emit_doubled(QnGraph *g, const Case *c, unsigned mask)
{
    QnValue *in[QN_SAMPLE_IN] = { 0 };
    for (int i = 0; i < c->sample->n_in; i++) {
        char name[16];
        if (!c->in[i])
            continue;
        QnShape s = c->in[i]->type.shape;
        if (mask >> i & 1)
            s.dim[0] *= 2;
        snprintf(name, sizeof name, "x%d", i);
        in[i] = qn_input(g, name, c->in[i]->type.dtype, &s);
    }
    return qn_emit(g, c->op, c->sample->attr, in, c->sample->n_in);
}

static bool is_doubled(const QnType *a, const QnType *b)
{
    return qn_shape_count(&b->shape) == 2 * qn_shape_count(&a->shape);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 0.01 * fmax(a, b);
}

/* Inputs whose first axis has the length of input 0's: all, those of its rank, itself alone. */
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

/* Doubling the batch doubles the work and the batch's part of the traffic. */
static bool check_doubling(const Case *c, unsigned mask)
{
    QnGraph *g = qn_graph_new();
    QnNode *n = emit_doubled(g, c, mask);
    bool all = n != NULL, scales = n && n->n_out == c->node->n_out;
    for (int i = 0; scales && i < n->n_out; i++)
        scales = is_doubled(&c->node->out[i].type, &n->out[i].type);
    for (int i = 0; i < c->sample->n_in; i++)
        all &= !c->in[i] || mask >> i & 1;
    if (scales) {
        QnCost one = qn_cost_of(c->node), two = qn_cost_of(n);
        if (!is_near(two.flops, 2 * one.flops) && !(two.flops >= one.flops && !all))
            fail_msg("%s: twice the batch costs %g flops, once %g", c->name, two.flops, one.flops);
        if (all ? !is_near(two.bytes_written, 2 * one.bytes_written)
                : two.bytes_written < one.bytes_written)
            fail_msg("%s: twice the batch writes %g bytes, once %g", c->name, two.bytes_written,
                     one.bytes_written);
        if (all ? !is_near(two.bytes_read, 2 * one.bytes_read)
                : two.bytes_read < one.bytes_read || two.bytes_read > 2 * one.bytes_read)
            fail_msg("%s: twice the batch reads %g bytes, once %g", c->name, two.bytes_read,
                     one.bytes_read);
    }
    qn_graph_free(g);
    return scales;
}

static void test_costs_scale_with_the_batch(void **state)
{
    int scaled = 0, operators = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        bool any = false;
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            Case c;
            if (all_ops[o]->samples[k].n_in == 0 || all_ops[o]->samples[k].in[0].rank == 0)
                continue;
            case_open(&c, all_ops[o], k, QN_DTYPE_F32);
            bool done = false;
            for (int choice = 0; choice < 3 && !done; choice++)
                done = check_doubling(&c, mask_of(&c, choice));
            scaled += done;
            any |= done;
            case_close(&c);
        }
        operators += any;
    }
    print_message("%d samples of %d operators scale\n", scaled, operators);
    assert_true(operators >= QN_COUNT(all_ops) / 2);
}
