/* The record of a run: what a resumed run keeps, drops and appends. labels: train */
#include "io/temp.h"

#include "base/mem.h"
#include "train/metrics.h"

#include <math.h>

static char run_folder[512];

static int setup(void **state)
{
    snprintf(run_folder, sizeof run_folder, "%s", temp_path("run"));
    mkdir(run_folder, 0777);
    unlink(temp_path("run/metrics.jsonl"));
    return 0;
}

static char *text_of(void)
{
    char *text = calloc(1, 65536);
    FILE *f = fopen(temp_path("run/metrics.jsonl"), "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, 65535, f);
    (void)n;
    fclose(f);
    return text;
}

static QnMetric train_at(int64_t update)
{
    return (QnMetric){ .update = update,
                       .epoch = (double)update / 3,
                       .loss = 1 / (double)update + 1e-9,
                       .lr = 0.1 / (double)update,
                       .value = NAN };
}

/* Six records of training, with an evaluation after the fourth. */
static void write_six(void)
{
    QnMetrics m;
    assert_ok(qn_metrics_open(&m, run_folder, 0));
    for (int64_t u = 1; u <= 6; u++) {
        QnMetric x = train_at(u), e = { .update = u, .loss = 0.25, .value = 1.0 / 3, .eval = true };
        assert_ok(qn_metrics_add(&m, &x));
        if (u == 4)
            assert_ok(qn_metrics_add(&m, &e));
    }
    qn_metrics_close(&m);
}

static void test_new_run_starts_empty(void **state)
{
    QnMetrics m;
    write_six();
    assert_ok(qn_metrics_open(&m, run_folder, 0));
    assert_int_equal(m.n, 0);
    qn_metrics_close(&m);
    char *text = text_of();
    assert_string_equal(text, "");
    free(text);
}

/* Dropped and added again, the file has the same bytes. */
static void test_resume_in_the_middle(void **state)
{
    QnMetrics m;
    write_six();
    char *whole = text_of();
    assert_ok(qn_metrics_open(&m, run_folder, 4));
    assert_int_equal(m.n, 5); /* the evaluation at 4 stays: it came before the checkpoint */
    assert_true(m.items[4].eval && m.items[4].value == 1.0 / 3);
    assert_true(m.items[2].loss == 1.0 / 3 + 1e-9 && isnan(m.items[2].value));
    for (int64_t u = 5; u <= 6; u++) {
        QnMetric x = train_at(u);
        assert_ok(qn_metrics_add(&m, &x));
    }
    qn_metrics_close(&m);
    char *again = text_of();
    assert_string_equal(again, whole);
    free(again);
    free(whole);
}

static void assert_resumes_with(const char *text, int64_t update, int64_t n)
{
    QnMetrics m;
    temp_file("run/metrics.jsonl", text, strlen(text));
    assert_ok(qn_metrics_open(&m, run_folder, update));
    assert_int_equal(m.n, n);
    qn_metrics_close(&m);
    assert_ok(qn_metrics_open(&m, run_folder, update)); /* the file was cut as well */
    assert_int_equal(m.n, n);
    qn_metrics_close(&m);
}

static void test_torn_and_odd_lines(void **state)
{
    const char *one = "{\"kind\": \"train\", \"update\": 1, \"epoch\": 0.1, \"loss\": 1.5, "
                      "\"lr\": 0.1}\n";
    char text[2048];
    snprintf(text, sizeof text, "%s{\"kind\": \"train\", \"upd", one);
    assert_resumes_with(text, 9, 1);
    snprintf(text, sizeof text, "%s%.*s", one, (int)strlen(one) - 1, one); /* no line end */
    assert_resumes_with(text, 9, 1);
    snprintf(text, sizeof text, "%s\n%s", one, one);
    assert_resumes_with(text, 9, 1);
    snprintf(text, sizeof text, "%s{\"kind\": \"train\"}\n", one); /* no update */
    assert_resumes_with(text, 9, 1);
    snprintf(text, sizeof text, "%s{\"update\": 1e300}\n", one);
    assert_resumes_with(text, 9, 1);
    snprintf(text, sizeof text, "%s[3]\n", one);
    assert_resumes_with(text, 9, 1);
    assert_resumes_with("", 9, 0);
    assert_resumes_with("nothing of ours\n", 9, 0);
}

static void test_resume_without_file(void **state)
{
    QnMetrics m;
    assert_ok(qn_metrics_open(&m, run_folder, 3));
    assert_int_equal(m.n, 0);
    qn_metrics_close(&m);
}

static void test_chart(void **state)
{
    QnMetrics m;
    QnChart chart;
    QnChartSeries series[2];
    void *buffer;
    write_six();
    assert_ok(qn_metrics_open(&m, run_folder, 6));
    assert_ok(qn_metrics_chart(&m, &chart, series, &buffer));
    assert_int_equal(series[0].n, 6);
    assert_int_equal(series[1].n, 1);
    assert_true(series[1].x[0] == 4 && series[1].y[0] == 0.25);
    assert_true(series[0].x[5] == 6);
    qn_free(buffer);
    qn_metrics_close(&m);
}
