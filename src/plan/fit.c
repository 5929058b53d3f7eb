#include "plan/fit.h"

#include "plan/fit_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 60, SWEEPS = 12 };

/* ---- linearising ---- */

static double *trial_coef(QnCoefs *k, int slot, QnTier tier)
{
    switch (slot) {
    case QN_SLOT_GAP: return &k->tier[tier][QN_COEF_GAP_US];
    case QN_SLOT_LAUNCH: return &k->tier[tier][QN_COEF_LAUNCH_US];
    case QN_SLOT_UPDATE: return &k->tier[tier][QN_COEF_UPDATE];
    case QN_SLOT_STEP: return &k->tier[tier][QN_COEF_STEP_US];
    case QN_SLOT_ASYNC: return &k->all[QN_COEF_ASYNC];
    case QN_SLOT_COPY: return &k->all[QN_COEF_COPY_GBS];
    case QN_SLOT_LINK: return &k->all[QN_COEF_LINK];
    case QN_SLOT_LINK_US: return &k->all[QN_COEF_LINK_US];
    case QN_SLOT_OVERLAP: return &k->all[QN_COEF_OVERLAP];
    case QN_SLOT_HOST: return &k->all[QN_COEF_HOST];
    default: return &k->all[QN_COEF_REPLICA];
    }
}

static double close_row(const QnFitRow *row, const QnCostSum *sum, const QnCoefs *k,
                        const double *logs)
{
    const QnMeasured *m = row->m;
    return log(
        qn_cost_close(sum, m->count, m->times + (m->prompt != NULL), &m->request, k, logs, NULL));
}

/* Predicts the row and finds all its slots; `few` by trial. */
static void linearise(QnFit *f, QnFitRow *row)
{
    const double delta = 1e-3;
    const QnMeasured *m = row->m;
    QnCostSum sum = { 0 };
    qn_cost_add(&sum, row->prompt, row->n_prompt, &m->request, &f->coefs, row->logs, 1);
    qn_cost_add(&sum, row->items, row->n_items, &m->request, &f->coefs, row->logs, m->times);
    double at = close_row(row, &sum, &f->coefs, row->logs);
    row->left = log(m->measured_s) - at;
    QnCostSum more = sum;
    more.device_s *= exp(delta);
    double by_device = (close_row(row, &more, &f->coefs, row->logs) - at) / delta;
    for (int p = 0; p < QN_PARTS; p++)
        row->slot[p] = sum.device_s > 0 ? by_device * sum.part_s[p] / sum.device_s : 0;
    row->slot[QN_PART_ALL] = 1;
    for (int p = QN_PART_HOST; p <= QN_PART_LINK; p++) {
        double before = row->logs[p];
        row->logs[p] += delta;
        row->slot[p] = (close_row(row, &sum, &f->coefs, row->logs) - at) / delta;
        row->logs[p] = before;
    }
    for (int slot = QN_SLOT_TRIAL; slot < QN_SLOTS; slot++) {
        double *coef = trial_coef(&f->coefs, slot, m->request.tier), before = *coef;
        *coef *= exp(delta);
        row->slot[slot] = (close_row(row, &sum, &f->coefs, row->logs) - at) / delta;
        *coef = before;
    }
}

static void set_weights(QnFit *f)
{
    for (int i = 0; i < f->n_rows; i++) {
        QnFitRow *row = &f->rows[i];
        double s = f->noise[row->m->request.tier], x = row->left / s;
        row->weight = 1 / (s * s * sqrt(1 + x * x));
    }
}

/* ---- solving ---- */

static double sigma_of(const QnFit *f, const QnFitParam *p)
{
    return p->coef >= 0 ? p->sigma : f->sigma[f->keys[p->key].group][p->slot];
}

/* One parameter's best step, all others held. */
static void relax(QnFit *f, QnFitParam *p)
{
    const QnFitKey *key = &f->keys[p->key];
    double sigma = sigma_of(f, p), pull = 1 / (sigma * sigma);
    double top = -pull * (p->value + p->step), bottom = pull;
    for (int i = 0; i < key->n; i++) {
        const QnFitRow *row = &f->rows[key->rows[i]];
        double x = p->sign * row->slot[p->slot];
        top += row->weight * x * row->left;
        bottom += row->weight * x * x;
    }
    double move = top / bottom;
    p->variance = 1 / bottom;
    p->step += move;
    for (int i = 0; i < key->n; i++) {
        QnFitRow *row = &f->rows[key->rows[i]];
        row->left -= move * p->sign * row->slot[p->slot];
    }
}

