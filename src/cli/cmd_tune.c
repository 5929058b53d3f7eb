#include "cli/run_setup.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/term.h"
#include "rt/tune.h"

#include <stdio.h>
#include <string.h>

enum { SET, THREADS, FORCE, JSON };

static const QnOption options[] = {
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…", "change the recipe", 0, 0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: one a core", 1, 1024 },
    [FORCE] = { "--force", 0, QN_OPTION_FLAG, NULL, "measure again what is known", 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a kernel", 0, 0 },
};

static QnStatus print_rows(const QnArgs *a, const char *key, const QnTuneResult *rows, int n)
{
    for (int i = 0; i < n; i++) {
        const QnTuneResult *r = &rows[i];
        if (!a->json) {
            char time[QN_STR_NUMBER];
            printf("  %-24s %10s  %s\n", r->kernel->name,
                   r->refused ? "-" : qn_str_duration(time, (int64_t)r->ns),
                   r->refused ? r->refused : "");
            continue;
        }
        QnStr line = { 0 };
        QnJsonWriter w;
        qn_json_begin(&w, &line, 0);
        qn_json_open_object(&w);
        qn_json_put_string(&w, "node", key);
        qn_json_put_string(&w, "kernel", r->kernel->name);
        qn_json_put_double(&w, "ns", r->ns);
        qn_json_put_double(&w, "error", r->error);
        if (r->refused)
            qn_json_put_string(&w, "refused", r->refused);
        qn_json_close(&w);
        QnStatus st = qn_json_end(&w);
        if (st == QN_OK)
            qn_cli_print_json(&line);
        qn_str_fini(&line);
        QN_TRY(st);
    }
    return QN_OK;
}

/* Each node once; what is known is kept, and what was measured is saved as it comes, so that an
 * interrupted tuning goes on where it was. */
static QnStatus tune_plan(const QnArgs *a, const QnSetup *s, const QnPlan *p, QnChoices *c,
                          const char *path, int *n_measured)
{
    for (int64_t i = 0; p && i < qn_plan_n_steps(p); i++) {
        const QnNode *n = qn_plan_step(p, i).node;
        char key[QN_SELECT_KEY_BYTES];
        QnTuneResult rows[QN_TUNE_MAX_KERNELS];
        int count;
        qn_select_key(s->device, n, key);
        const QnChoice *known = qn_choices_find(c, key);
        if (known && known->ns > 0 && !a->text[FORCE])
            continue;
        QN_TRY(qn_tune_node(s->device, n, c, rows, &count));
        if (count == 0)
            continue;
        if (!a->json)
            printf("%s\n", key);
        QN_TRY(print_rows(a, key, rows, count));
        QN_TRY(qn_choices_write(c, path));
        ++*n_measured;
    }
    return QN_OK;
}

static QnStatus tune(const QnArgs *a, const QnSetup *s)
{
    char path[4096], folder[4096];
    QnChoices *c;
    int n = 0;
    QN_TRY(qn_cli_cache_path("kernels.json", path, sizeof path));
    QN_TRY(qn_cli_cache_path("", folder, sizeof folder));
    QN_TRY(qn_file_make_dirs(folder));
    QN_TRY(qn_choices_read(path, &c));
    QnStatus st = tune_plan(a, s, s->session->train_plan, c, path, &n);
    if (st == QN_OK)
        st = tune_plan(a, s, s->session->eval_plan, c, path, &n);
    if (st == QN_OK && !a->json)
        printf("%d nodes measured; %lld choices in %s\n", n, (long long)c->n, path);
    qn_choices_free(c);
    return st;
}

static int run(QnArgs *a)
{
    QnSetup s;
    char threads[64];
    if (a->text[THREADS] && a->n_many < QN_ARGS_MAX) {
        snprintf(threads, sizeof threads, "train.threads=%lld", (long long)a->number[THREADS]);
        a->many[a->n_many++] = threads;
    }
    if (qn_setup_open(&s, a->positional[0], a->many, a->n_many, "cpu",
                      &(QnSessionOptions){ .training = true }) != QN_OK)
        return qn_cli_fail(a);
    int code = tune(a, &s) == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_tune = {
    .name = "tune",
    .summary = "Measure which kernels run a recipe fastest here, and keep the answers",
    .usage = "RECIPE [options]",
    .examples = "  quern tune recipes/fashion-mnist-demo.yaml\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
