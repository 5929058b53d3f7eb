/* quern plan MODEL: every device priced for a job. */
#include "cli/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is asked ---- */

QnStatus qn_plan_number(const QnArgs *a, int option, double otherwise, double *out)
{
    static const char units[] = "kMGT";
    const char *text = a->text[option];
    char *end;
    *out = otherwise;
    if (!text)
        return QN_OK;
    double x = strtod(text, &end), unit = 1;
    for (int i = 0; units[i] && unit == 1; i++)
        if (*end == units[i] || (*end == 'K' && i == 0) || (*end == 'B' && i == 2))
            unit = pow(1000, i + 1);
    end += unit > 1;
    if (end == text || *end || !(x >= 0 && x * unit <= 1e18))
        return qn_fail(QN_EUSAGE, "%s: expected a number such as 50000, 1.5e9 or 300k, found '%s'",
                       a->command->options[option].name, text);
    *out = x * unit;
    return QN_OK;
}

static QnStatus read_deadline(const QnArgs *a, double *seconds)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    const char *text = a->text[QN_PLAN_DEADLINE];
    char *end;
    *seconds = 0;
    if (!text)
        return QN_OK;
    *seconds = strtod(text, &end);
    for (int i = 0; i < QN_COUNT(units); i++) {
        if (*end == units[i].unit && !end[1] && end != text && *seconds > 0) {
            *seconds *= units[i].seconds;
            return QN_OK;
        }
    }
    return qn_fail(QN_EUSAGE, "--deadline: expected a time such as 90m, 48h or 7d, found '%s'",
                   text);
}

static QnStatus read_items(const QnArgs *a, QnJob *job)
{
    double samples, epochs, tokens;
    QN_TRY(qn_plan_number(a, QN_PLAN_SAMPLES, 0, &samples));
    QN_TRY(qn_plan_number(a, QN_PLAN_EPOCHS, 1, &epochs));
    QN_TRY(qn_plan_number(a, QN_PLAN_TOKENS, 0, &tokens));
    if (tokens > 0 && job->model->family->image)
        return qn_fail(QN_EUSAGE, "--tokens: %s takes images; give --samples and --epochs",
                       job->model->name);
    if (tokens > 0 && samples > 0)
        return qn_fail(QN_EUSAGE, "--tokens and --samples say the same thing: give one of them");
    int64_t length = job->sequence ? job->sequence : job->model->family->sequence;
    job->items = tokens > 0                  ? tokens
                 : job->model->family->image ? samples * epochs
                                             : samples * epochs * (double)length;
    if (!(job->items > 0) && (job->budget_usd > 0 || job->deadline_s > 0))
        return qn_fail(QN_EUSAGE,
                       "%s needs the size of the job: --samples and --epochs, or "
                       "--tokens",
                       job->budget_usd > 0 ? "--budget" : "--deadline");
    return QN_OK;
}

static QnStatus read_batch(const QnArgs *a, QnJob *job)
{
    const char *text = a->text[QN_PLAN_BATCH];
    char *end;
    if (!text || !strcmp(text, "auto"))
        return QN_OK;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < 1 || n > 1 << 24)
        return qn_fail(QN_EUSAGE,
                       "--batch: expected auto or a whole number from 1 to 16777216, found '%s'",
                       text);
    job->batch = n;
    return QN_OK;
}