/* Takes the steps, as far as the linear model can be trusted, and writes the values back. */
static void apply(QnFit *f)
{
    const double most = 1; /* what is further off than e is no effect but an error */
    for (int i = 0; i < f->n_rows; i++)
        memset(f->rows[i].logs, 0, sizeof f->rows[i].logs);
    for (int64_t i = 0; i < f->n_params; i++) {
        QnFitParam *p = &f->params[i];
        const QnFitKey *key = &f->keys[p->key];
        p->value += QN_MIN(QN_MAX(p->step, -0.5), 0.5);
        p->step = 0;
        if (p->coef >= 0) {
            QnCoefInfo info = qn_coef_info(p->coef);
            double x = QN_MIN(QN_MAX(info.start * exp(p->value), info.min), info.max);
            p->value = log(x / info.start);
            *qn_coef_at(&f->coefs, p->coef) = x;
            continue;
        }
        p->value = QN_MIN(QN_MAX(p->value, -most), most);
        for (int j = 0; j < key->n; j++)
            f->rows[key->rows[j]].logs[p->slot] += p->value;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The scatter of each tier's rows, from the middle of their absolute deviations. */
static QnStatus set_noise(QnFit *f)
{
    double *left = qn_alloc_array((size_t)f->n_rows + 1, sizeof *left);
    if (!left)
        return QN_ENOMEM;
    for (int t = 0; t < QN_TIERS; t++) {
        int n = 0;
        for (int i = 0; i < f->n_rows; i++)
            if ((int)f->rows[i].m->request.tier == t)
                left[n++] = fabs(f->rows[i].left);
        if (n < 8)
            continue;
        qsort(left, (size_t)n, sizeof *left, by_value);
        f->noise[t] = QN_MIN(QN_MAX(1.48 * left[n / 2], 0.1), 0.5);
    }
    qn_free(left);
    return QN_OK;
}

/* A group's scatter: its effects as they came out and how uncertain each is, with what the group
 * started at counted as so many more effects. */
static void set_sigmas(QnFit *f)
{
    enum { START = 20 };
    double sum[QN_EFFECT_GROUPS][QN_EFFECT_PARTS] = { 0 },
           n[QN_EFFECT_GROUPS][QN_EFFECT_PARTS] = { 0 };
    for (int64_t i = 0; i < f->n_params; i++) {
        const QnFitParam *p = &f->params[i];
        if (p->coef >= 0)
            continue;
        QnEffectGroup g = f->keys[p->key].group;
        sum[g][p->slot] += p->value * p->value + p->variance;
        n[g][p->slot]++;
    }
    for (int g = 0; g < QN_EFFECT_GROUPS; g++) {
        for (int p = 0; p < QN_EFFECT_PARTS; p++) {
            double start = qn_effect_sigma((QnEffectGroup)g, (QnTimePart)p);
            if (start > 0)
                f->sigma[g][p] = sqrt((sum[g][p] + START * start * start) / (n[g][p] + START));
        }
    }
}

static QnStatus solve(QnFit *f)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < f->n_rows; i++)
            linearise(f, &f->rows[i]);
        if (round)
            QN_TRY(set_noise(f));
        set_weights(f);
        for (int sweep = 0; sweep < SWEEPS; sweep++)
            for (int64_t i = 0; i < f->n_params; i++)
                relax(f, &f->params[i]);
        apply(f);
        if (round > 1)
            set_sigmas(f);
    }
    return QN_OK;
}

/* ---- writing ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static QnStatus write_lines(QnFit *f, char **lines, int64_t n, QnStr *table)
{
    qsort(lines, (size_t)n, sizeof *lines, by_text);
    for (int64_t i = 0; i < n; i++)
        qn_str_printf(table, "%s\n", lines[i]);
    (void)f;
    return QN_OK;
}

static char *new_line(QnFit *f, const char *key, int part, double value, double deviation)
{
    char text[QN_EFFECT_KEY_BYTES + 64];
    size_t bytes = (size_t)snprintf(text, sizeof text, "%s%s,%.4f,%.4f", key,
                                    qn_part_name((QnTimePart)part), value, deviation) +
                   1;
    char *line = qn_arena_alloc(f->arena, bytes);
    if (line)
        memcpy(line, text, bytes);
    return line;
}

static QnStatus write_effects(QnFit *f, QnStr *table)
{
    const double least = 0.005; /* effects that are worth a line */
    int64_t n = 0, room = f->n_params + QN_EFFECT_GROUPS * QN_EFFECT_PARTS;
    char **lines = qn_arena_array(f->arena, (size_t)room, sizeof *lines);
    if (!lines)
        return QN_ENOMEM;
    for (int64_t i = 0; i < f->n_params; i++) {
        const QnFitParam *p = &f->params[i];
        const QnFitKey *key = &f->keys[p->key];
        if (p->coef >= 0 || key->group == QN_EFFECT_RUN || fabs(p->value) < least)
            continue;
        lines[n] = new_line(f, key->name, p->slot, p->value, sqrt(p->variance));
        if (!lines[n++])
            return QN_ENOMEM;
    }
    for (int g = 0; g < QN_EFFECT_GROUPS; g++) {
        char key[QN_EFFECT_KEY_BYTES];
        snprintf(key, sizeof key, "any:%s.", qn_effect_group_name((QnEffectGroup)g));
        for (int p = 0; p < QN_EFFECT_PARTS; p++) {
            if (!(f->sigma[g][p] > 0))
                continue;
            lines[n] = new_line(f, key, p, 0, f->sigma[g][p]);
            if (!lines[n++])
                return QN_ENOMEM;
        }
    }
    return write_lines(f, lines, n, table);
}

static QnStatus write_table(QnFit *f, QnStr *table)
{
    for (int t = 0; t < QN_TIERS; t++)
        f->coefs.tier[t][QN_COEF_SPREAD] = f->noise[t];
    qn_coefs_print(&f->coefs, table);
    QN_TRY(write_effects(f, table));
    return table->s ? QN_OK : QN_ENOMEM;
}

QnStatus qn_fit(const QnMeasuredSet *s, const bool *use, QnStr *table)
{
    QnFit f;
    QnStatus st = qn_fit_open(&f, s, use);
    if (st == QN_OK)
        st = solve(&f);
    if (st == QN_OK)
        st = write_table(&f, table);
    qn_fit_close(&f);
    return st;
}
