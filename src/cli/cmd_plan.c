/* quern plan and its commands. What it prints about a model is in plan_offer.c. */
#include "cli/plan.h"

static const QnOption options[] = {
    QN_PLAN_OPTIONS_MODEL,
    QN_PLAN_OPTIONS_WORK,
    QN_PLAN_OPTIONS_OUTPUT,
    [QN_PLAN_GPU] = { "--gpu", 0, QN_OPTION_TEXT, "NAME[:N],…", "devices, or all (default)", 0, 0 },
    [QN_PLAN_BUDGET] = { "--budget", 0, QN_OPTION_TEXT, "USD", "at most this much", 0, 0 },
    [QN_PLAN_DEADLINE] = { "--deadline", 0, QN_OPTION_TEXT, "TIME", "90m, 48h, 7d", 0, 0 },
    [QN_PLAN_EXPLAIN] = { "--explain", 0, QN_OPTION_TEXT, "GPU[:N]",
                          "where a step's time and memory go there, and what would change it", 0,
                          0 },
    [QN_PLAN_CHART] = { "--chart", 0, QN_OPTION_FLAG, NULL,
                        "bars below the table; a terminal gets them anyway", 0, 0 },
    [QN_PLAN_HTML] = { "--html", 0, QN_OPTION_TEXT, "FILE.html", "write a page with charts", 0, 0 },
    [QN_PLAN_SCORE] = { "--score", 0, QN_OPTION_TEXT, "FILE.csv",
                        "predict published figures, and how far off that is", 0, 0 },
    [QN_PLAN_FIT] = { "--fit", 0, QN_OPTION_TEXT, "FILE.csv",
                      "print the coefficients that agree best with them", 0, 0 },
    [QN_PLAN_HOLD_OUT] = { "--hold-out", 0, QN_OPTION_TEXT, "gpu|model",
                           "with --score: predict each from fits that have not seen it", 0, 0 },
};

static int run(QnArgs *a)
{
    bool measured = a->text[QN_PLAN_SCORE] || a->text[QN_PLAN_FIT];
    QnStatus st = measured          ? qn_plan_measured(a)
                  : a->n_positional ? qn_plan_offer(a)
                                    : qn_fail(QN_EUSAGE, "say which model; 'quern plan models' "
                                                         "lists them");
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
}

/* A command of quern plan is one file with one of these and a row here. */
extern const QnCommand qn_cmd_plan_devices, qn_cmd_plan_models;

static const QnCommand *const subs[] = {
    &qn_cmd_plan_devices,
    &qn_cmd_plan_models,
    NULL,
};

const QnCommand qn_cmd_plan = {
    .name = "plan",
    .summary = "Predict speed, memory and cost of a model on devices that are not here",
    .usage = "MODEL [options] | COMMAND … | --score FILE.csv | --fit FILE.csv",
    .examples = "  quern plan resnet50 --batch 64\n"
                "  quern plan gpt2_xl --gpu \"A100 SXM4 80GB:8,RTX 4090\" --tokens 1e9\n"
                "  quern plan bert_large --explain \"RTX 4090\" --html bert.html\n"
                "  quern plan devices\n"
                "  quern plan --score measured.csv --hold-out gpu\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .max_positional = 1,
    .run = run,
    .subs = subs,
};
