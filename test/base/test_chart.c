#include "test.h"

#include "base/chart.h"
#include "base/svg.h"

#include <math.h>

static const double xs[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static const double falling[] = { 2.3, 1.1, 0.8, 0.6, 0.5, 0.45, 0.42, 0.40 };
static const double holes[] = { 1, NAN, 1, INFINITY, -INFINITY, 1, 0, -1 };

static const QnChartSeries two[] = { { "train", xs, falling, 8 }, { "a<b>&\"", xs, holes, 8 } };

static void check_scale(double low, double high, int max, double first, double step, int n,
                        int decimals)
{
    QnChartScale s;
    qn_chart_scale(low, high, max, &s);
    assert_true(fabs(s.first - first) < 1e-9 * step);
    assert_true(fabs(s.step - step) < 1e-9 * step);
    assert_int_equal(s.n, n);
    assert_int_equal(s.decimals, decimals);
}

static void test_ticks_are_round(void **state)
{
    check_scale(0, 10, 6, 0, 2, 6, 0);
    check_scale(0.4, 2.3, 5, 0.5, 0.5, 4, 1);
    check_scale(0.91, 0.97, 5, 0.92, 0.02, 3, 2);
    check_scale(-3, 3, 4, -2, 2, 3, 0);
    check_scale(0, 60000, 7, 0, 10000, 7, 0);
    QnChartScale s;
    qn_chart_scale(5, 5, 5, &s); /* a single value gets room around it */
    assert_true(s.low < 5 && s.high > 5 && s.n >= 2);
    qn_chart_scale(0, 0, 5, &s);
    assert_true(s.low < 0 && s.high > 0 && s.n >= 2);
    qn_chart_scale(0, 5e-324, 5, &s);
    assert_true(s.step > 0 && s.n >= 1 && s.n < 10);
    qn_chart_scale(-9e299, 9e299, 5, &s);
    assert_true(isfinite(s.step) && s.n >= 1 && s.n < 10);
}

static int64_t widest_line(const char *text, int *lines)
{
    int64_t most = 0;
    *lines = 0;
    while (*text) {
        char line[512];
        size_t n = strcspn(text, "\n");
        memcpy(line, text, n);
        line[n] = '\0';
        if (qn_str_columns(line) > most)
            most = qn_str_columns(line);
        ++*lines;
        text += n + (text[n] == '\n');
    }
    return most;
}

static void test_lines_in_letters(void **state)
{
    QnStr out = { 0 };
    QnChart chart = { .title = "loss", .x_label = "epoch", .series = two, .n_series = 1 };
    qn_chart_lines(&out, &chart, &(QnChartText){ .width = 40, .height = 6 });
    assert_string_equal(qn_str_text(&out), "loss   * train\n"
                                           "          |*\n"
                                           "        2 + *\n"
                                           "          |  **\n"
                                           "        1 +    **\n"
                                           "          |      *******\n"
                                           "          |             ****************\n"
                                           "          +-----------------------------\n"
                                           "          0           epoch           7\n");
    qn_str_fini(&out);
}

static void test_lines_fit_in_unicode_and_colour(void **state)
{
    QnChart chart = { .title = "loss", .series = two, .n_series = 2 };
    for (int width = 5; width < 120; width += 19) {
        QnStr out = { 0 };
        int lines;
        qn_chart_lines(&out, &chart,
                       &(QnChartText){ .width = width, .height = 8, .unicode = true });
        int64_t most = widest_line(qn_str_text(&out), &lines);
        assert_true(most <= (width > 25 ? width : 25));
        assert_int_equal(lines, 1 + 8 + 2);
        assert_contains(qn_str_text(&out), "⣀");
        assert_null(strchr(qn_str_text(&out), '\033'));
        qn_str_clear(&out);
        qn_chart_lines(
            &out, &chart,
            &(QnChartText){ .width = width, .height = 8, .unicode = true, .color = true });
        assert_contains(qn_str_text(&out), "\033[36m");
        assert_contains(qn_str_text(&out), "\033[33m");
        qn_str_fini(&out);
    }
}

static void test_nothing_to_draw(void **state)
{
    static const double none[] = { NAN, INFINITY, -1, 0, 1e308, 0, -1e308, NAN };
    QnChartSeries series = { "none", xs, none, 8 };
    QnChart chart = { .series = &series, .n_series = 1, .log_y = true };
    QnStr out = { 0 };
    series.n = 4;
    qn_chart_lines(&out, &chart, &(QnChartText){ .width = 40, .height = 6 });
    assert_contains(qn_str_text(&out), "(no points)");
    qn_str_clear(&out);
    qn_svg_chart(&out, &chart);
    assert_contains(qn_str_text(&out), "no points");
    qn_str_clear(&out);
    series.n = 8;
    chart.log_y = false;
    qn_chart_lines(&out, &chart, &(QnChartText){ .width = 40, .height = 6 });
    assert_int_equal(out.st, QN_OK);
    qn_str_fini(&out);
}

static void test_bars(void **state)
{
    static const QnChartBar bars[] = { { "Shirt", 0.5, NULL },
                                       { "Bag", 1, "100 %" },
                                       { "Ankle boot", NAN, NULL } };
    QnStr out = { 0 };
    qn_chart_bars(&out, bars, 3, 0, &(QnChartText){ .width = 32 });
    assert_string_equal(qn_str_text(&out), "Shirt       #####       0.5\n"
                                           "Bag         ##########  100 %\n"
                                           "Ankle boot              nan\n");
    qn_str_fini(&out);
}

static int count(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)); text += strlen(words))
        n++;
    return n;
}

static void test_svg(void **state)
{
    QnStr out = { 0 };
    QnChart chart = { .title = "Loss & accuracy",
                      .x_label = "epoch",
                      .y_label = "loss",
                      .series = two,
                      .n_series = 2 };
    qn_svg_chart(&out, &chart);
    const char *svg = qn_str_text(&out);
    assert_memory_equal(svg, "<svg xmlns=", 11);
    assert_string_equal(svg + out.n - 7, "</svg>\n");
    assert_contains(svg, "Loss &amp; accuracy");
    assert_contains(svg, "a&lt;b&gt;&amp;&quot;");
    assert_contains(svg, ">epoch</text>");
    assert_int_equal(count(svg, "stroke-linejoin"), 2);
    assert_int_equal(count(svg, "href"), 0);
    assert_int_equal(count(svg, "nan") + count(svg, "inf"), 0);
    /* The second series breaks at its three missing points: three strokes. */
    const char *second = strstr(strstr(svg, "stroke=\"#d55e00\" d=\""), "d=\"");
    char path[256];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(second + 3, "\""), second + 3);
    assert_int_equal(count(path, "M"), 3);
    assert_int_equal(count(path, "L"), 2);
    assert_int_equal(count(svg, "<text"), count(svg, "</text>"));
    assert_int_equal(count(svg, "<g"), count(svg, "</g>"));
    qn_str_fini(&out);
}

static void test_log_axis(void **state)
{
    static const double y[] = { 100, 10, 1, 0.1 };
    QnChartSeries series = { "x", xs, y, 4 };
    QnChart chart = { .series = &series, .n_series = 1, .log_y = true };
    QnStr out = { 0 };
    qn_svg_chart(&out, &chart);
    assert_contains(qn_str_text(&out), ">100</text>");
    assert_contains(qn_str_text(&out), ">0.1</text>");
    qn_str_fini(&out);
}
