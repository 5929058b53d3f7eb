#include "cli/far_memory.h"
#include "cli/host_steps.h"
#include "cli/report.h"

#include <stdio.h>

enum { SET, DEVICE, DEVICE_MEMORY, JSON };

static const QnOption options[] = {
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…", "change the recipe, e.g. data.test=…", 0,
              0 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
    [DEVICE_MEMORY] = { "--device-memory", 0, QN_OPTION_TEXT, "BYTES", QN_DEVICE_MEMORY_HELP, 0,
                        0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object on stdout", 0, 0 },
};

static QnStatus print(const QnArgs *a, const QnSetup *s, const QnEvaluation *e)
{
    double value;
    const char *metric = qn_report_metric(s->recipe, e, &value);
    if (!a->json) {
        char time[QN_STR_NUMBER];
        if (e->confusion)
            qn_report_classes(stdout, s, e);
        printf("%s %.4f, loss %.4f, on %lld %s in %s\n", metric, value, e->loss,
               (long long)e->samples, qn_report_counted(s->recipe),
               qn_str_duration(time, (int64_t)(e->seconds * 1e9)));
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_double(&w, metric, value);
    qn_json_put_double(&w, "test_loss", e->loss);
    qn_json_put_int(&w, "samples", e->samples);
    qn_json_put_double(&w, "seconds", e->seconds);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static int run(QnArgs *a)
{
    QnSetup s;
    QnEvaluation e = { 0 };
    QnDeviceWish wish = { .name = a->text[DEVICE], .log = &a->log };
    QnStatus st = qn_cli_bytes(a, DEVICE_MEMORY, &wish.memory_bytes);
    if (st == QN_OK)
        st = qn_setup_open_run(&s, a->positional[0], a->many, a->n_many, &wish);
    if (st != QN_OK)
        return qn_cli_fail(a);
    qn_setup_warn_skipped(&s, &a->log);
    qn_host_steps_warn(s.session->eval_plan, s.device, &a->log);
    qn_far_warn(&s, &a->log);
    QnDataset *ds = s.data.test ? s.data.test : s.data.train;
    st = qn_evaluate(s.session, ds, NULL, NULL, &e);
    if (st == QN_OK)
        st = print(a, &s, &e);
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    qn_evaluation_fini(&e);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_eval = {
    .name = "eval",
    .summary = "Measure a trained model on its test data",
    .usage = "RUN [options]",
    .examples = "  quern eval runs/fashion-mnist-demo\n  quern eval runs/mine --json\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
