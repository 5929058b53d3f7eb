#include "cli/report.h"

#include "base/file.h"
#include "cli/far_memory.h"
#include "cli/host_steps.h"
#include "rt/tune.h"
#include "train/f8_choice.h"
#include "train/model_file.h"
#include "train/pretrained.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    OUT,
    SET,
    RESUME,
    INIT,
    PARTIAL,
    DEVICE,
    DEVICE_MEMORY,
    THREADS,
    SEED,
    PRICE,
    NO_RESIDUALS,
    JSON
};

static const QnOption options[] = {
    [OUT] = { "--out", 'o', QN_OPTION_TEXT, "DIR", "folder of the run; default runs/NAME", 0, 0 },
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…", "change the recipe, e.g. train.epochs=2", 0,
              0 },
    [RESUME] = { "--resume", 0, QN_OPTION_FLAG, NULL, "go on from the newest checkpoint", 0, 0 },
    [INIT] = { "--init", 0, QN_OPTION_TEXT, "WEIGHTS",
               "begin with the weights of a file, checkpoint or run", 0, 0 },
    [PARTIAL] = { "--init-partial", 0, QN_OPTION_FLAG, NULL,
                  "take what fits of them, e.g. for a new head", 0, 0 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
    [DEVICE_MEMORY] = { "--device-memory", 0, QN_OPTION_TEXT, "BYTES", QN_DEVICE_MEMORY_HELP, 0,
                        0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: one a core", 1, 1024 },
    [SEED] = { "--seed", 0, QN_OPTION_INT, "S", "seed; default: the recipe's", 0, INT64_MAX },
    [PRICE] = { "--price", 0, QN_OPTION_TEXT, "USD",
                "what an hour of the machine costs: money so far and to go is shown", 0, 0 },
    [NO_RESIDUALS] = { "--no-residuals", 0, QN_OPTION_FLAG, NULL,
                       "do not predict by earlier runs, and do not keep this one for that", 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a line on stdout", 0, 0 },
};

/* The only thing that a signal handler can reach; the loop asks it between updates. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    if (interrupted) { /* a second time: at once, by the default action */
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = 1;
}

static bool stop(void *ctx)
{
    (void)ctx;
    return interrupted != 0;
}

/* --threads and --seed are settings of the recipe, so that it is stored as it ran. */
static QnStatus collect_settings(QnArgs *a, char extra[2][64])
{
    for (int k = 0; k < 2; k++) {
        int option = k ? SEED : THREADS;
        if (!a->text[option])
            continue;
        if (a->n_many == QN_ARGS_MAX)
            return qn_fail(QN_EUSAGE, "--set: too many settings");
        snprintf(extra[k], sizeof extra[k], "train.%s=%lld", k ? "seed" : "threads",
                 (long long)a->number[option]);
        a->many[a->n_many++] = extra[k];
    }
    return QN_OK;
}

static QnStatus store_form(const QnSetup *s, const char *run)
{
    char path[4096];
    QnForm form;
    snprintf(path, sizeof path, "%.4000s/data.json", run);
    QN_TRY(qn_form_of(&s->data, &form));
    QnStatus st = qn_form_write(&form, path);
    qn_form_fini(&form);
    return st;
}

/* The recipe as it runs, with absolute paths, so that the run's folder stands alone. */
static QnStatus store_recipe(const QnSetup *s, const char *run)
{
    char path[4096], *text;
    snprintf(path, sizeof path, "%.4000s/recipe.yaml", run);
    QN_TRY(qn_recipe_print(s->recipe, &text));
    QnStatus st = qn_file_write_atomic(path, text, strlen(text));
    qn_free(text);
    if (st == QN_OK)
        st = store_form(s, run);
    if (st == QN_OK && s->data.vocab) {
        snprintf(path, sizeof path, "%.4000s/vocab.json", run);
        st = qn_vocab_save(s->data.vocab, path);
    }
    return st;
}

/* Model and file may differ in many places: all are named, before the one line of error. */
static QnStatus load_weights(const QnArgs *a, const QnSetup *s)
{
    QnPretrained p;
    const char *path = a->text[INIT];
    bool partial = a->text[PARTIAL] != NULL;
    QnStatus st = qn_pretrained_load(s->session, path, partial, &p);
    if (st != QN_OK && p.missing + p.unexpected + p.misshapen > 1)
        fputs(qn_str_text(&p.text), stderr);
    if (st == QN_OK) {
        qn_log_at(&a->log, QN_LOG_INFO, "%s (%s): %lld tensor%s taken", path, p.format,
                  (long long)p.taken, p.taken == 1 ? "" : "s");
        if (p.text.n)
            fprintf(stderr, "%sstay as they start: %lld; not used: %lld\n", qn_str_text(&p.text),
                    (long long)(p.missing + p.misshapen), (long long)p.unexpected);
    }
    qn_pretrained_fini(&p);
    return st;
}

/* What the run begins with, unless it goes on from a checkpoint. */
static QnStatus begin_with(const QnArgs *a, const QnSetup *s, const char *folder)
{
    if (a->text[PARTIAL] && !a->text[INIT])
        return qn_fail(QN_EUSAGE, "--init-partial needs --init WEIGHTS");
    return a->text[INIT] && !qn_checkpoint_exists(folder) ? load_weights(a, s) : QN_OK;
}

/* Two processes that train in one folder would ruin each other's files. The lock goes with the
 * process, however it ends. */
static QnStatus lock_folder(const char *run, int *fd)
{
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/.lock", run);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return qn_fail(QN_EIO, "%s: cannot open: %s", path, strerror(errno));
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return QN_OK; /* a file system without locks must do without */
    close(*fd);
    *fd = -1;
    return qn_fail(QN_EUSAGE, "%s: another process is training there; choose another folder by -o",
                   run);
}

/* Files that a killed process had not finished. */
static void remove_unfinished(const char *run)
{
    char path[4096];
    DIR *d = opendir(run);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strstr(e->d_name, ".tmp-");
        static const char *const ours[] = { "recipe.yaml", "metrics.jsonl", "kernels.json",
                                            "vocab.json",  "summary.json",  "loss.svg",
                                            "data.json",   QN_RUN_MODEL,    QN_RUN_MODEL ".data" };
        size_t n = dot ? (size_t)(dot - e->d_name) : 0;
        for (int i = 0; dot && i < QN_COUNT(ours); i++) {
            if (strlen(ours[i]) != n || strncmp(ours[i], e->d_name, n))
                continue;
            snprintf(path, sizeof path, "%.3800s/%.255s", run, e->d_name);
            unlink(path);
        }
    }
    if (d)
        closedir(d);
}

