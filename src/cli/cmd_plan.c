/* quern plan and its commands. What it prints about a model is in plan_offer.c. */
#include "cli/plan.h"

static const QnOption options[] = {
    QN_PLAN_OPTIONS_TASK,
    QN_PLAN_OPTIONS_MODEL,
    QN_PLAN_OPTIONS_WORK,
    QN_PLAN_OPTIONS_MONEY,
    QN_PLAN_OPTIONS_LIMITS,
    QN_PLAN_OPTIONS_GPU,
    QN_PLAN_OPTIONS_OUTPUT,
    [QN_PLAN_SORT] =
        QN_PLAN_TEXT("--sort", "KEY", "best (default), speed, cost, energy, memory or name"),
    [QN_PLAN_WRITE_RECIPE] = QN_PLAN_TEXT("--write-recipe", "FILE",
                                          "the recommended settings as quern train takes them"),
    [QN_PLAN_DATA] = QN_PLAN_TEXT("--data", "PATH", "with --write-recipe: where its data are"),
    [QN_PLAN_EXPLAIN] =
        QN_PLAN_TEXT("--explain", "GPU[:N]",
                     "where a step's time and memory go there, and what would change it"),
    [QN_PLAN_CHART] = QN_PLAN_FLAG("--chart", "bars below the table; a terminal gets them anyway"),
    [QN_PLAN_HTML] = QN_PLAN_TEXT("--html", "FILE.html", "write a page with charts"),
    [QN_PLAN_FORCE] =
        QN_PLAN_FLAG("--force", "with --write-recipe and --html: replace an existing file"),
    [QN_PLAN_CALIBRATE] =
        QN_PLAN_FLAG("--calibrate", "measure this machine, which is then the device 'this'; with "
                                    "--hourly USD what an hour of it costs, with --power W "
                                    "what it draws"),
    [QN_PLAN_SECONDS] = { "--seconds", 0, QN_OPTION_INT, "N",
                          "with --calibrate: about how long; default 20", 2, 3600 },
    [QN_PLAN_THREADS] = { "--threads", 0, QN_OPTION_INT, "N",
                          "with --calibrate: threads; default: one a core", 1, 1024 },
    [QN_PLAN_MEASURE] = QN_PLAN_FLAG("--measure", "with --gpu this: also run the step, and say how "
                                                  "far off its prediction is"),
    [QN_PLAN_SCORE] =
        QN_PLAN_TEXT("--score", "FILE.csv", "predict published figures, and how far off that is"),
    [QN_PLAN_FIT] =
        QN_PLAN_TEXT("--fit", "FILE.csv", "print the coefficients that agree best with them"),
    [QN_PLAN_HOLD_OUT] = QN_PLAN_TEXT("--hold-out", "gpu|model",
                                      "with --score: predict each from fits that have not seen it"),
};

static int run(QnArgs *a)
{
    bool measured = a->text[QN_PLAN_SCORE] || a->text[QN_PLAN_FIT];
    QnStatus st = measured                     ? qn_plan_measured(a)
                  : a->text[QN_PLAN_CALIBRATE] ? qn_plan_calibrate(a)
                  : a->n_positional            ? qn_plan_offer(a)
                                    : qn_fail(QN_EUSAGE, "say which model; 'quern plan models' "
                                                         "lists them");
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, NULL); /* files may be unsupported */
}

/* A command of quern plan is one file with one of these and a name here. */
/* clang-format off */
#define QN_PLAN_COMMANDS(X)                                                                        \
    X(upgrade)                                                                                     \
    X(break_even)                                                                                  \
    X(edge)                                                                                        \
    X(cluster)                                                                                     \
    X(residuals)                                                                                   \
    X(devices)                                                                                     \
    X(models)
/* clang-format on */

#define QN_X(name) extern const QnCommand qn_cmd_plan_##name;
QN_PLAN_COMMANDS(QN_X)
#undef QN_X

static const QnCommand *const subs[] = {
#define QN_X(name) &qn_cmd_plan_##name,
    QN_PLAN_COMMANDS(QN_X)
#undef QN_X
        NULL,
};

const QnCommand qn_cmd_plan = {
    .name = "plan",
    .summary = "Predict speed, memory and cost of a model on devices that are not here",
    .usage = "RECIPE|MODEL.onnx|NAME [options] | COMMAND … | --score FILE.csv | --fit FILE.csv",
    .examples = "  quern plan recipes/fashion-mnist-resnet.yaml\n"
                "  quern plan resnet50 --samples 1.28M --epochs 90 --deadline 48h --budget 300\n"
                "  quern plan gpt2_xl --gpu \"A100 SXM4 80GB:8,RTX 4090\" --tokens 1e9 --buy\n"
                "  quern plan model.onnx --batch 1\n"
                "  quern plan my.yaml --gpu \"RTX 4090\" --batch auto --write-recipe fast.yaml\n"
                "  quern plan bert_large --explain \"RTX 4090\" --html bert.html\n"
                "  quern plan --calibrate\n"
                "  quern plan my.yaml --gpu this\n"
                "  quern plan --score measured.csv --hold-out gpu\n"
                "\nExit code 2 where nothing fits or no device is within the limits; what would be "
                "is printed all the same.\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .max_positional = 1,
    .run = run,
    .subs = subs,
};
