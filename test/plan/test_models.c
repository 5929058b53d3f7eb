/* Parameters of the models by name against the published counts, and their work. */
#include "test.h"

#include "plan/count.h"
#include "quern/plan.h"

static QnDevice *null_device(void)
{
    QnDevice *d = NULL;
    assert_int_equal(qn_device_open_named("null", NULL, &d), QN_OK);
    return d;
}

/* Whether a count is within 1 % of what the source says, or the source says nothing. */
static bool is_near(const QnModel *m, const char *what, double got, double want)
{
    double off = got / want - 1;
    if (want <= 0 || (off > -0.01 && off < 0.01))
        return true;
    print_message("%s: %.3f %s, %.3f published (%s): %+.2f %%\n", m->name, got, what, want,
                  m->source, 100 * off);
    return false;
}

/* Within 1 % of what the source says, for every model. */
static void test_published_counts(void **state)
{
    QnDevice *d = null_device();
    const QnModel *m;
    int wrong = 0;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        QnCountRequest r = { .batch = 1, .sequence = m->family->image ? 0 : 16 };
        QnCount c;
        if (qn_count_model(m, &r, d, &c) != QN_OK) {
            print_message("%s: %s\n", m->name, qn_error_last()->text);
            wrong++;
            continue;
        }
        wrong += !is_near(m, "M parameters", c.params / 1e6, m->params);
        wrong += !is_near(m, "G multiply-adds", c.macs / 1e9, m->gmacs);
        qn_count_fini(&c);
    }
    qn_device_close(d);
    assert_int_equal(wrong, 0);
}

/* One model of every family that takes images can be counted for training: the gradients exist, and
 * their products are about twice those of the pass forward. */
static void test_training(void **state)
{
    QnDevice *d = null_device();
    const QnFamily *last = NULL;
    const QnModel *m;
    int wrong = 0;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        QnCountRequest r = { .batch = 2, .train = true };
        QnCount c;
        if (m->family == last || !m->family->image || m->family->depth)
            continue;
        last = m->family;
        if (qn_count_model(m, &r, d, &c) != QN_OK) {
            print_message("%s: %s\n", m->name, qn_error_last()->text);
            wrong++;
            continue;
        }
        double products = 0;
        for (int64_t k = 0; k < c.n_work; k++)
            if (c.work[k].kind < QN_WORK_MOVE)
                products += c.work[k].flops * c.work[k].count;
        if (!(products > 5 * c.macs && products < 8 * c.macs)) {
            print_message("%s: %.3g operations of %.3g multiply-adds\n", m->name, products, c.macs);
            wrong++;
        }
        qn_count_fini(&c);
    }
    qn_device_close(d);
    assert_int_equal(wrong, 0);
}