static QnStatus prepare_folder(const char *run, int *lock)
{
    QN_TRY(qn_file_make_dirs(run));
    QN_TRY(lock_folder(run, lock));
    remove_unfinished(run);
    return QN_OK;
}

static void print_outcome(QnReport *r, const QnTrainResult *t)
{
    char time[QN_STR_NUMBER], rate[QN_STR_NUMBER];
    double value;
    const char *metric = qn_report_metric(r->setup->recipe, &t->last, &value);
    fprintf(r->out, "%s after %lld updates in %s",
            t->interrupted     ? "interrupted"
            : t->stopped_early ? "stopped early"
                               : "trained",
            (long long)t->updates, qn_str_duration(time, (int64_t)(t->train_seconds * 1e9)));
    if (t->samples_per_second > 0)
        fprintf(r->out, " (%s samples/s)", qn_str_si(rate, t->samples_per_second));
    fputs(t->interrupted ? "; the same command with --resume goes on\n" : "\n", r->out);
    if (t->last.samples)
        fprintf(r->out, "%s %.4f, loss %.4f, on %lld test %s\n", metric, value, t->last.loss,
                (long long)t->last.samples, qn_report_counted(r->setup->recipe));
    if (t->n_skipped)
        fprintf(r->out, "%lld broken samples were passed over\n", (long long)t->n_skipped);
}

