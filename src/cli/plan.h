/* quern plan: what its files share. Each command of it is one file that ends in a QnCommand, with a
 * row in cmd_plan.c. */
#ifndef QN_CLI_PLAN_H
#define QN_CLI_PLAN_H

#include "cli/plan_options.h"
#include "cli/plan_subject.h"
#include "plan/advice.h"

enum { QN_PLAN_MOST = 1024 }; /* devices of a table */
enum { QN_PLAN_NEAREST = 3 }; /* of them that are asked for remedies */

typedef struct QnPlanTable {
    QnJob job;
    QnOffer *offers;
    int n;
    QnCounts *counts; /* what the offers were priced by, for whoever prices more */
    QnCoefs coefs;
    QnFleet fleet;
    QnPlanSubject subject;
    QnCatalogue catalogue;
    QnDevice *device;
    double samples; /* of the data set; 0: not known */
    QnOffer more;   /* of several devices, where no single one is within all limits */
    bool more_found;
    /* Where nothing fits: what would, of the devices that come nearest, and those of them for which
     * nothing does. */
    QnRemedy *remedies;
    int n_remedies;
    const QnOffer *hopeless[QN_PLAN_NEAREST];
    int n_hopeless;
    struct QnPlanHere *here; /* this machine, where it is asked for; else NULL */
} QnPlanTable;

/* The offer that is recommended; NULL: there is none. */
const QnOffer *qn_plan_best(const QnPlanTable *t);

/* The subject of a->positional[0], the catalogue with all that options say of it, and a job by the
 * options; no offers. To be closed on failure too. */
QnStatus qn_plan_table_open(QnPlanTable *t, const QnArgs *a);
void qn_plan_table_close(QnPlanTable *t);
/* Prices the devices of --gpu, or all. */
QnStatus qn_plan_table_price(QnPlanTable *t, const QnArgs *a);
/* Best first: within all limits by cost, else by speed. */
QnStatus qn_plan_table_sort(QnPlanTable *t, const QnArgs *a);

/* quern plan MODEL. */
QnStatus qn_plan_offer(const QnArgs *a);
/* "images", "tokens", "examples". */
const char *qn_plan_things(const QnPlanTable *t);
/* Three digits of small amounts, all of large ones: "0.0047", "7.84", "7561". */
const char *qn_plan_amount(double amount, char out[QN_STR_NUMBER]);
/* "0.0012", "7.84", "12345". */
const char *qn_plan_usd_text(double usd, char out[QN_STR_NUMBER]);
/* Threads that the loader needs to keep the offer busy; 0: it does. */
int64_t qn_plan_workers_needed(const QnPlanTable *t, const QnOffer *o);
/* Lines below the table: the recommendation, the fastest, what would fit, who plans for many. */
void qn_plan_add_best(QnStr *out, const QnPlanTable *t, const QnOffer *o);
void qn_plan_add_others(QnStr *out, const QnPlanTable *t, const QnOffer *best);
void qn_plan_add_remedies(QnStr *out, const QnArgs *a, const QnPlanTable *t);
void qn_plan_add_cluster_hint(QnStr *out, const QnArgs *a, const QnPlanTable *t,
                              const QnOffer *best);
/* The table and the recommendation. */
QnStatus qn_plan_print(const QnArgs *a, QnPlanTable *t);
/* Writes a file; of a link, what it names. */
QnStatus qn_plan_write_file(const char *path, const char *text, size_t bytes);
/* All that is printed of a table: --explain, or the table and its chart; and the file of --html. */
QnStatus qn_plan_view(const QnArgs *a, const QnCatalogue *c, QnPlanTable *t);
/* The same as JSON or CSV. */
QnStatus qn_plan_rows(const QnArgs *a, const QnPlanTable *t);
/* --calibrate. */
QnStatus qn_plan_calibrate(const QnArgs *a);
/* Puts this machine, as it was measured, into the table's catalogue if --gpu or --explain names it;
 * an error says how to measure it. */
QnStatus qn_plan_here_open(QnPlanTable *t, const QnArgs *a);
void qn_plan_here_close(QnPlanTable *t);
/* --measure: runs what the offer of this machine is of, and prints both times. */
QnStatus qn_plan_here_measure(const QnArgs *a, QnPlanTable *t);
/* --score and --fit. */
QnStatus qn_plan_measured(const QnArgs *a);
/* The same for a table of which qn_figures_kind knows the header. */
QnStatus qn_plan_figures(const QnArgs *a, const char *path, const char *text, size_t bytes);

/* The catalogue, the rows of --devices, and prices and rents by options. */
QnStatus qn_plan_catalogue(const QnArgs *a, QnCatalogue *c);
QnStatus qn_plan_money(const QnArgs *a, QnMoney *m);
/* A size: digits, a fraction, an exponent, and k, M, G, B or T for powers of a thousand. */
QnStatus qn_plan_number(const QnArgs *a, int option, double otherwise, double *out);
/* "90m", "48h", "1d12h" in seconds; 0: not given. */
QnStatus qn_plan_time(const QnArgs *a, int option, double *seconds);
/* The same the other way, rounded up. */
enum { QN_PLAN_NAME = 96 };
const char *qn_plan_time_text(double seconds, char out[QN_PLAN_NAME]);
/* As it is: "3.20 ms", "7d08h", "214 years". */
const char *qn_plan_span(double hours, char out[QN_STR_NUMBER]);
/* "NAME" or "NAME:count" as a name and a number; the option is for the error. */
QnStatus qn_plan_count(const char *option, const char *text, char name[QN_PLAN_NAME], int *n);
/* After ENOTFOUND: fails likewise, and where the text has a number as others write it ("8x NAME")
 * says how it is written here. */
QnStatus qn_plan_count_hint(const QnCatalogue *c, const char *option, const char *text);
/* The device of the catalogue that is called so, and the number. */
QnStatus qn_plan_device(const QnCatalogue *c, const char *option, const char *text,
                        const QnCard **card, int *n);
/* The device of that name and number, priced for the job. */
QnStatus qn_plan_price_named(const QnCatalogue *c, char *text, QnPlanTable *t, QnOffer *out);
/* "NAME", or "NAME:8" where there are several. */
void qn_plan_offer_name(const QnOffer *o, char *text, size_t bytes);
const char *qn_plan_name(const QnOffer *o, char out[QN_PLAN_NAME]);

/* Lines that say what money was reckoned by. */
void qn_plan_print_money(const QnMoney *m);

#endif
