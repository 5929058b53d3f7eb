/* Each test/pass/golden/X.qir: a line "pass NAMES", options, a graph, "----", the graph that the
 * passes make of it. QN_UPDATE_GOLDEN=1 rewrites what is expected. */
#include "test.h"
#include "base/file.h"
#include "base/mem.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"
#include "pass/pipeline.h"

#include <dirent.h>

static const char folder[] = "test/pass/golden";

typedef struct Case {
    const char *file;
    char *text, *expected; /* expected stands in text, after its line "----" */
    char passes[200];
    QnPipelineOptions options;
} Case;

/* The value of the header line that starts so, empty if there is none. */
static void header(const Case *c, const char *key, char out[200])
{
    char want[40];
    snprintf(want, sizeof want, "# %s: ", key);
    const char *p = strstr(c->text, want);
    out[0] = '\0';
    if (p && p < c->expected)
        snprintf(out, 200, "%.*s", (int)strcspn(p + strlen(want), "\n"), p + strlen(want));
}

static bool prefers(void *ctx, const QnNode *one, const QnNode *part)
{
    (void)ctx, (void)one, (void)part;
    return true;
}

static bool always(void *ctx, const QnNode *n)
{
    return true;
}

static void read_case(Case *c, const char *file)
{
    char path[300], value[200];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    *c = (Case){ .file = file, .options = { .level = QN_O2 } };
    assert_ok(qn_file_read(path, 1 << 20, &c->text, &n));
    char *line = strstr(c->text, "----\n");
    if (!line)
        fail_msg("%s: no line ----", path);
    c->expected = line + 5;
    header(c, "pass", c->passes);
    header(c, "fast", value);
    c->options.fast_math = value[0] != '\0';
    header(c, "keep", value);
    c->options.keep_inputs = value[0] != '\0';
    header(c, "budget", value);
    c->options.memory_budget_bytes = atoll(value);
    header(c, "tuned", value);
    c->options.tuned = value[0] ? always : NULL;
    header(c, "kernels", value);
    c->options.keep = value[0] ? always : NULL;
    c->options.prefers = value[0] ? prefers : NULL;
    assert_true(c->passes[0]);
}

static void run_passes(const Case *c, QnGraph *g)
{
    char names[200];
    memcpy(names, c->passes, sizeof names);
    for (char *p = strtok(names, " "); p; p = strtok(NULL, " ")) {
        const QnPassEntry *e = qn_pipeline_find(p);
        if (!e)
            fail_msg("%s: no pass %s", c->file, p);
        assert_ok(e->run(g, &c->options));
        if (qn_graph_verify(g) != QN_OK)
            fail_msg("%s after %s: %s", c->file, p, qn_error_last()->text);
    }
}

static void update(const Case *c, const QnStr *got)
{
    char path[300];
    QnStr all = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, c->file);
    qn_str_add_bytes(&all, c->text, (size_t)(c->expected - c->text));
    qn_str_add(&all, got->s);
    assert_ok(qn_file_write_atomic(path, all.s, all.n));
    qn_str_fini(&all);
}

static bool run_case(const char *file)
{
    Case c;
    QnGraph *g;
    QnStr got = { 0 };
    read_case(&c, file);
    if (qn_graph_parse(c.text, (size_t)(c.expected - 5 - c.text), qn_op_find, &g) != QN_OK)
        fail_msg("%s: %s", file, qn_error_last()->text);
    run_passes(&c, g);
    assert_ok(qn_graph_print(g, &got));
    bool same = !strcmp(qn_str_text(&got), c.expected);
    if (!same && getenv("QN_UPDATE_GOLDEN"))
        update(&c, &got);
    else if (!same)
        print_error("%s: expected\n%s\ngot\n%s\n", file, c.expected, qn_str_text(&got));
    qn_str_fini(&got);
    qn_graph_free(g);
    qn_free(c.text);
    return same || getenv("QN_UPDATE_GOLDEN");
}

static void test_golden_files(void **state)
{
    DIR *dir = opendir(folder);
    int count = 0, wrong = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strstr(e->d_name, ".qir"))
            continue;
        count++;
        wrong += !run_case(e->d_name);
    }
    closedir(dir);
    assert_true(count >= 9);
    assert_int_equal(wrong, 0);
}

static void test_every_pass_has_a_golden_file(void **state)
{
    int n;
    const QnPassEntry *e = qn_pipeline_passes(&n);
    for (int i = 0; i < n; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s.qir", folder, e[i].name);
        if (!qn_file_exists(path))
            fail_msg("no %s", path);
    }
}