static QnStatus read_job(const QnArgs *a, QnJob *job)
{
    const char *task = a->text[QN_PLAN_TASK] ? a->text[QN_PLAN_TASK] : "train";
    *job = (QnJob){ .image = a->number[QN_PLAN_IMAGE],
                    .sequence = a->number[QN_PLAN_SEQUENCE],
                    .train = !strcmp(task, "train"),
                    .any_numbers = !a->text[QN_PLAN_PRECISION] };
    QN_TRY(qn_model_find(a->positional[0], &job->model));
    QN_TRY(read_batch(a, job));
    if (!job->train && strcmp(task, "infer") != 0)
        return qn_fail(QN_EUSAGE, "--task: expected train or infer, found '%s'", task);
    if (job->image && !job->model->family->image)
        return qn_fail(QN_EUSAGE, "--image: %s takes tokens", job->model->name);
    if (job->sequence && job->model->family->image)
        return qn_fail(QN_EUSAGE, "--sequence: %s takes images", job->model->name);
    if (!job->any_numbers)
        QN_TRY(qn_numbers_find(a->text[QN_PLAN_PRECISION], &job->numbers));
    if (a->text[QN_PLAN_STACK])
        QN_TRY(qn_tier_find(a->text[QN_PLAN_STACK], &job->tier));
    QN_TRY(qn_plan_number(a, QN_PLAN_BUDGET, 0, &job->budget_usd));
    QN_TRY(read_deadline(a, &job->deadline_s));
    return read_items(a, job);
}

/* "NAME" or "NAME:count" into a choice. */
QnStatus qn_plan_price_named(const QnCatalogue *c, char *text, QnPlanTable *t, QnOffer *out)
{
    const QnCard *card;
    char *colon = strrchr(text, ':'), *end = NULL;
    long n = 1;
    if (colon) {
        *colon = 0;
        n = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || n < 1 || n > 16384)
            return qn_fail(QN_EUSAGE, "--gpu: '%s:%s': expected a number of devices, 1 to 16384",
                           text, colon + 1);
    }
    QN_TRY(qn_catalogue_find(c, text, &card));
    return qn_offer_price(t->counts, &t->job, card, (int)n, &t->coefs, out);
}

static QnStatus price_all(const QnArgs *a, const QnCatalogue *c, QnPlanTable *t)
{
    const QnCoefs *k = &t->coefs;
    const char *list = a->text[QN_PLAN_GPU];
    if (!list || !strcmp(list, "all")) {
        for (int i = 0; i < c->n_cards; i++, t->n++)
            QN_TRY(qn_offer_price(t->counts, &t->job, &c->cards[i], 1, k, &t->offers[i]));
        return QN_OK;
    }
    char *text = qn_strdup(list);
    QnStatus st = text ? QN_OK : QN_ENOMEM;
    for (char *name = text, *next; name && st == QN_OK; name = next) {
        next = strchr(name, ',');
        if (next)
            *next++ = 0;
        if (t->n == QN_PLAN_MOST)
            st = qn_fail(QN_EUSAGE, "--gpu: more than %d devices", QN_PLAN_MOST);
        else
            st = qn_plan_price_named(c, name, t, &t->offers[t->n]);
        t->n += st == QN_OK;
    }
    qn_free(text);
    return st;
}

QnStatus qn_plan_offer(const QnArgs *a)
{
    QnCatalogue c = { 0 };
    QnDevice *device = NULL;
    QnPlanTable t = { 0 };
    QnStatus st = read_job(a, &t.job);
    QN_TRY_DONE(st);
    QN_TRY_DONE(qn_coefs_open(&t.coefs));
    QN_TRY_DONE(qn_plan_catalogue(a, &c));
    QN_TRY_DONE(qn_device_open_named("null", NULL, &device));
    t.counts = qn_counts_new(device);
    t.offers = qn_alloc_array(QN_PLAN_MOST, sizeof *t.offers);
    if (!t.counts || !t.offers)
        QN_TRY_DONE(QN_ENOMEM);
    if (c.n_cards > QN_PLAN_MOST)
        QN_TRY_DONE(qn_fail(QN_EFORMAT, "more than %d devices in the catalogue", QN_PLAN_MOST));
    if (!a->text[QN_PLAN_EXPLAIN] || a->text[QN_PLAN_GPU] || a->text[QN_PLAN_HTML])
        QN_TRY_DONE(price_all(a, &c, &t));
    QN_TRY_DONE(qn_plan_view(a, &c, &t));
done:
    qn_free(t.offers);
    qn_counts_free(t.counts);
    qn_device_close(device);
    qn_catalogue_fini(&c);
    return st;
}
