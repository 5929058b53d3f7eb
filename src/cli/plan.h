/* quern plan: what its files share. Each command of it is one file that ends in a QnCommand, with a
 * row in cmd_plan.c. Options that mean the same in several commands have one number and one row
 * here; a command's own begin at QN_PLAN_OWN. */
#ifndef QN_CLI_PLAN_H
#define QN_CLI_PLAN_H

#include "cli/cli.h"
#include "plan/advice.h"

enum {
    QN_PLAN_TASK,
    QN_PLAN_PRECISION,
    QN_PLAN_STACK,
    QN_PLAN_BATCH,
    QN_PLAN_IMAGE,
    QN_PLAN_SEQUENCE,
    QN_PLAN_SAMPLES,
    QN_PLAN_EPOCHS,
    QN_PLAN_TOKENS,
    QN_PLAN_DEVICES,
    QN_PLAN_JSON,
    QN_PLAN_GPU,
    QN_PLAN_BUDGET,
    QN_PLAN_DEADLINE,
    QN_PLAN_SCORE,
    QN_PLAN_FIT,
    QN_PLAN_HOLD_OUT,
    QN_PLAN_EXPLAIN,
    QN_PLAN_CHART,
    QN_PLAN_HTML,
    QN_PLAN_OWN = 40,
};

/* clang-format off */
#define QN_PLAN_OPTIONS_MODEL                                                                      \
    [QN_PLAN_TASK] = { "--task", 0, QN_OPTION_TEXT, "train|infer", "default train", 0, 0 },        \
    [QN_PLAN_PRECISION] = { "--precision", 0, QN_OPTION_TEXT, "NAME",                              \
                            "fp32 tf32 fp16-amp bf16-amp fp16 bf16 int8 fp8; default: the "        \
                            "device's best", 0, 0 },                                               \
    [QN_PLAN_STACK] = { "--stack", 0, QN_OPTION_TEXT, "NAME",                                      \
                        "the software: quern (default), pytorch, compiled, tensorrt …", 0, 0 },    \
    [QN_PLAN_BATCH] = { "--batch", 0, QN_OPTION_TEXT, "N|auto",                                    \
                        "examples of one device; auto (default): the fastest that fits, up to 256",\
                        0, 0 },                                                                    \
    [QN_PLAN_IMAGE] = { "--image", 0, QN_OPTION_INT, "N", "side of the images", 1, 1 << 14 },      \
    [QN_PLAN_SEQUENCE] = { "--sequence", 0, QN_OPTION_INT, "N", "tokens of an example", 1, 1 << 24 }
#define QN_PLAN_OPTIONS_WORK                                                                       \
    [QN_PLAN_SAMPLES] = { "--samples", 0, QN_OPTION_TEXT, "N",                                     \
                          "examples of the data set: 50000, 1.2e6, 300k", 0, 0 },                  \
    [QN_PLAN_EPOCHS] = { "--epochs", 0, QN_OPTION_TEXT, "N", "passes over it; default 1", 0, 0 },  \
    [QN_PLAN_TOKENS] = { "--tokens", 0, QN_OPTION_TEXT, "N", "tokens to go through: 1e9, 300M", 0, 0 }
#define QN_PLAN_OPTIONS_OUTPUT                                                                     \
    [QN_PLAN_DEVICES] = { "--devices", 0, QN_OPTION_TEXT, "FILE.csv",                              \
                          "devices besides those of the catalogue, in its columns", 0, 0 },        \
    [QN_PLAN_JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a line", 0, 0 }
/* clang-format on */

enum { QN_PLAN_MOST = 512 };

typedef struct QnPlanTable {
    QnJob job;
    QnOffer *offers;
    int n;
    QnCounts *counts; /* what the offers were priced by, for whoever prices more */
    QnCoefs coefs;
} QnPlanTable;

/* quern plan MODEL. */
QnStatus qn_plan_offer(const QnArgs *a);
/* The table, sorted by speed, and the recommendation. */
QnStatus qn_plan_print(const QnArgs *a, QnPlanTable *t);
/* "NAME", or "NAME:8" where there are several. */
void qn_plan_offer_name(const QnOffer *c, char *text, size_t bytes);
/* "NAME" or "NAME:count" into an offer; cuts the text at the colon. */
QnStatus qn_plan_price_named(const QnCatalogue *c, char *text, QnPlanTable *t, QnOffer *out);
/* All that is printed of a table: --explain, or the table and its chart; and the file of --html. */
QnStatus qn_plan_view(const QnArgs *a, const QnCatalogue *c, QnPlanTable *t);
/* --score and --fit. */
QnStatus qn_plan_measured(const QnArgs *a);
/* The same for a table of which qn_figures_kind knows the header. */
QnStatus qn_plan_figures(const QnArgs *a, const char *path, const char *text, size_t bytes);

/* The catalogue, and the rows of --devices. */
QnStatus qn_plan_catalogue(const QnArgs *a, QnCatalogue *c);
/* A size: digits, a fraction, an exponent, and k, M, G, B or T for powers of a thousand. */
QnStatus qn_plan_number(const QnArgs *a, int option, double otherwise, double *out);

#endif
