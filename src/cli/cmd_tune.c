#include "cli/model_dims.h"
#include "cli/onnx_plan.h"
#include "cli/run_setup.h"

#include "base/clock.h"
#include "base/cache.h"
#include "base/file.h"
#include "base/term.h"
#include "rt/tune.h"
#include "train/f8_choice.h"

#include <stdio.h>
#include <string.h>

enum { SET, DEVICE, THREADS, BATCH, DIM, INPUT, FORCE, JSON };

static const QnOption options[] = {
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…", "change the recipe", 0, 0 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", "cpu (default) or opencl:0 …", 0, 0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: one a core", 1, 1024 },
    [BATCH] = { "--batch", 0, QN_OPTION_INT, "N", "ONNX models: first dim of every input", 1,
                1 << 24 },
    [DIM] = QN_CLI_DIM_OPTION,
    [INPUT] = { "--input", 'i', QN_OPTION_MANY, "NAME=FILE",
                "ONNX models: an input that decides shapes or branches, .npy or .pb", 0, 0 },
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
static QnStatus tune_plan(const QnArgs *a, QnDevice *d, const QnPlan *p, QnChoices *c,
                          const char *path, int *n_measured)
{
    for (int64_t i = 0; p && i < qn_plan_n_steps(p); i++) {
        const QnNode *n = qn_plan_step(p, i).node;
        char key[QN_SELECT_KEY_BYTES];
        QnTuneResult rows[QN_TUNE_MAX_KERNELS];
        int count;
        qn_select_key(d, n, key);
        const QnChoice *known = qn_choices_find(c, key);
        if (known && known->ns > 0 && !a->text[FORCE])
            continue;
        QN_TRY(qn_tune_node(d, n, c, rows, &count));
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

static QnStatus print_f8(const QnArgs *a, const QnF8Product *p, const QnF8Time *t)
{
    char bf16[QN_STR_NUMBER], fp8[QN_STR_NUMBER];
    if (!a->json) {
        printf("fp8 of %s, %lldx%lldx%lld\n", p->name, (long long)p->m, (long long)p->k,
               (long long)p->n);
        if (t->is_emulated)
            printf("  the device has no such product: it is in bf16\n");
        else
            printf("  with its gradients %s in bf16, %s in fp8: it is in %s\n",
                   qn_str_duration(bf16, (int64_t)t->bf16_ns),
                   qn_str_duration(fp8, (int64_t)t->fp8_ns), p->by_f8 ? "fp8" : "bf16");
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "layer", p->name);
    qn_json_put_int(&w, "m", p->m);
    qn_json_put_int(&w, "k", p->k);
    qn_json_put_int(&w, "n", p->n);
    qn_json_put_bool(&w, "emulated", t->is_emulated);
    qn_json_put_double(&w, "bf16_ns", t->bf16_ns);
    qn_json_put_double(&w, "fp8_ns", t->fp8_ns);
    qn_json_put_string(&w, "chosen", p->by_f8 ? "fp8" : "bf16");
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

/* Products of a recipe that leaves it to measurement which of them are in 8 bits. */
static QnStatus tune_f8(const QnArgs *a, QnDevice *d, QnF8Choice *f, QnChoices *c, const char *path,
                        int *n_measured)
{
    for (int64_t i = 0; f && i < f->n; i++) {
        QnF8Time t;
        if (f->items[i].is_measured && !a->text[FORCE])
            continue;
        QN_TRY(qn_f8_measure(d, c, &f->items[i], &t));
        QN_TRY(qn_f8_choice_set(d, c, &f->items[i], &t));
        QN_TRY(print_f8(a, &f->items[i], &t));
        QN_TRY(qn_choices_write(c, path));
        ++*n_measured;
    }
    return QN_OK;
}

static QnStatus tune(const QnArgs *a, QnDevice *d, const QnPlan *const *plans, int n_plans,
                     QnF8Choice *f8)
{
    char path[4096], folder[4096];
    QnChoices *c;
    int n = 0;
    QN_TRY(qn_cache_path("kernels.json", path, sizeof path));
    QN_TRY(qn_cache_path("", folder, sizeof folder));
    QN_TRY(qn_file_make_dirs(folder));
    QN_TRY(qn_choices_read(path, &c));
    QnStatus st = QN_OK;
    for (int i = 0; st == QN_OK && i < n_plans; i++)
        st = tune_plan(a, d, plans[i], c, path, &n);
    if (st == QN_OK)
        st = tune_f8(a, d, f8, c, path, &n);
    if (st == QN_OK && !a->json)
        printf("%d nodes measured; %lld choices in %s\n", n, (long long)c->n, path);
    qn_choices_free(c);
    return st;
}

static int tune_model(const QnArgs *a)
{
    QnOnnxPlan p;
    QnOnnxPlanOptions o = { .device = a->text[DEVICE],
                            .threads = a->number[THREADS],
                            .batch = a->number[BATCH],
                            .dim_option = DIM,
                            .input_option = INPUT };
    QnStatus st = qn_onnx_plan_open(a, &o, &p);
    const QnPlan *plan = p.plan;
    if (st == QN_OK)
        st = tune(a, p.device, &plan, 1, NULL);
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, &p.problems);
    qn_onnx_plan_close(&p);
    return code;
}

static int run(QnArgs *a)
{
    QnSetup s;
    char threads[64];
    bool is_model = qn_cli_is_onnx(a->positional[0]);
    if (is_model ? a->text[SET] != NULL : a->text[BATCH] || a->text[DIM] || a->text[INPUT]) {
        qn_fail(QN_EUSAGE, "--set is for recipes; --batch, --dim and --input for ONNX models");
        return qn_cli_fail(a);
    }
    if (is_model)
        return tune_model(a);
    if (a->text[THREADS] && a->n_many < QN_ARGS_MAX) {
        snprintf(threads, sizeof threads, "train.threads=%lld", (long long)a->number[THREADS]);
        a->many[a->n_many++] = threads;
    }
    if (qn_setup_open(&s, a->positional[0], a->many, a->n_many,
                      &(QnDeviceWish){ .name = a->text[DEVICE] ? a->text[DEVICE] : "cpu" },
                      &(QnSessionOptions){ .training = true }) != QN_OK)
        return qn_cli_fail(a);
    const QnPlan *plans[] = { s.session->train_plan, s.session->eval_plan };
    QnStatus st = tune(a, s.device, plans, QN_COUNT(plans), s.session->f8);
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_tune = {
    .name = "tune",
    .summary =
        "Measure which kernels run a recipe or an ONNX model fastest here, and keep the answers",
    .usage = "RECIPE|MODEL.onnx [options]",
    .examples = "  quern tune recipes/fashion-mnist-demo.yaml\n"
                "  quern tune recipes/shakespeare-char.yaml --device opencl:0\n"
                "  quern tune model.onnx --batch 8 --threads 2\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
