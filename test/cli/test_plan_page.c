/* quern plan --html and --explain: the page is well-formed and needs nothing else, its figures are
 * those of --json, the parts of an explanation add up. */
#include "cli/program.h"

#include <ctype.h>
#include <math.h>

/* ---- well-formed XML: tags balance, attributes are quoted and come once, entities are known ----
 */

typedef struct Xml {
    const char *p, *begin;
    char open[64][32];
    int depth;
} Xml;

static void bad(const Xml *x, const char *what)
{
    fail_msg("byte %d: %s: %.60s", (int)(x->p - x->begin), what, x->p);
}

static void entity(const Xml *x, const char *p)
{
    static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;" };
    for (int i = 0; i < QN_COUNT(known); i++)
        if (!strncmp(p, known[i], strlen(known[i])))
            return;
    bad(x, "an entity that XML does not know");
}

static void name(Xml *x, char *out)
{
    int n = 0;
    while ((isalnum((unsigned char)*x->p) || strchr("-:_", *x->p)) && *x->p && n < 31)
        out[n++] = *x->p++;
    out[n] = '\0';
    if (!n)
        bad(x, "expected a name");
}

static void attributes(Xml *x)
{
    char seen[24][32];
    for (int n = 0; isspace((unsigned char)*x->p); n++) {
        x->p += strspn(x->p, " \n");
        if (*x->p == '>' || *x->p == '/')
            return;
        assert_true(n < 24);
        name(x, seen[n]);
        for (int i = 0; i < n; i++)
            if (!strcmp(seen[i], seen[n]))
                bad(x, "an attribute twice");
        if (x->p[0] != '=' || x->p[1] != '"')
            bad(x, "expected =\"");
        for (x->p += 2; *x->p != '"'; x->p++) {
            if (!*x->p || *x->p == '<')
                bad(x, "a quote without its end");
            if (*x->p == '&')
                entity(x, x->p);
        }
        x->p++;
    }
}

static void tag(Xml *x)
{
    char this[32];
    bool ends = x->p[1] == '/';
    x->p += 1 + ends;
    name(x, this);
    attributes(x);
    bool empty = *x->p == '/';
    x->p += empty;
    if (*x->p++ != '>')
        bad(x, "expected >");
    if (ends && (!x->depth || strcmp(x->open[--x->depth], this)))
        bad(x, "a tag is closed that is not open");
    if (!ends && !empty) {
        assert_true(x->depth < 64);
        strcpy(x->open[x->depth++], this);
    }
}

static void assert_xml(const char *text)
{
    Xml x = { .p = text, .begin = text };
    x.p += strlen("<!DOCTYPE html>");
    while (*x.p) {
        if (*x.p == '<')
            tag(&x);
        else if (*x.p++ == '&')
            entity(&x, x.p - 1);
    }
    assert_int_equal(x.depth, 0);
}

static void assert_alone(const char *page)
{
    static const char *const words[] = { "<script", "href=", "src=", "@import", "url(", "<link" };
    for (int i = 0; i < QN_COUNT(words); i++)
        if (strstr(page, words[i]))
            fail_msg("the page has %s", words[i]);
}

/* ---- the figures ---- */

static char page[1 << 20];

static void read_page(const char *file)
{
    slurp(temp_path(file), page, sizeof page);
    assert_true(strlen(page) < sizeof page - 1);
    assert_xml(page);
    assert_alone(page);
}

static double attribute(const char *row, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "data-%s=\"", name);
    const char *at = strstr(row, key), *end = strchr(row, '>');
    if (!at || at > end)
        fail_msg("no %s in %.80s", key, row);
    return strtod(at + strlen(key), NULL);
}

