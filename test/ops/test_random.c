/* Random operators: words of the generator, their moments, and that streams and steps differ. */
#include "values.h"

#include "base/rng.h"

static const double *draw(Case *c, QnValue *v)
{
    const double *got;
    assert_ok(qn_graph_check(c->g));
    assert_ok(qn_eval_get(c->e, v, &got));
    return got;
}

/* Element i is word i % 4 of block i / 4 under seed and (step, operators' bit, stream). */
static void test_uniform_is_made_of_the_generators_words(void **state)
{
    Case c = case_new();
    QnValue *key = GIVE(&c, I64, QN_SHAPE(2), 7, 42);
    QnValue *first = qn_random_uniform(c.g, key, &QN_SHAPE(3), F32, 0, 1);
    QnValue *second = qn_random_uniform(c.g, key, &QN_SHAPE(6), F32, -1, 3);
    uint32_t block[4];
    qn_rng_u32x4(42, UINT64_C(7) << 32 | 0x80000001u, 1, block);
    assert_true(draw(&c, second)[5] == -1 + 4 * (double)qn_rng_to_uniform(block[1]));
    qn_rng_u32x4(42, UINT64_C(7) << 32 | 0x80000000u, 0, block);
    assert_true(draw(&c, first)[2] == (double)qn_rng_to_uniform(block[2]));
    case_free(&c);
}

/* Written down once: a change of the generator breaks every resumed run. */
static void test_values_never_change(void **state)
{
    Case c = case_new();
    QnValue *key = GIVE(&c, I64, QN_SHAPE(2), 1, 3);
    QnValue *x = GIVE(&c, F32, QN_SHAPE(8), 1, 1, 1, 1, 1, 1, 1, 1);
    QnValue *y = qn_dropout(c.g, x, key, 0.5);
    WANT(&c, y, QN_SHAPE(8), 2, 0, 2, 2, 2, 0, 2, 2);
    case_free(&c);
}

static void test_dropout_keeps_what_its_mask_says(void **state)
{
    Case c = case_new();
    enum { N = 4000 };
    double x[N];
    for (int i = 0; i < N; i++)
        x[i] = i + 1;
    QnValue *v = qn_input(c.g, "x", F32, &QN_SHAPE(N)), *step = GIVE(&c, I64, ((QnShape){ 0 }), 3);
    assert_ok(qn_eval_set(c.e, v, x));
    QnValue *y = qn_dropout(c.g, v, step, 0.25);
    const double *mask = draw(&c, &y->node->out[1]), *got = draw(&c, y);
    int kept = 0;
    for (int i = 0; i < N; i++) {
        assert_true(fabs(got[i] - (mask[i] != 0 ? x[i] / 0.75 : 0)) < 1e-9);
        kept += mask[i] != 0;
    }
    assert_in_range(kept, N * 3 / 4 - 120, N * 3 / 4 + 120); /* over 4 deviations */
    assert_ptr_equal(qn_dropout(c.g, v, step, 0), v);
    case_free(&c);
}

static void test_streams_and_steps_differ(void **state)
{
    Case c = case_new();
    QnValue *step = qn_input(c.g, "step", I64, &(QnShape){ 0 });
    QnValue *a = qn_bernoulli(c.g, step, &QN_SHAPE(256), 0.5);
    QnValue *b = qn_bernoulli(c.g, step, &QN_SHAPE(256), 0.5);
    double keep[256];
    assert_ok(qn_eval_set(c.e, step, ELEMENTS(1)));
    memcpy(keep, draw(&c, a), sizeof keep);
    const double *other = draw(&c, b);
    int same = 0, again = 0;
    for (int i = 0; i < 256; i++)
        same += other[i] == keep[i];
    assert_ok(qn_eval_set(c.e, step, ELEMENTS(2)));
    const double *later = draw(&c, a);
    for (int i = 0; i < 256; i++)
        again += later[i] == keep[i];
    assert_in_range(same, 90, 166);
    assert_in_range(again, 90, 166);
    assert_ok(qn_eval_set(c.e, step, ELEMENTS(1)));
    assert_memory_equal(draw(&c, a), keep, sizeof keep);
    case_free(&c);
}

static void test_normal_moments(void **state)
{
    Case c = case_new();
    enum { N = 20000 };
    QnValue *step = GIVE(&c, I64, ((QnShape){ 0 }), 5);
    const double *z = draw(&c, qn_random_normal(c.g, step, &QN_SHAPE(N), F32, 2, 3));
    double mean = 0, square = 0;
    for (int i = 0; i < N; i++) {
        mean += z[i] / N;
        square += (z[i] - 2) * (z[i] - 2) / N;
    }
    assert_true(fabs(mean - 2) < 0.1);
    assert_true(fabs(square - 9) < 0.4);
    case_free(&c);
}

/* Each draw is a neighbour in the 16-bit type, and their mean is the number itself: 1 + 2^-9 lies a
 * quarter up from 1 in bf16, 3.3 * 2^-24 among f16's smallest numbers. */
static void test_casts_by_chance_are_right_in_the_mean(void **state)
{
    static const struct {
        QnDtype dtype;
        double x, below, above;
    } cases[] = { { QN_DTYPE_BF16, 1 + 0x1p-9, 1, 1 + 0x1p-7 },
                  { QN_DTYPE_BF16, -(1 + 0x1p-9), -1, -(1 + 0x1p-7) },
                  { QN_DTYPE_F16, 2 + 0x1p-11, 2, 2 + 0x1p-9 },
                  { QN_DTYPE_F16, 3.25 * 0x1p-24, 3 * 0x1p-24, 4 * 0x1p-24 } };
    enum { N = 8000 };
    double x[N];
    for (int k = 0; k < 4; k++) {
        Case c = case_new();
        for (int i = 0; i < N; i++)
            x[i] = cases[k].x;
        QnValue *v = qn_input(c.g, "x", F32, &QN_SHAPE(N));
        QnValue *step = GIVE(&c, I64, ((QnShape){ 0 }), 3);
        assert_ok(qn_eval_set(c.e, v, x));
        const double *got = draw(&c, qn_cast_random(c.g, v, step, cases[k].dtype));
        int up = 0;
        for (int i = 0; i < N; i++) {
            assert_true(got[i] == cases[k].below || got[i] == cases[k].above);
            up += got[i] == cases[k].above;
        }
        assert_in_range(up, N / 4 - 160, N / 4 + 160); /* over 4 deviations */
        case_free(&c);
    }
}

static void test_keys_are_checked(void **state)
{
    Case c = case_new();
    QnValue *x = GIVE(&c, F32, QN_SHAPE(2), 1, 2);
    case_want_refused(&c, qn_dropout(c.g, x, x, 0.5), QN_ESHAPE, "i64[] (step)");
    case_free(&c);
}
