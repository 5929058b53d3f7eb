/* Learning rates against values worked out by hand. labels: train */
#include "test.h"

#include "train/recipe.h"

#include <math.h>

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want) + 1e-15))
        fail_msg("%.17g, expected %.17g", got, want);
}

static void test_constant(void **state)
{
    QnSchedule s = { .lr = 0.3 };
    assert_near(qn_schedule_lr(&s, 0, 10, 5), 0.3);
    assert_near(qn_schedule_lr(&s, 9, 10, 5), 0.3);
    assert_near(qn_schedule_lr(&s, 0, 1, 1), 0.3);
}

static void test_step(void **state)
{
    QnSchedule s = {
        .kind = QN_SCHEDULE_STEP, .lr = 1, .gamma = 0.1, .marks = { 1, 2.5 }, .n_marks = 2
    };
    /* 4 updates an epoch: marks at updates 4 and 10 */
    static const struct {
        int64_t step;
        double lr;
    } want[] = { { 0, 1 }, { 3, 1 }, { 4, 0.1 }, { 9, 0.1 }, { 10, 0.01 }, { 19, 0.01 } };
    for (int i = 0; i < QN_COUNT(want); i++)
        assert_near(qn_schedule_lr(&s, want[i].step, 20, 4), want[i].lr);
}

static void test_linear(void **state)
{
    QnSchedule s = { .kind = QN_SCHEDULE_LINEAR, .lr = 1, .min_lr = 0.2 };
    assert_near(qn_schedule_lr(&s, 0, 5, 5), 1);
    assert_near(qn_schedule_lr(&s, 1, 5, 5), 0.8);
    assert_near(qn_schedule_lr(&s, 2, 5, 5), 0.6);
    assert_near(qn_schedule_lr(&s, 4, 5, 5), 0.2);
    assert_near(qn_schedule_lr(&s, 9, 5, 5), 0.2); /* past the end it stays */
}

static void test_cosine(void **state)
{
    QnSchedule s = { .kind = QN_SCHEDULE_COSINE, .lr = 2, .min_lr = 1 };
    assert_near(qn_schedule_lr(&s, 0, 5, 5), 2);
    assert_near(qn_schedule_lr(&s, 1, 5, 5), 1 + 0.5 * (1 + sqrt(0.5)));
    assert_near(qn_schedule_lr(&s, 2, 5, 5), 1.5);
    assert_near(qn_schedule_lr(&s, 3, 5, 5), 1 + 0.5 * (1 - sqrt(0.5)));
    assert_near(qn_schedule_lr(&s, 4, 5, 5), 1);
}

static void test_one_cycle(void **state)
{
    QnSchedule s = { .kind = QN_SCHEDULE_ONE_CYCLE, .lr = 1, .rise = 0.25 };
    /* 9 updates: t = step/8; up to t = 1/4, down after */
    assert_near(qn_schedule_lr(&s, 0, 9, 9), 0.04);
    assert_near(qn_schedule_lr(&s, 1, 9, 9), (1 + 0.04) / 2); /* half of the way up */
    assert_near(qn_schedule_lr(&s, 2, 9, 9), 1);
    assert_near(qn_schedule_lr(&s, 5, 9, 9), (1 + 1e-4) / 2); /* half of the way down */
    assert_near(qn_schedule_lr(&s, 8, 9, 9), 1e-4);
}

static void test_warmup(void **state)
{
    QnSchedule s = { .kind = QN_SCHEDULE_LINEAR, .lr = 1, .warmup = 4 };
    /* four updates below the rate in equal steps, then the schedule over the other six */
    static const double want[] = { 0.2, 0.4, 0.6, 0.8, 1, 0.8, 0.6, 0.4, 0.2, 0 };
    for (int i = 0; i < QN_COUNT(want); i++)
        assert_near(qn_schedule_lr(&s, i, 10, 10), want[i]);
    s.warmup = 0.4; /* the same as a share */
    for (int i = 0; i < QN_COUNT(want); i++)
        assert_near(qn_schedule_lr(&s, i, 10, 10), want[i]);
    s.warmup = 100; /* longer than the run: up all the time, and never beyond */
    for (int i = 0; i < 10; i++)
        assert_near(qn_schedule_lr(&s, i, 10, 10), (i + 1) / 101.0);
}