/* Each device of --json has a row with the same numbers. */
static int compare(const char *json)
{
    QnArena *arena = qn_arena_new();
    int n = 0;
    for (const char *line = json; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const QnJson *o, *device, *speed;
        char key[128];
        assert_ok(qn_json_parse(arena, line, strcspn(line, "\n"), &o));
        if (!(device = qn_json_find(o, "device")))
            continue; /* the recommendation */
        snprintf(key, sizeof key, "data-device=\"%s\"", device->string);
        const char *rows = strstr(page, "<h2>All devices"), *row = rows ? strstr(rows, key) : NULL;
        if (!row)
            fail_msg("no row of %s", device->string);
        n++;
        if (!(speed = qn_json_find(o, "throughput")))
            continue;
        assert_true(attribute(row, "throughput") == qn_json_double(speed));
        assert_true(attribute(row, "step-ms") == qn_json_double(qn_json_find(o, "step_ms")));
        assert_true(ceil(attribute(row, "memory-bytes")) ==
                    qn_json_double(qn_json_find(o, "memory_bytes")));
        const char *dot = strstr(strstr(page, "id=\"front-desc\""), key);
        const QnJson *usd = qn_json_find(o, "usd");
        if (dot < rows && usd && qn_json_double(usd) > 0)
            assert_true(fabs(attribute(dot, "usd") / qn_json_double(usd) - 1) < 1e-12);
    }
    qn_arena_free(arena);
    return n;
}

static void test_page_of_all_devices(void **state)
{
    assert_int_equal(run("plan resnet18 --batch 64 --samples 1e6 --json --html all.html"), 0);
    read_page("all.html");
    assert_true(compare(program_out) > 100);
    assert_non_null(strstr(page, "id=\"roofline-title\""));
    assert_non_null(strstr(page, "id=\"memory-title\""));
}

/* ---- lines from dots to their names go through no other name ---- */

/* Whether the line is within the middle of a text that is drawn between begin and end. */
static bool crosses(const char *begin, const char *end, const double line[4])
{
    for (const char *at = begin; (at = strstr(at, "<text x=\"")) && at < end; at++) {
        double x, y;
        char class[32], anchor[8], text[80];
        if (sscanf(at,
                   "<text x=\"%lf\" y=\"%lf\" class=\"%31[^\"]\" text-anchor=\"%7[^\"]\">%79[^<]",
                   &x, &y, class, anchor, text) != 5 ||
            strncmp(class, "name", 4) != 0)
            continue;
        double width = 6 * (double)strlen(text),
               left = anchor[0] == 'e' ? x - width : x - width / 2;
        for (int k = 0; k <= 100; k++) {
            double px = line[0] + (line[2] - line[0]) * k / 100,
                   py = line[1] + (line[3] - line[1]) * k / 100;
            if (px > left && px < left + width && py > y - 8 && py < y)
                return true;
        }
    }
    return false;
}

static int check_lines(const char *id)
{
    int n = 0;
    const char *begin = strstr(page, id), *end = begin ? strstr(begin, "</svg>") : NULL;
    assert_non_null(end);
    for (const char *at = begin; (at = strstr(at, "class=\"leader\"")) && at < end; at++) {
        double line[4];
        assert_int_equal(sscanf(at, "class=\"leader\" d=\"M%lf %lfL%lf %lf", &line[0], &line[1],
                                &line[2], &line[3]),
                         4);
        if (crosses(begin, end, line))
            fail_msg("%s: a line goes through a name: %.60s", id, at);
        n++;
    }
    return n;
}

static void test_lines_cross_no_names(void **state)
{
    assert_int_equal(run("plan resnet50 --samples 1e6 --explain \"RTX 4090\" --html lines.html"),
                     0);
    read_page("lines.html");
    assert_true(check_lines("id=\"front-title\"") > 0);
    assert_true(check_lines("id=\"roofline-title\"") > 0);
}

static void test_pages_of_few_devices(void **state)
{
    assert_int_equal(run("plan gpt2 --gpu \"RTX 4090\" --html one.html"), 0);
    read_page("one.html");
    assert_int_equal(run("plan gpt3_175b --gpu \"T4,RTX 4090:2\" --batch 1 --html none.html"), 2);
    read_page("none.html");
    assert_non_null(strstr(page, "Nothing to recommend"));
    assert_non_null(strstr(page, "RTX 4090:2"));
    assert_int_equal(run("plan resnet18 --gpu T4 --explain \"RTX 4090:8\" --html two.html"), 0);
    read_page("two.html");
    assert_non_null(strstr(page, "under the roof of RTX 4090:8"));
}

