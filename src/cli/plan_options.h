/* Options that several commands of quern plan take: one number and one row for each. A command's
 * table names the groups that it takes; what lies between them has no name and is skipped. A
 * command's own options begin at QN_PLAN_OWN. */
#ifndef QN_CLI_PLAN_OPTIONS_H
#define QN_CLI_PLAN_OPTIONS_H

#include "cli/cli.h"
#include "cli/model_dims.h"

enum {
    /* what is planned for */
    QN_PLAN_TASK,
    QN_PLAN_PRECISION,
    QN_PLAN_STACK,
    QN_PLAN_BATCH,
    QN_PLAN_ACCUMULATE,
    QN_PLAN_RECOMPUTE,
    QN_PLAN_IMAGE,
    QN_PLAN_SEQUENCE,
    QN_PLAN_PROMPT,
    QN_PLAN_GENERATE,
    QN_PLAN_FRAMEWORK,
    QN_PLAN_CLASSES,
    QN_PLAN_DIM,
    /* how much of it */
    QN_PLAN_SAMPLES,
    QN_PLAN_EPOCHS,
    QN_PLAN_TOKENS,
    QN_PLAN_WORKERS,
    QN_PLAN_LOADER_RATE,
    /* money */
    QN_PLAN_RENT,
    QN_PLAN_BUY,
    QN_PLAN_HOURLY,
    QN_PLAN_PRICE,
    QN_PLAN_ELECTRICITY,
    QN_PLAN_PUE,
    QN_PLAN_YEARS,
    QN_PLAN_UTILISATION,
    QN_PLAN_RESIDUAL,
    QN_PLAN_HOST,
    /* limits */
    QN_PLAN_BUDGET,
    QN_PLAN_DEADLINE,
    QN_PLAN_POWER,
    /* devices, and how it is printed */
    QN_PLAN_GPU,
    QN_PLAN_DEVICES,
    QN_PLAN_SORT,
    QN_PLAN_CSV,
    QN_PLAN_JSON,
    /* of quern plan alone */
    QN_PLAN_WRITE_RECIPE,
    QN_PLAN_DATA,
    QN_PLAN_SCORE,
    QN_PLAN_FIT,
    QN_PLAN_HOLD_OUT,
    QN_PLAN_EXPLAIN,
    QN_PLAN_CHART,
    QN_PLAN_HTML,
    QN_PLAN_FORCE,
    QN_PLAN_CALIBRATE,
    QN_PLAN_SECONDS,
    QN_PLAN_THREADS,
    QN_PLAN_MEASURE,
    QN_PLAN_SHARED, /* their number */
    QN_PLAN_OWN = 72,
};

_Static_assert(QN_PLAN_SHARED <= QN_PLAN_OWN, "a command's own options begin behind all others");

/* clang-format off */
#define QN_PLAN_TEXT(name, value, help) { name, 0, QN_OPTION_TEXT, value, help, 0, 0 }
#define QN_PLAN_FLAG(name, help) { name, 0, QN_OPTION_FLAG, NULL, help, 0, 0 }

#define QN_PLAN_OPTIONS_TASK                                                                       \
    [QN_PLAN_TASK] = QN_PLAN_TEXT("--task", "train|infer", "default train; ONNX files: infer")
#define QN_PLAN_OPTIONS_MODEL                                                                      \
    [QN_PLAN_PRECISION] = QN_PLAN_TEXT("--precision", "NAME",                                      \
        "fp32 tf32 fp16-amp bf16-amp fp16 bf16 int8 fp8; in inference also int4 awq q4_k_m …; auto: "\
        "the device's best; default: the recipe's, else auto"),                                                                    \
    [QN_PLAN_STACK] = QN_PLAN_TEXT("--stack", "NAME",                                              \
        "the software: quern (default), pytorch, compiled, tensorrt …"),                           \
    [QN_PLAN_BATCH] = QN_PLAN_TEXT("--batch", "N|auto",                                            \
        "examples of one device; auto: the fastest that fits, up to 256; default: the recipe's, "  \
        "else auto"),                                                                              \
    [QN_PLAN_IMAGE] = { "--image", 0, QN_OPTION_INT, "N", "side of the images", 1, 1 << 14 },      \
    [QN_PLAN_SEQUENCE] = { "--sequence", 0, QN_OPTION_INT, "N", "tokens of an example", 1, 1 << 24 },\
    [QN_PLAN_GENERATE] = { "--generate", 0, QN_OPTION_INT, "N",                                    \
        "tokens of an answer, one after the other: with --task infer", 1, 1 << 24 },               \
    [QN_PLAN_PROMPT] = { "--prompt", 0, QN_OPTION_INT, "N",                                        \
        "tokens that are answered to; default 512", 1, 1 << 24 },                                  \
    [QN_PLAN_FRAMEWORK] = QN_PLAN_TEXT("--framework", "TEXT",                                      \
        "the software as published figures name it, in place of --stack: \"TensorRT 8.6\""),       \
    [QN_PLAN_CLASSES] = { "--classes", 0, QN_OPTION_INT, "N",                                      \
        "classes, or words of the vocabulary, of a recipe whose data set is not here", 1, 1 << 24 },\
    [QN_PLAN_DIM] = QN_CLI_DIM_OPTION
