/* quern plan MODEL: every device priced for a job. */
#include "cli/plan.h"

#include "base/file.h"
#include "cli/plan_recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static QnStatus price(QnPlanTable *t, const QnCard *card, int n)
{
    for (int i = 0; i < t->n; i++)
        if (t->offers[i].card == card && t->offers[i].n_cards == n) /* two words mean the same */
            return QN_OK;
    if (t->n == QN_PLAN_MOST)
        return qn_fail(QN_EUSAGE, "--gpu: more than %d devices", QN_PLAN_MOST);
    QN_TRY(qn_offer_price(t->counts, &t->job, card, n, &t->coefs, &t->offers[t->n]));
    t->n++;
    return QN_OK;
}

QnStatus qn_plan_price_named(const QnCatalogue *c, char *text, QnPlanTable *t, QnOffer *out)
{
    const QnCard *card;
    int n;
    QN_TRY(qn_plan_device(c, "--explain", text, &card, &n));
    return qn_offer_price(t->counts, &t->job, card, n, &t->coefs, out);
}

/* A word of --gpu: a device and how many, or a part of several names, which stands for them all. */
static QnStatus price_word(QnPlanTable *t, const char *text)
{
    const QnCard *cards[QN_PLAN_MOST];
    int n, count = 1;
    char name[QN_PLAN_NAME];
    QN_TRY(qn_plan_count("--gpu", text, name, &count));
    QnStatus st = qn_catalogue_matches(&t->catalogue, name, cards, QN_PLAN_MOST, &n);
    if (st != QN_OK)
        return st == QN_ENOTFOUND ? qn_plan_count_hint(&t->catalogue, "--gpu", name) : st;
    const QnCard *one;
    if (n > 1 && qn_catalogue_find(&t->catalogue, name, &one) == QN_OK) /* "RTX 3060" */
        return price(t, one, count);
    for (int i = 0; i < n; i++)
        QN_TRY(price(t, cards[i], count));
    return QN_OK;
}

QnStatus qn_plan_table_price(QnPlanTable *t, const QnArgs *a)
{
    const char *list = a->text[QN_PLAN_GPU];
    const QnCatalogue *c = &t->catalogue;
    if (!list || !strcmp(list, "all")) {
        for (int i = 0; i < c->n_cards; i++)
            QN_TRY(price(t, &c->cards[i], 1));
        return QN_OK;
    }
    char *text = qn_strdup(list);
    QnStatus st = text ? QN_OK : QN_ENOMEM;
    for (char *name = text, *next; name && st == QN_OK; name = next) {
        next = strchr(name, ',');
        if (next)
            *next++ = 0;
        st = price_word(t, name);
    }
    qn_free(text);
    return st;
}

/* ---- order ---- */

typedef struct Order {
    const QnJob *job;
    int key; /* of `keys` */
} Order;

enum { BY_BEST, BY_SPEED, BY_COST, BY_ENERGY, BY_MEMORY, BY_NAME };
static const char *const keys[] = { "best", "speed", "cost", "energy", "memory", "name" };

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

/* What is not known comes last. */
static double or_last(double x)
{
    return x > 0 ? x : 1e300;
}

static double cost_of(const QnOffer *o)
{
    return or_last(o->items_s > 0 ? o->usd_per_hour / o->items_s : 0);
}

static double energy_of(const QnOffer *o)
{
    return or_last(o->items_s > 0 ? o->cost.power_w / o->items_s : 0);
}

/* 0: within all limits; 1: fits; 2: does not; 3: cannot. */
static int rank_of(const QnJob *job, const QnOffer *o)
{
    if (o->error[0] || !o->cost.fits)
        return o->error[0] ? 3 : 2;
    return qn_advice_of(job, o, 1).best < 0;
}

static int compare_offers(const QnOffer *a, const QnOffer *b, const Order *order)
{
    int by_rank = compare(rank_of(order->job, a), rank_of(order->job, b));
    int key = order->key;
    if (key == BY_BEST)
        key = order->job->items > 0 ? BY_COST : BY_SPEED;
    if (key == BY_NAME)
        return strcmp(a->card->name, b->card->name);
    if (by_rank)
        return by_rank;
    int by = key == BY_COST     ? compare(cost_of(a), cost_of(b))
             : key == BY_ENERGY ? compare(energy_of(a), energy_of(b))
             : key == BY_MEMORY ? compare(a->cost.memory_bytes, b->cost.memory_bytes)
                                : 0;
    by = by ? by : compare(b->items_s, a->items_s);
    return by ? by : strcmp(a->card->name, b->card->name);
}