static void test_where_the_page_goes(void **state)
{
    assert_int_equal(run("plan resnet18 --gpu T4 --html ."), 2);
    assert_non_null(strstr(program_err, "is a folder"));
    assert_int_equal(run("plan resnet18 --gpu T4 --html /dev/null"), 2);
    assert_int_equal(run("plan resnet18 --gpu T4 --html ''"), 2);
    assert_int_equal(run("plan resnet18 --gpu T4 --html no/such/folder.html"), 2);
    assert_int_equal(run("plan resnet18 --explain nonsense"), 2);
}

/* ---- the explanation ---- */

static double number(const QnJson *o, const char *key)
{
    const QnJson *v;
    assert_ok(qn_json_need(o, key, QN_JSON_DOUBLE, &v));
    return qn_json_double(v);
}

static double sum(const QnJson *list, const char *key)
{
    double all = 0;
    for (int64_t i = 0; i < list->n; i++)
        all += number(&list->items[i], key);
    return all;
}

static void test_parts_add_up(void **state)
{
    static const char *const asked[] = { "resnet50 --explain T4", "bert_base --explain \"L4:8\"",
                                         "gpt2 --task infer --explain \"RTX 3090\"" };
    for (int i = 0; i < QN_COUNT(asked); i++) {
        char args[256];
        const QnJson *o;
        QnArena *arena = qn_arena_new();
        snprintf(args, sizeof args, "plan %s --json", asked[i]);
        assert_int_equal(run(args), 0);
        assert_ok(qn_json_parse(arena, program_out, strlen(program_out), &o));
        double step = number(o, "step_ms"), parts = sum(qn_json_find(o, "kinds"), "ms") +
                                                    number(o, "communication_ms") +
                                                    number(o, "between_kernels_ms");
        if (!(fabs(parts / step - 1) < 1e-9))
            fail_msg("%s: parts %g ms, step %g ms", asked[i], parts, step);
        const QnJson *memory = qn_json_find(o, "memory"), *what = qn_json_find(o, "what_if");
        double bytes = 0;
        for (int64_t k = 0; k < memory->n; k++)
            bytes += qn_json_double(&memory->items[k]);
        assert_true(fabs(bytes / number(o, "memory_bytes") - 1) < 1e-9);
        assert_true(what->n >= 5);
        assert_true(qn_json_find(o, "operators")->n == 10);
        qn_arena_free(arena);
    }
}

/* A batch that is asked for as a change is what asking for it outright gives. */
static void test_a_change_is_priced_as_asked(void **state)
{
    QnArena *arena = qn_arena_new();
    const QnJson *o, *twice;
    assert_int_equal(run("plan resnet50 --batch 32 --explain T4 --json"), 0);
    assert_ok(qn_json_parse(arena, program_out, strlen(program_out), &o));
    double speed = 0;
    const QnJson *what = qn_json_find(o, "what_if");
    for (int64_t i = 0; i < what->n; i++)
        if (!strcmp(qn_json_find(&what->items[i], "what")->string, "batch 64"))
            speed = number(&what->items[i], "throughput");
    assert_int_equal(run("plan resnet50 --batch 64 --explain T4 --json"), 0);
    assert_ok(qn_json_parse(arena, program_out, strlen(program_out), &twice));
    assert_true(speed > 0 && speed == number(twice, "throughput"));
    qn_arena_free(arena);
}

static void test_bars(void **state)
{
    assert_int_equal(run("plan resnet18 --gpu \"T4,L4\" --chart"), 0);
    assert_non_null(strstr(program_out, "images for a USD"));
    assert_non_null(strstr(program_out, "####"));
    assert_int_equal(run_after("env LC_ALL=C.UTF-8", "plan resnet18 --gpu \"T4,L4\" --chart"), 0);
    assert_non_null(strstr(program_out, "█"));
    assert_int_equal(run("plan resnet18 --gpu \"T4,L4\""), 0);
    assert_null(strstr(program_out, "images for a USD"));
}
