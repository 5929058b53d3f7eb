/* Numbers, times, money and devices as options of quern plan say them. */
#include "cli/plan.h"

#include "base/file.h"
#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers and times ---- */

static const char *name_of(const QnArgs *a, int option)
{
    return a->command->options[option].name;
}

static QnStatus read_size(const char *option, const char *text, double *out)
{
    static const char units[] = "kMGT";
    char *end;
    double x = strtod(text, &end), unit = 1;
    for (int i = 0; units[i] && unit == 1; i++)
        if (*end == units[i] || (*end == 'K' && i == 0) || (*end == 'B' && i == 2))
            unit = pow(1000, i + 1);
    bool hex = strchr(text, 'x') || strchr(text, 'X');
    if (end == text || end[unit > 1] || hex || !(x >= 0 && x * unit <= 1e18))
        return qn_fail(QN_EUSAGE, "%s: expected a number such as 50000, 1.5e9 or 300k, found '%s'",
                       option, text);
    *out = x * unit;
    return QN_OK;
}

QnStatus qn_plan_number(const QnArgs *a, int option, double otherwise, double *out)
{
    *out = otherwise;
    return a->text[option] ? read_size(name_of(a, option), a->text[option], out) : QN_OK;
}

QnStatus qn_plan_time(const QnArgs *a, int option, double *seconds)
{
    static const char units[] = "wdhms";
    static const double each[] = { 604800, 86400, 3600, 60, 1 };
    const char *text = a->text[option], *at = text;
    char *end;
    int last = -1; /* units stand from the largest on: 1d12h */
    *seconds = 0;
    for (bool ok = true; at && ok && (*at || at == text); at = end + 1) {
        double x = strtod(at, &end);
        const char *unit = *end ? strchr(units, *end) : NULL;
        ok = end != at && unit && unit - units > last && x >= 0 && x < 1e9;
        if (!ok)
            return qn_fail(QN_EUSAGE,
                           "%s: expected a time such as 90m, 48h, 7d or 1d12h, found '%s'",
                           name_of(a, option), text);
        last = (int)(unit - units);
        *seconds += x * each[last];
    }
    if (text && !(*seconds > 0))
        return qn_fail(QN_EUSAGE, "%s: expected a time above 0, found '%s'", name_of(a, option),
                       text);
    return QN_OK;
}

const char *qn_plan_time_text(double seconds, char out[QN_PLAN_NAME])
{
    long long minutes = (long long)ceil(seconds / 60 * (1 + 1e-9));
    if (minutes < 60)
        snprintf(out, QN_PLAN_NAME, "%lldm", minutes);
    else if (minutes < 48 * 60)
        snprintf(out, QN_PLAN_NAME, "%lldh%02lldm", minutes / 60, minutes % 60);
    else
        snprintf(out, QN_PLAN_NAME, "%lldd%lldh", minutes / 1440, (minutes % 1440 + 59) / 60);
    return out;
}

const char *qn_plan_amount(double amount, char out[QN_STR_NUMBER])
{
    snprintf(out, QN_STR_NUMBER, amount < 999.5 ? "%.3g" : amount < 1e9 ? "%.0f" : "%.3g", amount);
    return out;
}

const char *qn_plan_span(double hours, char out[QN_STR_NUMBER])
{
    double years = hours / 8760;
    if (!(years > 100))
        return qn_str_duration(out, (int64_t)(hours * 3.6e12));
    snprintf(out, QN_STR_NUMBER, years < 9999.5 ? "%.0f years" : "%.3g years", years);
    return out;
}

/* ---- money ---- */

QnStatus qn_plan_money(const QnArgs *a, QnMoney *m)
{
    *m = qn_money_default();
    if (a->text[QN_PLAN_RENT] && a->text[QN_PLAN_BUY])
        return qn_fail(QN_EUSAGE, "--rent and --buy: one of them at a time");
    m->by = a->text[QN_PLAN_RENT] ? QN_PAY_RENT : a->text[QN_PLAN_BUY] ? QN_PAY_BUY : QN_PAY_EITHER;
    QN_TRY(qn_plan_number(a, QN_PLAN_ELECTRICITY, m->electricity, &m->electricity));
    QN_TRY(qn_plan_number(a, QN_PLAN_PUE, m->pue, &m->pue));
    QN_TRY(qn_plan_number(a, QN_PLAN_YEARS, m->years, &m->years));
    QN_TRY(qn_plan_number(a, QN_PLAN_UTILISATION, m->utilisation, &m->utilisation));
    QN_TRY(qn_plan_number(a, QN_PLAN_RESIDUAL, m->residual, &m->residual));
    QN_TRY(qn_plan_number(a, QN_PLAN_HOST, m->host, &m->host));
    return qn_money_check(m);
}

/* ---- devices ---- */

