#include "plan/rank.h"

#include "plan/money.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Equal jobs but for the batch. */
static int by_run(const void *pa, const void *pb)
{
    const QnMeasured *a = (*(const QnScored *const *)pa)->row;
    const QnMeasured *b = (*(const QnScored *const *)pb)->row;
    const char *texts[][2] = { { a->model, b->model },
                               { a->task, b->task },
                               { a->precision, b->precision },
                               { a->framework, b->framework },
                               { a->unit, b->unit } };
    for (int i = 0; i < QN_COUNT(texts); i++) {
        int c = strcmp(texts[i][0], texts[i][1]);
        if (c)
            return c;
    }
    return 0;
}

static int by_job(const void *pa, const void *pb)
{
    const QnMeasured *a = (*(const QnScored *const *)pa)->row;
    const QnMeasured *b = (*(const QnScored *const *)pb)->row;
    int c = by_run(pa, pb);
    return c ? c
             : (a->count->examples > b->count->examples) -
                   (a->count->examples < b->count->examples);
}

/* Kendall's pairs: of those with different measurements, agreeing minus disagreeing, as a share. */
static double agreement(const QnScored *const *rows, int64_t n)
{
    double agree = 0, pairs = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            double m = rows[i]->row->value - rows[j]->row->value;
            double p = rows[i]->predicted - rows[j]->predicted;
            if (m == 0 || rows[i]->row->request.card == rows[j]->row->request.card)
                continue;
            pairs++;
            agree += p == 0 ? 0 : (p > 0) == (m > 0) ? 1 : -1;
        }
    }
    return pairs > 0 ? agree / pairs : NAN;
}

/* USD for what the device does in the row, if it does so much a second; 0: no price is known. */
static double usd(const QnScored *r, double value)
{
    const QnMoney money = qn_money_default();
    bool rented;
    double rate =
        qn_money_rate(&money, r->row->request.card, 1e-3 * r->row->request.card->tdp_w, &rented);
    return r->row->is_time ? rate * value : rate / value;
}

/* By the cheapest of each device's rows: whether that of all is among the three that are predicted
 * to be. -1: there are fewer than five devices with a price. */
static int cheapest_is_found(const QnScored *const *rows, int64_t n)
{
    enum { MOST = 64, LEAST = 5 };
    const QnCard *card[MOST];
    double measured[MOST], predicted[MOST];
    int devices = 0, best = 0, before = 0;
    for (int64_t i = 0; i < n; i++) {
        int d = 0;
        double m = usd(rows[i], rows[i]->row->value), p = usd(rows[i], rows[i]->predicted);
        while (d < devices && card[d] != rows[i]->row->request.card)
            d++;
        if (!(m > 0) || d == MOST)
            continue;
        measured[d] = d == devices ? m : QN_MIN(m, measured[d]);
        predicted[d] = d == devices ? p : QN_MIN(p, predicted[d]);
        card[d] = rows[i]->row->request.card;
        devices += d == devices;
    }
    for (int d = 1; d < devices; d++)
        best = measured[d] < measured[best] ? d : best;
    for (int d = 0; d < devices; d++)
        before += predicted[d] < predicted[best];
    return devices < LEAST ? -1 : before < 3;
}

QnStatus qn_rank_devices(QnScore *s)
{
    const QnScored **rows = qn_alloc_array((size_t)s->n + 1, sizeof *rows);
    int64_t n = 0;
    double sum = 0;
    if (!rows)
        return QN_ENOMEM;
    for (int64_t i = 0; i < s->n; i++)
        if (s->rows[i].error >= 0 && s->rows[i].row->request.n_cards == 1)
            rows[n++] = &s->rows[i];
    qsort(rows, (size_t)n, sizeof *rows, by_job);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !by_job(&rows[i], &rows[end]); end++)
            continue;
        double t = end - i >= 4 ? agreement(rows + i, end - i) : NAN;
        if (isnan(t))
            continue;
        sum += t;
        s->n_ranked++;
    }
    double top = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !by_run(&rows[i], &rows[end]); end++)
            continue;
        int in = cheapest_is_found(rows + i, end - i);
        top += in > 0;
        s->n_jobs += in >= 0;
    }
    s->top3 = s->n_jobs ? top / (double)s->n_jobs : NAN;
    s->rank_correlation = s->n_ranked ? sum / (double)s->n_ranked : NAN;
    qn_free(rows);
    return QN_OK;
}
