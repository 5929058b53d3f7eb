/* Nets that find and outline things: their work against published figures, and steps of training
 * of one model a family. */
#include "test.h"

#include "plan/count.h"
#include "quern/plan.h"

#include <math.h>

static const QnModel *model(const char *name)
{
    const QnModel *m = NULL;
    assert_ok(qn_model_find(name, &m));
    return m;
}

/* Operations of products and convolutions, backward as well. */
static double products(const QnCount *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        sum += c->work[i].kind >= QN_WORK_MOVE ? 0 : c->work[i].flops * c->work[i].count;
    return sum;
}

static void count(const char *name, const QnCountRequest *r, QnCount *c)
{
    QnDevice *d = NULL;
    assert_ok(qn_device_open_named("null", NULL, &d));
    assert_ok(qn_count_model(model(name), r, d, c));
    qn_device_close(d);
}

/* A step of training is about three passes forward, and holds gradients. */
static void test_training(void **state)
{
    static const struct {
        const char *name;
        QnCountRequest request;
    } cases[] = {
        { "unet_medical", { .image = 188 } },  { "unet_segmentation", { .image = 64 } },
        { "unet3d_medical", { .image = 64 } }, { "nnunet2d", { .image = 64 } },
        { "vnet", { .image = 16 } },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnCountRequest r = cases[i].request;
        QnCount forward, step;
        r.batch = 2;
        count(cases[i].name, &r, &forward);
        r.train = true;
        count(cases[i].name, &r, &step);
        double times = products(&step) / products(&forward);
        if (!(times > 2 && times < 3.05) || !(step.gradients > 0))
            fail_msg("%s: training is %.3g times the pass forward", cases[i].name, times);
        qn_count_fini(&forward);
        qn_count_fini(&step);
    }
}