#define QN_PLAN_OPTIONS_WORK                                                                       \
    [QN_PLAN_ACCUMULATE] = { "--accumulate", 0, QN_OPTION_INT, "N",                                \
        "micro-batches of an update, each of --batch examples", 1, 1 << 20 },                      \
    [QN_PLAN_RECOMPUTE] = QN_PLAN_FLAG("--recompute",                                              \
        "cheap activations are computed again rather than kept"),                                  \
    [QN_PLAN_SAMPLES] = QN_PLAN_TEXT("--samples", "N",                                             \
        "examples of the data set: 50000, 1.2e6, 300k; default: the recipe's"),                    \
    [QN_PLAN_EPOCHS] = QN_PLAN_TEXT("--epochs", "N", "passes over it; default: the recipe's, or 1"),\
    [QN_PLAN_TOKENS] = QN_PLAN_TEXT("--tokens", "N", "tokens to go through: 1e9, 300M"),           \
    [QN_PLAN_WORKERS] = { "--workers", 0, QN_OPTION_INT, "N",                                      \
        "threads of a host that prepare examples; default: the loader is never what limits", 1,    \
        1 << 16 },                                                                                 \
    [QN_PLAN_LOADER_RATE] = QN_PLAN_TEXT("--loader-rate", "N",                                     \
        "examples a second that each prepares; default 250, JPEG by SIMD")
#define QN_PLAN_OPTIONS_MONEY                                                                      \
    [QN_PLAN_RENT] = QN_PLAN_FLAG("--rent", "rented devices alone"),                               \
    [QN_PLAN_BUY] = QN_PLAN_FLAG("--buy", "bought devices, also where they can be rented"),        \
    [QN_PLAN_HOURLY] = QN_PLAN_TEXT("--hourly", "[NAME=]USD,…",                                    \
        "rent of an hour, of all or of the named devices; default: the catalogue's"),              \
    [QN_PLAN_PRICE] = QN_PLAN_TEXT("--price", "[NAME=]USD,…", "price of a device, likewise"),      \
    [QN_PLAN_ELECTRICITY] = QN_PLAN_TEXT("--electricity", "USD", "a kWh; default 0.15"),           \
    [QN_PLAN_PUE] = QN_PLAN_TEXT("--pue", "N",                                                     \
        "what the building draws over what its computers draw; default 1.2"),                      \
    [QN_PLAN_YEARS] = QN_PLAN_TEXT("--years", "N", "that a bought device is used; default 3"),     \
    [QN_PLAN_UTILISATION] = QN_PLAN_TEXT("--utilisation", "N",                                     \
        "share of these hours that it works; default 0.5"),                                        \
    [QN_PLAN_RESIDUAL] = QN_PLAN_TEXT("--residual", "N",                                           \
        "share of the price that it is sold for then; default 0.3"),                               \
    [QN_PLAN_HOST] = QN_PLAN_TEXT("--host", "N",                                                   \
        "price with its share of a computer over that of the device; default 2 for desktops, 1.5 " \
        "for servers, 1 for what is a computer itself")
#define QN_PLAN_OPTIONS_LIMITS                                                                     \
    [QN_PLAN_BUDGET] = QN_PLAN_TEXT("--budget", "USD", "at most this much: 500, 2k; of rent, or of what is paid at once for bought devices"),              \
    [QN_PLAN_DEADLINE] = QN_PLAN_TEXT("--deadline", "TIME", "90m, 48h, 7d"),                       \
    [QN_PLAN_POWER] = QN_PLAN_TEXT("--power", "W", "at the plug, of all devices and the machine around them; they are held to less where that does it")
#define QN_PLAN_OPTIONS_GPU                                                                        \
    [QN_PLAN_GPU] = QN_PLAN_TEXT("--gpu", "NAME[:N],…", "devices, or all (default)")
#define QN_PLAN_OPTIONS_DEVICES                                                                    \
    [QN_PLAN_DEVICES] = QN_PLAN_TEXT("--devices", "FILE.csv",                                      \
        "devices besides those of the catalogue, in its columns")
#define QN_PLAN_OPTIONS_OUTPUT                                                                     \
    QN_PLAN_OPTIONS_DEVICES,                                                                       \
    [QN_PLAN_CSV] = QN_PLAN_FLAG("--csv", "comma-separated, with a header"),                       \
    [QN_PLAN_JSON] = QN_PLAN_FLAG("--json", "one JSON object a line")
/* clang-format on */

#endif
