#include "plan/fit.h"

#include <math.h>
#include <stdlib.h>

typedef struct Fit {
    const QnMeasuredSet *set;
    const bool *use;
    QnCoefs coefs;
    double *error; /* by row: what it adds to the loss */
    double *trial;
} Fit;

static bool takes_part(const Fit *f, int64_t i)
{
    return !f->set->rows[i].reason && (!f->use || f->use[i]);
}

/* Whether coefficient c has a say in the row. */
static bool touches(const QnMeasured *m, int c)
{
    int n_tier = QN_TIERS * QN_COEFS_OF_TIER, n_arch = QN_ARCHS * QN_COEFS_OF_ARCH;
    if (c < n_tier)
        return c / QN_COEFS_OF_TIER == (int)m->request.tier;
    if (c < n_tier + n_arch)
        return (c - n_tier) / QN_COEFS_OF_ARCH == qn_arch_of(m->request.card);
    return c - n_tier - n_arch < QN_COEF_LINK || m->request.n_cards > 1;
}

static double row_error(const Fit *f, const QnMeasured *m)
{
    QnCostResult cost;
    if (qn_measured_predict(m, &f->coefs, &cost) != QN_OK)
        return 1;
    return QN_MIN(fabs(log(cost.step_s / m->measured_s)), 1);
}

/* What holds a coefficient at its start: a factor of e away from it weighs as much as four rows
 * that are altogether wrong. */
static double pull(const QnCoefInfo *info, double value)
{
    double off = log(value / info->start);
    return 4 * off * off;
}

/* Sets coefficient c to x if that is better; says whether it was. */
static bool try_value(Fit *f, int c, double x)
{
    QnCoefInfo info = qn_coef_info(c);
    double *at = qn_coef_at(&f->coefs, c), before = *at, gain;
    x = QN_MIN(QN_MAX(x, info.min), info.max);
    if (x == before)
        return false;
    gain = pull(&info, before) - pull(&info, x);
    *at = x;
    bool any = false;
    for (int64_t i = 0; i < f->set->n; i++) {
        const QnMeasured *m = &f->set->rows[i];
        f->trial[i] = f->error[i];
        if (!takes_part(f, i) || !touches(m, c))
            continue;
        any = true;
        f->trial[i] = row_error(f, m);
        gain += f->error[i] - f->trial[i];
    }
    if (!any || gain <= 1e-9) {
        *at = before;
        return false;
    }
    double *t = f->error;
    f->error = f->trial;
    f->trial = t;
    return true;
}

static bool is_spread(int c)
{
    return c < QN_TIERS * QN_COEFS_OF_TIER && c % QN_COEFS_OF_TIER == QN_COEF_SPREAD;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each tier's interval: within it lie 80 % of the errors. */
static QnStatus fit_spreads(Fit *f)
{
    double *errors = qn_alloc_array((size_t)f->set->n + 1, sizeof *errors);
    if (!errors)
        return QN_ENOMEM;
    for (int tier = 0; tier < QN_TIERS; tier++) {
        size_t n = 0;
        for (int64_t i = 0; i < f->set->n; i++) {
            const QnMeasured *m = &f->set->rows[i];
            QnCostResult cost;
            if (takes_part(f, i) && (int)m->request.tier == tier &&
                qn_measured_predict(m, &f->coefs, &cost) == QN_OK)
                errors[n++] = fabs(log(cost.step_s / m->measured_s));
        }
        if (n < 10)
            continue;
        qsort(errors, n, sizeof *errors, by_value);
        QnCoefInfo info = qn_coef_info(tier * QN_COEFS_OF_TIER + QN_COEF_SPREAD);
        f->coefs.tier[tier][QN_COEF_SPREAD] = QN_MIN(QN_MAX(errors[n * 4 / 5], info.min), info.max);
    }
    qn_free(errors);
    return QN_OK;
}

QnStatus qn_fit(const QnMeasuredSet *s, const bool *use, int sweeps, QnCoefs *out)
{
    Fit f = { .set = s, .use = use };
    double step[QN_COEF_COUNT];
    f.error = qn_alloc_array((size_t)s->n + 1, sizeof *f.error);
    f.trial = qn_alloc_array((size_t)s->n + 1, sizeof *f.trial);
    QnStatus st = f.error && f.trial ? QN_OK : QN_ENOMEM;
    qn_coefs_start(&f.coefs);
    for (int64_t i = 0; i < s->n && st == QN_OK; i++)
        f.error[i] = takes_part(&f, i) ? row_error(&f, &s->rows[i]) : 0;
    for (int c = 0; c < QN_COEF_COUNT; c++)
        step[c] = 1.3;
    for (int sweep = 0; sweep < sweeps && st == QN_OK; sweep++) {
        for (int c = 0; c < QN_COEF_COUNT; c++) {
            double x = *qn_coef_at(&f.coefs, c);
            if (is_spread(c))
                continue;
            if (try_value(&f, c, x * step[c]) || try_value(&f, c, x / step[c]))
                step[c] = QN_MIN(step[c] * step[c], 2);
            else
                step[c] = sqrt(step[c]);
        }
    }
    if (st == QN_OK)
        st = fit_spreads(&f);
    if (st == QN_OK)
        *out = f.coefs;
    qn_free(f.error);
    qn_free(f.trial);
    return st;
}
