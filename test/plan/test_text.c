/* Models of text, speech and tables: their training, their generation, and kinds of work of theirs.
 */
#include "plan/fixture.h"

#include "plan/counts.h"
#include "quern/plan.h"

#include <math.h>

static const QnCount *count(Fixture *f, const char *name, QnCountRequest r)
{
    const QnModel *m;
    const QnCount *c;
    assert_ok(qn_model_find(name, &m));
    assert_ok(qn_counts_get(f->counts, m, &r, &c));
    return c;
}

static void assert_near(double got, double want, double part)
{
    if (!(fabs(got - want) <= part * want))
        fail_msg("got %g, want %g within %g %%", got, want, 100 * part);
}

static double products(const QnCount *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].kind < QN_WORK_MOVE || c->work[i].kind == QN_WORK_RECURRENT)
            sum += c->work[i].flops * c->work[i].count;
    return sum;
}

static double count_of(const QnCount *c, QnWorkKind kind)
{
    double n = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        n += c->work[i].kind == kind ? c->work[i].count : 0;
    return n;
}

/* One model of every family has gradients, and their products are twice those of the pass forward:
 * less where the first or frozen layers need none, more where attention computes again. */
static void test_training(void **state)
{
    Fixture *f = *state;
    const QnFamily *last = NULL;
    const QnModel *m;
    int wrong = 0;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        QnCountRequest r = { .batch = 2, .train = true, .sequence = 64 };
        QnCount c;
        if (m->family == last || m->family->image || m->family->graph)
            continue;
        last = m->family;
        if (qn_count_model(m, &r, f->device, &c) != QN_OK) {
            print_message("%s: %s\n", m->name, qn_error_last()->text);
            wrong++;
            continue;
        }
        double times = products(&c) / (2 * c.macs);
        if (!(times > 1.9 && times < 3.6)) {
            print_message("%s: %.3g times the pass forward\n", m->name, times);
            wrong++;
        }
        qn_count_fini(&c);
    }
    assert_int_equal(wrong, 0);
}

/* Every family that generates: a step's work is that of one token, whatever went before. */
static void test_generation(void **state)
{
    Fixture *f = *state;
    const QnFamily *last = NULL;
    const QnModel *m;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        QnCountRequest r = { .batch = 4, .low = 2 };
        QnGeneration g;
        if (m->family == last || !m->family->generate)
            continue;
        last = m->family;
        assert_ok(qn_counts_generation(f->counts, m, &r, 64, 32, &g));
        if (!(g.steps == 31 && g.step->cache > 0 && g.last->cache >= g.step->cache &&
              g.step->tokens == 4.0 * QN_MAX(m->family->beams, 1) && g.prompt->tokens == 256))
            fail_msg("%s: a cache of %g and %g", m->name, g.step->cache, g.last->cache);
        assert_near(g.step->params, g.prompt->params, 0.001);
        assert_true(products(g.step) < products(g.prompt) / 4);
    }
}

/* One product for all inputs, and then one a step and direction, of nine layers; twice that with
 * gradients by the states. */
static void test_recurrent(void **state)
{
    Fixture *f = *state;
    const QnCount *c = count(f, "gnmt_v2", (QnCountRequest){ .batch = 8, .sequence = 20 });
    assert_true(count_of(c, QN_WORK_RECURRENT) == 9 * 20);
    c = count(f, "gnmt_v2", (QnCountRequest){ .batch = 8, .sequence = 20, .train = true });
    assert_true(count_of(c, QN_WORK_RECURRENT) == 2 * 9 * 20);
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].kind == QN_WORK_RECURRENT)
            assert_true(c->work[i].m == 8);
    assert_true(c->tokens == 2 * 8 * 20);
}

/* Few tokens come to few experts, and only their weights are read; all of them are there. */
static void test_experts(void **state)
{
    Fixture *f = *state;
    const double one = 3.0 * 4096 * 14336 * 2, layers = 32; /* bytes of an expert */
    QnCountRequest r = { .batch = 1, .low = 2, .generate = true, .context = 16 };
    const QnCount *few = count(f, "mixtral-8x7b", r);
    r.batch = 64;
    const QnCount *many = count(f, "mixtral-8x7b", r);
    assert_near(many->bytes - few->bytes, 6 * one * layers, 0.05);
    assert_near(few->weights, 2 * 46.7e9, 0.01);
    /* 12.9 billion parameters work on a token */
    assert_near(products(few), 2 * 12.75e9, 0.02);
}

/* Layers with a window keep no more than that, and one head of short vectors is read once. */
static void test_kept(void **state)
{
    Fixture *f = *state;
    QnCountRequest r = { .batch = 1, .low = 2, .generate = true, .context = 8192 };
    const double token = 2.0 * 62 * 16 * 128 * 2; /* bytes of keys and values */
    assert_near(count(f, "gemma-3-27b-it", r)->cache, token * (0.83 * 1024 + 0.17 * 8192), 0.01);
    const QnCount *c = count(f, "deepseek-v2-lite", r);
    assert_near(c->cache, 27.0 * 2 * 576 * 8193, 1e-6);
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].kind == QN_WORK_ATTENTION)
            assert_near(c->work[i].read, 2 * 576 * (8193 + 16), 0.01);
}

/* Adapters alone have gradients and moments; rows of tables are trained where they lie. */
static void test_partly_trained(void **state)
{
    Fixture *f = *state;
    QnCountRequest r = { .batch = 1, .train = true, .low = 1, .sequence = 64 };
    const QnCount *c = count(f, "llama2_70b_lora", r);
    assert_true(c->trained < 0.001 * c->params);
    assert_near(c->weights, 2 * c->params, 0.01);
    assert_near(c->optimizer, 8 * c->trained, 0.05);
    r.batch = 512;
    c = count(f, "dlrm_dcnv2", r);
    assert_true(c->params > 26e9 && c->trained < 20e6 && c->bytes < 2e9);
}
