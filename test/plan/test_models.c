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

/* Within 1 % of what the source says, for every model. */
static void test_parameters(void **state)
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
        double off = c.params / (1e6 * m->params) - 1;
        if (m->params > 0 && !(off > -0.01 && off < 0.01)) {
            print_message("%s: %.3f M parameters, %.3f published (%s): %+.2f %%\n", m->name,
                          c.params / 1e6, m->params, m->source, 100 * off);
            wrong++;
        }
        qn_count_fini(&c);
    }
    qn_device_close(d);
    assert_int_equal(wrong, 0);
}
