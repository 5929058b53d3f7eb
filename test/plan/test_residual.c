/* What runs took: lines come back, damaged ones are passed over, writers do not disturb each other,
 * the file stays small, and the factor is the one that is documented. labels: threads */
#include "io/temp.h"

#include "base/file.h"
#include "plan/residual.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static QnResidual made(const char *model, double predicted, double measured)
{
    QnResidual r = { .device = "cpu: \"some\", 2 threads",
                     .name = "a recipe",
                     .stack = "quern",
                     .predicted_s = predicted,
                     .measured_s = measured,
                     .time = 1700000000 };
    snprintf(r.model, sizeof r.model, "%s", model);
    return r;
}

static void test_lines_come_back(void **state)
{
    char path[512];
    QnResiduals r;
    snprintf(path, sizeof path, "%s", temp_path("a.jsonl"));
    assert_ok(qn_residuals_read(path, &r));
    assert_int_equal(r.n, 0);
    QnResidual a = made("m1", 0.1, 0.2), b = made("m2", 1 / 3.0, 1e-7);
    assert_ok(qn_residual_append(path, &a));
    assert_ok(qn_residual_append(path, &b));
    assert_ok(qn_residuals_read(path, &r));
    assert_int_equal(r.n, 2);
    assert_int_equal(r.n_corrupt, 0);
    assert_memory_equal(&r.items[0], &a, sizeof a);
    assert_memory_equal(&r.items[1], &b, sizeof b);
    qn_residuals_fini(&r);
}

static void test_damaged_lines_are_passed_over(void **state)
{
    static const char *const bad[] = { "{\n",
                                       "nonsense\n",
                                       "[1, 2]\n",
                                       "{\"device\": \"x\"}\n",
                                       "\xff\xfe\n",
                                       "{\"device\": \"x\", \"model\": \"y\", \"name\": \"z\", "
                                       "\"stack\": \"q\", \"predicted_s\": 0, \"measured_s\": 1, "
                                       "\"time\": 1}\n" };
    char path[512];
    QnResiduals r;
    QnResidual a = made("m", 1, 2);
    snprintf(path, sizeof path, "%s", temp_path("b.jsonl"));
    for (int i = 0; i < QN_COUNT(bad); i++) {
        assert_ok(qn_file_append(path, bad[i], strlen(bad[i])));
        assert_ok(qn_residual_append(path, &a));
    }
    assert_ok(qn_file_append(path, "{\"cut", 5));
    assert_ok(qn_residuals_read(path, &r));
    assert_int_equal(r.n, QN_COUNT(bad));
    assert_int_equal(r.n_corrupt, QN_COUNT(bad) + 1);
    qn_residuals_fini(&r);
}

enum { WRITERS = 8, LINES = 150 };

static void *write_lines(void *path)
{
    QnResidual a = made("m", 1, 2);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(qn_residual_append(path, &a), QN_OK);
    return NULL;
}

static void test_writers_at_once(void **state)
{
    char path[512];
    QnResiduals r;
    pthread_t threads[WRITERS];
    snprintf(path, sizeof path, "%s", temp_path("c.jsonl"));
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, path), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_ok(qn_residuals_read(path, &r));
    assert_int_equal(r.n, WRITERS * LINES); /* not yet at the bound */
    assert_int_equal(r.n_corrupt, 0);
    qn_residuals_fini(&r);
}

/* Beyond the bound the older half goes, line by line, the newest are all there. */
static void test_file_is_bounded(void **state)
{
    char path[512], *text;
    size_t bytes;
    QnResiduals r;
    snprintf(path, sizeof path, "%s", temp_path("d.jsonl"));
    for (int i = 1; i <= 4000; i++) {
        QnResidual a = made("m", 1, i);
        assert_ok(qn_residual_append(path, &a));
    }
    assert_ok(qn_file_read(path, 1 << 24, &text, &bytes));
    assert_true(bytes <= QN_RESIDUAL_LIMIT && bytes > QN_RESIDUAL_LIMIT / 3);
    assert_ok(qn_residuals_read(path, &r));
    assert_int_equal(r.n_corrupt, 0);
    for (int64_t i = 0; i < r.n; i++)
        assert_true(r.items[i].measured_s == (double)(4000 - (r.n - 1 - i)));
    qn_residuals_fini(&r);
    qn_free(text);
}

static double factor(const double *ratios, int n, int64_t *used)
{
    QnResidual items[64] = { made("m", 1, 1) };
    QnResiduals r = { .items = items };
    for (int i = 0; i < n; i++) {
        items[r.n++] = made("m", 2, 2 * ratios[i]);
        items[r.n++] = made("other", 1, 1000);
    }
    return qn_residual_factor(&r, items[0].device, "m", "quern", used);
}

static void test_factor(void **state)
{
    int64_t n;
    assert_true(factor((double[]){ 1 }, 0, &n) == 1 && n == 0);
    /* one run that took twice as long counts a third */
    assert_true(fabs(factor((double[]){ 2 }, 1, &n) - pow(2, 1 / 3.0)) < 1e-12 && n == 1);
    /* of three the middle one, 3 / 5 of it: an odd one out does nothing */
    assert_true(fabs(factor((double[]){ 1.5, 50, 1.5 }, 3, &n) - pow(1.5, 0.6)) < 1e-12);
    /* the newest twenty alone */
    double many[30];
    for (int i = 0; i < 30; i++)
        many[i] = i < 10 ? 100 : 1.2;
    assert_true(fabs(factor(many, 30, &n) - pow(1.2, 20 / 22.0)) < 1e-12 && n == 20);
}

static void test_names_of_steps(void **state)
{
    QnWork a = { .kind = QN_WORK_GEMM, .op = "matmul", .flops = 2e6, .m = 100, .count = 1 },
           b = { .op = "add", .flops = 5, .read = 8, .count = 1 };
    QnWorkHash x = { 0 }, y = { 0 }, z = { 0 };
    char tx[24], ty[24], tz[24];
    qn_work_hash_add(&x, &a);
    qn_work_hash_add(&x, &b);
    qn_work_hash_add(&x, &a);
    a.count = 2; /* together and in another order */
    b.flops *= 1 + 1e-13;
    qn_work_hash_add(&y, &b);
    qn_work_hash_add(&y, &a);
    a.m = 101;
    qn_work_hash_add(&z, &b);
    qn_work_hash_add(&z, &a);
    qn_work_hash_text(&x, tx);
    qn_work_hash_text(&y, ty);
    qn_work_hash_text(&z, tz);
    assert_string_equal(tx, ty);
    assert_string_not_equal(tx, tz);
}