static QnStatus report(QnReport *r, const char *run, const QnTrainResult *t, const QnMetrics *m)
{
    QnStr json = { 0 }, mix = { 0 };
    char path[4096];
    if (r->started)
        qn_term_progress_end(&r->progress);
    if (t->last.confusion)
        qn_report_classes(r->out, r->setup, &t->last);
    QN_TRY(qn_report_chart(r, run, m));
    print_outcome(r, t);
    qn_run_forecast_end(&r->forecast, t, qn_report_elapsed_s(r), r->out);
    qn_run_forecast_keep(&r->forecast, r->setup, t, &r->args->log);
    qn_report_memory(r);
    qn_auto_costs(r->setup->session, r->costs);
    if (qn_auto_report(r->setup->session, r->costs, &mix) == QN_OK)
        fputs(qn_str_text(&mix), r->out);
    qn_str_fini(&mix);
    fflush(r->out);
    QnStatus st = qn_report_summary(r, run, t, &json);
    snprintf(path, sizeof path, "%.4000s/summary.json", run);
    if (st == QN_OK)
        st = qn_file_write_atomic(path, qn_str_text(&json), json.n);
    if (st == QN_OK)
        qn_cli_print_json(&json);
    qn_str_fini(&json);
    return st;
}

/* A model of an ONNX file is copied when a run begins: what becomes of the file after that is
 * nothing to the run. */
static QnStatus store_model(const QnReport *r, int64_t update)
{
    char path[4096], line[4096];
    const QnModelFile *f = r->setup->session->file;
    if (!f || update > 0)
        return QN_OK;
    for (const char *p = qn_str_text(&f->notes); *p; p += strcspn(p, "\n"), p += *p != '\0') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
        qn_log_at(&r->args->log, QN_LOG_INFO, "%s", line);
    }
    snprintf(path, sizeof path, "%.4000s/" QN_RUN_MODEL, r->run);
    return qn_model_file_copy(f, path);
}

/* The folder is written to once it is certain that the run goes on as it began. */
static QnStatus begin(void *ctx, int64_t update)
{
    QnReport *r = ctx;
    char kernels[4096];
    QN_TRY(store_model(r, update));
    QN_TRY(store_recipe(r->setup, r->run));
    snprintf(kernels, sizeof kernels, "%.4000s/kernels.json", r->run);
    QN_TRY(qn_setup_record(r->setup, kernels));
    if (update == 0 && r->args->text[RESUME])
        qn_log_at(&r->args->log, QN_LOG_WARN, "%s holds no checkpoint: beginning anew", r->run);
    qn_report_start(r, update);
    return QN_OK;
}

static void tell_f8(const QnArgs *a, const QnSetup *s)
{
    char text[256];
    if (!s->session->f8)
        return;
    qn_f8_choice_tell(s->session->f8, text, sizeof text);
    qn_log_at(&a->log, QN_LOG_INFO, "%s", text);
}

static QnStatus train(QnArgs *a, QnSetup *s, const char *run, bool *was_interrupted)
{
    QnMetrics metrics = { 0 };
    QnTrainResult result = { 0 };
    QnReport r;
    bool resume = a->text[RESUME] != NULL;
    double price;
    QN_TRY(qn_cli_number(a, PRICE, -1, &price));
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    qn_host_steps_warn(s->session->train_plan, s->device, &a->log);
    qn_far_warn(s, &a->log);
    tell_f8(a, s);
    qn_report_init(&r, a, s, run);
    qn_run_forecast_init(&r.forecast, s, price, !a->text[NO_RESIDUALS], &a->log);
    QnTrainEvents events = qn_report_events(&r);
    events.begin = begin;
    events.stop = stop;
    QnStatus st =
        qn_train(s->session, &s->data, run, resume, a->start_ns, &events, &metrics, &result);
    if (st == QN_OK)
        st = report(&r, run, &result, &metrics);
    else if (r.started)
        qn_term_progress_end(&r.progress);
    *was_interrupted = result.interrupted;
    qn_evaluation_fini(&result.last);
    qn_metrics_close(&metrics);
    return st;
}