QnStatus qn_plan_table_sort(QnPlanTable *t, const QnArgs *a)
{
    const char *text = a->text[QN_PLAN_SORT];
    Order order = { &t->job, BY_BEST };
    bool known = !text;
    for (int i = 0; text && i < QN_COUNT(keys); i++) {
        known |= !strcmp(text, keys[i]);
        order.key = !strcmp(text, keys[i]) ? i : order.key;
    }
    if (!known)
        return qn_fail(QN_EUSAGE,
                       "--sort: expected best, speed, cost, energy, memory or name, found '%s'",
                       text);
    for (int i = 1; i < t->n; i++) { /* by insertion: there are some hundred at most */
        QnOffer o = t->offers[i];
        int k = i;
        for (; k > 0 && compare_offers(&o, &t->offers[k - 1], &order) < 0; k--)
            t->offers[k] = t->offers[k - 1];
        t->offers[k] = o;
    }
    return QN_OK;
}

/* ---- the command ---- */

/* All offers, and those of 2, 4 and 8 devices of a kind; freed by qn_free. */
static QnStatus price_more(const QnPlanTable *t, QnOffer **out, int *n)
{
    QnOffer *all = qn_alloc_array(4 * (size_t)t->n + 1, sizeof *all);
    QnStatus st = all ? QN_OK : QN_ENOMEM;
    *n = 0;
    for (int i = 0; i < t->n && st == QN_OK; i++) {
        const QnOffer *o = &t->offers[i];
        all[(*n)++] = *o;
        if (o->error[0] || !o->cost.fits || o->n_cards > 1 || o->card->calib)
            continue;
        for (int cards = 2; cards <= 8 && st == QN_OK; cards *= 2)
            st = qn_offer_price(t->counts, &t->job, o->card, cards, &t->coefs, &all[(*n)++]);
    }
    *out = all;
    return st;
}

/* Of limits that no device is within: which to move, and how far. */
static void add_relaxed(QnStr *text, const QnJob *job, const QnOffer *all, int n)
{
    QnRelaxed r = qn_advice_relax(job, all, n);
    char time[QN_PLAN_NAME], name[QN_PLAN_NAME];
    if (r.deadline >= 0)
        qn_str_printf(text, "; --deadline %s would do (%s)",
                      qn_plan_time_text(3600 * all[r.deadline].hours, time),
                      qn_plan_name(&all[r.deadline], name));
    if (r.budget >= 0)
        qn_str_printf(text, "; --budget %.2f would do (%s)", ceil(100 * all[r.budget].outlay) / 100,
                      qn_plan_name(&all[r.budget], name));
    if (r.power >= 0)
        qn_str_printf(text, "; --power %.0f would do (%s)", ceil(all[r.power].cost.power_w),
                      qn_plan_name(&all[r.power], name));
}

static QnStatus refuse_limits(const QnPlanTable *t)
{
    QnStr text = { 0 };
    QnOffer *all = NULL;
    int n;
    QnStatus st = price_more(t, &all, &n);
    if (st == QN_OK)
        add_relaxed(&text, &t->job, all, n);
    qn_free(all);
    if (st == QN_OK)
        st = text.st;
    if (st == QN_OK)
        st = qn_fail(QN_EUSAGE, "no device is within all limits%s",
                     text.n ? qn_str_text(&text)
                            : "; no single one of them would help: move two, or give more "
                              "devices by --gpu NAME:N");
    qn_str_fini(&text);
    return st;
}

static bool any_fits(const QnPlanTable *t)
{
    for (int i = 0; i < t->n; i++)
        if (!t->offers[i].error[0] && t->offers[i].cost.fits)
            return true;
    return false;
}

/* The device of those not yet asked that lacks the smallest part; NULL: none is left. */
static const QnOffer *nearest_of(const QnPlanTable *t, const bool *asked)
{
    const QnOffer *nearest = NULL;
    for (int i = 0; i < t->n; i++) {
        const QnOffer *o = &t->offers[i];
        if (!o->error[0] && !asked[i] &&
            (!nearest || o->cost.memory_bytes / qn_offer_room(o) <
                             nearest->cost.memory_bytes / qn_offer_room(nearest)))
            nearest = o;
    }
    return nearest;
}