/* "USD" for all devices, or "NAME=USD,…". */
static QnStatus set_amounts(const QnArgs *a, int option, QnCatalogue *c, size_t offset)
{
    const char *list = a->text[option];
    char *text = list ? qn_strdup(list) : NULL;
    QnStatus st = text || !list ? QN_OK : QN_ENOMEM;
    for (char *part = text, *next; part && st == QN_OK; part = next) {
        const QnCard *card = NULL;
        double usd;
        next = strchr(part, ',');
        if (next)
            *next++ = 0;
        char *equals = strchr(part, '=');
        if (equals) {
            *equals = 0;
            st = qn_catalogue_find(c, part, &card);
        }
        if (st == QN_OK)
            st = read_size(name_of(a, option), equals ? equals + 1 : part, &usd);
        if (st == QN_OK && !(usd > 0))
            st = qn_fail(QN_EUSAGE,
                         "%s: expected an amount above 0; what is there and paid for costs its "
                         "electricity: --buy --residual 1",
                         name_of(a, option));
        for (int i = 0; st == QN_OK && i < c->n_cards; i++)
            if (!card || card == &c->cards[i])
                memcpy((char *)&c->cards[i] + offset, &usd, sizeof usd);
    }
    qn_free(text);
    return st;
}

QnStatus qn_plan_catalogue(const QnArgs *a, QnCatalogue *c)
{
    const char *path = a->text[QN_PLAN_DEVICES];
    char *text = NULL;
    size_t bytes;
    QN_TRY(qn_catalogue_open(c));
    QnStatus st = path ? qn_file_read(path, (size_t)1 << 26, &text, &bytes) : QN_OK;
    if (st == QN_OK && path)
        st = qn_catalogue_add(c, path, text, bytes);
    if (st == QN_OK)
        st = set_amounts(a, QN_PLAN_HOURLY, c, offsetof(QnCard, cloud_usd));
    if (st == QN_OK)
        st = set_amounts(a, QN_PLAN_PRICE, c, offsetof(QnCard, price_usd));
    qn_free(text);
    if (st != QN_OK)
        qn_catalogue_fini(c);
    return st;
}

/* Without the spaces around it. */
static QnStatus read_name(const char *option, const char *text, size_t n, char name[QN_PLAN_NAME])
{
    while (n && isspace((unsigned char)*text)) {
        text++;
        n--;
    }
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    if (!n)
        return qn_fail(QN_EUSAGE, "%s: the name of a device is missing, before or after a comma",
                       option);
    for (size_t i = 0; i < n;) {
        int length = qn_utf8_length(text + i, n - i);
        if (!length)
            return qn_fail(QN_EUSAGE, "%s: byte %zu of the name is no text in UTF-8", option,
                           i + 1);
        i += (size_t)length;
    }
    snprintf(name, QN_PLAN_NAME, "%.*s", (int)QN_MIN(n, QN_PLAN_NAME), text);
    return QN_OK;
}

QnStatus qn_plan_count(const char *option, const char *text, char name[QN_PLAN_NAME], int *n)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long count = 1;
    QN_TRY(read_name(option, text, colon ? (size_t)(colon - text) : strlen(text), name));
    if (colon) {
        count = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || end[strspn(end, " \t")] || count < 1 || count > 16384)
            return qn_fail(QN_EUSAGE,
                           "%s: '%s': expected a number of devices, 1 to 16384, after the colon",
                           option, text);
    }
    *n = (int)count;
    return QN_OK;
}

/* "8xRTX 4090", "8 RTX 4090", "RTX 4090 x8": the number, and the name that is left; 0: none. */
static int foreign_count(const char *text, char name[QN_PLAN_NAME])
{
    int n = 0, used = 0;
    size_t length = strlen(text), digits = length;
    if (sscanf(text, "%4d%*[ x*]%n", &n, &used) == 1 && used > 0 && n > 0) {
        snprintf(name, QN_PLAN_NAME, "%s", text + used);
        return n;
    }
    while (digits && isdigit((unsigned char)text[digits - 1]))
        digits--;
    size_t mark = digits;
    while (mark && strchr(" x*", text[mark - 1]))
        mark--;
    if (digits == length || mark == digits || !strpbrk(text + mark, "x*"))
        return 0;
    snprintf(name, QN_PLAN_NAME, "%.*s", (int)QN_MIN(mark, QN_PLAN_NAME), text);
    return sscanf(text + digits, "%4d", &n) == 1 ? n : 0;
}

QnStatus qn_plan_count_hint(const QnCatalogue *c, const char *option, const char *text)
{
    char name[QN_PLAN_NAME];
    const QnCard *card;
    QnError was = *qn_error_last();
    int n = foreign_count(text, name);
    if (n > 0 && qn_catalogue_find(c, name, &card) == QN_OK)
        return qn_fail(QN_ENOTFOUND, "%s: no device '%s'; did you mean '%s:%d'?", option, text,
                       card->name, n);
    return qn_fail(was.code, "%s", was.text);
}

QnStatus qn_plan_device(const QnCatalogue *c, const char *option, const char *text,
                        const QnCard **card, int *n)
{
    char name[QN_PLAN_NAME];
    QN_TRY(qn_plan_count(option, text, name, n));
    QnStatus st = qn_catalogue_find(c, name, card);
    return st == QN_ENOTFOUND ? qn_plan_count_hint(c, option, name) : st;
}

void qn_plan_offer_name(const QnOffer *o, char *text, size_t bytes)
{
    if (o->n_cards > 1)
        snprintf(text, bytes, "%s:%d", o->card->name, o->n_cards);
    else
        snprintf(text, bytes, "%s", o->card->name);
}

const char *qn_plan_name(const QnOffer *o, char out[QN_PLAN_NAME])
{
    qn_plan_offer_name(o, out, QN_PLAN_NAME);
    return out;
}