/* The run's folder, by -o or the recipe's name. */
static QnStatus folder_of_run(const QnArgs *a, char *out, size_t bytes)
{
    QnRecipe *r;
    if (a->text[OUT]) {
        if (!a->text[OUT][0])
            return qn_fail(QN_EUSAGE, "--out is empty: name a folder, such as runs/first");
        snprintf(out, bytes, "%s", a->text[OUT]);
        return QN_OK;
    }
    QN_TRY(qn_recipe_open(a->positional[0], a->many, a->n_many, &r));
    snprintf(out, bytes, "runs/%s", r->name);
    qn_recipe_free(r);
    return QN_OK;
}

/* A resumed run repeats the kernels that it began with, whatever has been measured since. */
static QnStatus choices_of_run(const QnArgs *a, const char *run, QnChoices **out)
{
    char path[4096];
    *out = NULL;
    snprintf(path, sizeof path, "%.4000s/kernels.json", run);
    return a->text[RESUME] && qn_file_exists(path) ? qn_choices_read(path, out) : QN_OK;
}

/* A resumed run goes on with its copy of an ONNX model. */
static const char *model_of_run(const QnArgs *a, const char *run, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.4000s/" QN_RUN_MODEL, run);
    return a->text[RESUME] && qn_checkpoint_exists(run) && qn_file_exists(path) ? path : NULL;
}

static int run(QnArgs *a)
{
    char extra[2][64], folder[4096], model[4096];
    QnSetup s;
    QnChoices *choices = NULL;
    bool was_interrupted = false;
    double price;
    QnDeviceWish wish = { .name = a->text[DEVICE], .log = &a->log };
    QnStatus st = qn_cli_number(a, PRICE, -1, &price); /* before anything is touched */
    if (st == QN_OK)
        st = qn_cli_bytes(a, DEVICE_MEMORY, &wish.memory_bytes);
    if (st == QN_OK)
        st = collect_settings(a, extra);
    if (st == QN_OK)
        st = folder_of_run(a, folder, sizeof folder);
    if (st == QN_OK && !a->text[RESUME] && qn_checkpoint_exists(folder))
        st = qn_fail(QN_EUSAGE,
                     "%s holds a run already: give --resume to go on with it, or another folder "
                     "by -o",
                     folder);
    if (st == QN_OK)
        st = choices_of_run(a, folder, &choices);
    if (st == QN_OK)
        st = qn_setup_open(
            &s, a->positional[0], a->many, a->n_many, &wish,
            &(QnSessionOptions){ .training = true,
                                 .choices = choices,
                                 .onnx = model_of_run(a, folder, model, sizeof model) });
    if (st != QN_OK) {
        qn_choices_free(choices);
        return qn_cli_fail(a);
    }
    int lock = -1;
    st = qn_setup_check_computes(&s);
    if (st == QN_OK && qn_checkpoint_exists(folder)) /* goes on, and with the data it knows */
        st = qn_setup_check_data(&s, folder);
    if (st == QN_OK)
        st = begin_with(a, &s, folder);
    if (st == QN_OK)
        st = prepare_folder(folder, &lock);
    if (st == QN_OK)
        st = train(a, &s, folder, &was_interrupted);
    int code = st != QN_OK ? qn_cli_fail(a) : was_interrupted ? QN_EXIT_INTERRUPTED : QN_EXIT_OK;
    qn_setup_close(&s);
    qn_choices_free(choices);
    if (lock >= 0)
        close(lock);
    return code;
}

const QnCommand qn_cmd_train = {
    .name = "train",
    .summary = "Train a model by a recipe",
    .usage = "RECIPE [options]",
    .examples = "  quern train recipes/fashion-mnist-demo.yaml\n"
                "  quern train my.yaml -o runs/first --set train.epochs=2 train.lr=0.01\n"
                "  quern train my.yaml -o runs/first --resume\n"
                "  quern train my.yaml --init resnet18.safetensors --init-partial\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