static QnStatus find_remedies(QnPlanTable *t)
{
    bool asked[QN_PLAN_MOST] = { false };
    t->remedies = qn_alloc_array((size_t)QN_PLAN_NEAREST * QN_REMEDIES, sizeof *t->remedies);
    if (!t->remedies)
        return QN_ENOMEM;
    for (int i = 0; i < QN_PLAN_NEAREST; i++) {
        const QnOffer *o = nearest_of(t, asked);
        int n;
        if (!o)
            break;
        asked[o - t->offers] = true;
        QN_TRY(
            qn_advice_remedies(t->counts, &t->job, o, &t->coefs, t->remedies + t->n_remedies, &n));
        t->n_remedies += n;
        if (!n)
            t->hopeless[t->n_hopeless++] = o;
    }
    return QN_OK;
}

static QnStatus refuse_all(const QnPlanTable *t)
{
    for (int i = 0; i < t->n; i++)
        if (!t->offers[i].error[0])
            return qn_fail(QN_EUSAGE, "%s does not fit as asked; what would is above",
                           t->job.model->name);
    return qn_fail(QN_EUSAGE, "none of these devices can do it: %s", t->offers[0].error);
}

/* What is printed, then what follows from it. */
static QnStatus show(const QnArgs *a, QnPlanTable *t)
{
    if (a->json && a->text[QN_PLAN_CSV])
        return qn_fail(QN_EUSAGE, "--json and --csv: one of them at a time");
    QN_TRY(qn_plan_view(a, &t->catalogue, t));
    if (a->text[QN_PLAN_MEASURE])
        QN_TRY(qn_plan_here_measure(a, t));
    if (a->text[QN_PLAN_EXPLAIN])
        return QN_OK;
    if (!qn_plan_best(t) && any_fits(t))
        return refuse_limits(t);
    if (a->text[QN_PLAN_WRITE_RECIPE])
        return qn_plan_recipe_write(a, t);
    return any_fits(t) ? QN_OK : refuse_all(t);
}

/* Where no single device is within all limits, several of a kind may be. */
static QnStatus price_all(const QnArgs *a, QnPlanTable *t)
{
    if (a->text[QN_PLAN_EXPLAIN] && !a->text[QN_PLAN_GPU] && !a->text[QN_PLAN_HTML])
        return QN_OK;
    QN_TRY(qn_plan_table_price(t, a));
    QN_TRY(qn_plan_table_sort(t, a));
    if (!any_fits(t))
        return find_remedies(t);
    if (qn_advice_of(&t->job, t->offers, t->n).best >= 0)
        return QN_OK;
    return qn_advice_more_cards(t->counts, &t->job, t->offers, t->n, &t->coefs, &t->more,
                                &t->more_found);
}

QnStatus qn_plan_write_file(const char *path, const char *text, size_t bytes)
{
    char *real = realpath(path, NULL); /* NULL: it is not there yet */
    QnStatus st = qn_file_write_atomic(real ? real : path, text, bytes);
    free(real);
    return st;
}

/* What is planned for is never replaced, whatever its path is called. */
static QnStatus check_output(const QnArgs *a, int option)
{
    const char *path = a->text[option], *name = a->command->options[option].name;
    struct stat out, from;
    if (!path || stat(path, &out) < 0 || !S_ISREG(out.st_mode)) /* others are refused later */
        return QN_OK;
    if (stat(a->positional[0], &from) == 0 && out.st_dev == from.st_dev &&
        out.st_ino == from.st_ino)
        return qn_fail(QN_EUSAGE, "%s: %s is what is planned for; write to another file", name,
                       path);
    if (!a->text[QN_PLAN_FORCE])
        return qn_fail(QN_EUSAGE, "%s: %s is there already; --force replaces it", name, path);
    return QN_OK;
}

QnStatus qn_plan_offer(const QnArgs *a)
{
    QnPlanTable t;
    const char *page = a->text[QN_PLAN_HTML], *recipe = a->text[QN_PLAN_WRITE_RECIPE];
    if (page && recipe && !strcmp(page, recipe))
        return qn_fail(QN_EUSAGE, "--html and --write-recipe: %s cannot be both", page);
    QN_TRY(check_output(a, QN_PLAN_WRITE_RECIPE));
    QN_TRY(check_output(a, QN_PLAN_HTML));
    QnStatus st = qn_plan_table_open(&t, a);
    if (st == QN_OK)
        st = price_all(a, &t);
    if (st == QN_OK)
        st = show(a, &t);
    qn_plan_table_close(&t);
    return st;
}
