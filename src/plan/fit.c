#include "plan/fit.h"

#include "base/hash.h"
#include "plan/effect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 16, SWEEPS = 8, MAX_KEYS = QN_EFFECT_GROUPS + 3 };

/* What a parameter multiplies: a part of the device's time, or something of the step that the
 * derivative by trial finds. */
enum {
    SLOT_TRIAL = QN_PARTS, /* and on: the coefficients that qn_cost_close reads */
    SLOT_GAP = SLOT_TRIAL,
    SLOT_LAUNCH,
    SLOT_UPDATE,
    SLOT_STEP,
    SLOT_ASYNC,
    SLOT_COPY,
    SLOT_LINK,
    SLOT_LINK_US,
    SLOT_OVERLAP,
    SLOT_HOST,
    SLOT_REPLICA,
    SLOTS
};

typedef struct FitRow {
    const QnMeasured *m;
    QnCostItem *prompt, *items;
    int64_t n_prompt, n_items;
    int key[MAX_KEYS];
    int n_keys;
    double slot[SLOTS]; /* d log(seconds) / d log(what) */
    double logs[QN_EFFECT_PARTS];
    double left, weight; /* log(measured / predicted); 1 / variance */
} FitRow;

/* Rows that have a tier, an architecture, or a group's key in common. */
typedef struct Key {
    char *name; /* of an effect; NULL: of coefficients */
    QnEffectGroup group;
    int *rows;
    int n, cap;
} Key;

typedef struct Param {
    int key, slot, coef; /* coef -1: an effect */
    double sign;         /* of the slot: rates divide */
    double value, sigma; /* value: log of factor on the start */
    double step, variance;
} Param;

typedef struct Fit {
    QnArena *arena;
    QnCoefs coefs;
    FitRow *rows;
    int n_rows;
    Key *keys;
    int64_t n_keys, cap_keys;
    int *table; /* of keys by hash, -1: free */
    int n_table;
    Param *params;
    int64_t n_params, cap_params;
    double sigma[QN_EFFECT_GROUPS][QN_EFFECT_PARTS];
    double noise[QN_TIERS];
} Fit;

/* ---- coefficients as slots ---- */

static int slot_of(const QnCoefInfo *info, double *sign, double *sigma)
{
    static const struct {
        int slot;
        double sign, sigma;
    } of_tier[QN_COEFS_OF_TIER] = {
        [QN_COEF_GEMM] = { QN_PART_GEMM_RATE, -1, 0.4 },
        [QN_COEF_CONV] = { QN_PART_CONV_RATE, -1, 0.4 },
        [QN_COEF_DEPTHWISE] = { QN_PART_DEPTHWISE_RATE, -1, 0.6 },
        [QN_COEF_ATTENTION] = { QN_PART_ATTENTION_RATE, -1, 0.5 },
        [QN_COEF_RECURRENT] = { QN_PART_RECURRENT_RATE, -1, 0.6 },
        [QN_COEF_MOVE] = { QN_PART_MOVE_RATE, -1, 0.4 },
        [QN_COEF_GAP_US] = { SLOT_GAP, 1, 0.5 },
        [QN_COEF_LAUNCH_US] = { SLOT_LAUNCH, 1, 0.7 },
        [QN_COEF_UPDATE] = { SLOT_UPDATE, 1, 0.7 },
        [QN_COEF_STEP_US] = { SLOT_STEP, 1, 1 },
        [QN_COEF_SPREAD] = { -1, 0, 0 },
    };
    static const struct {
        int slot;
        double sign, sigma;
    } of_arch[QN_COEFS_OF_ARCH] = {
        [QN_COEF_COMPUTE] = { QN_PART_PLAIN, -1, 0.3 },
        [QN_COEF_TENSOR] = { QN_PART_TENSOR, -1, 0.3 },
        [QN_COEF_MEMORY] = { QN_PART_MEMORY, -1, 0.2 },
    };
    static const struct {
        int slot;
        double sign, sigma;
    } of_all[QN_COEFS_OF_ALL] = {
        [QN_COEF_HALF_K] = { QN_PART_HALF_K, 1, 0.5 },
        [QN_COEF_WINOGRAD] = { QN_PART_WINOGRAD, -1, 0.3 },
        [QN_COEF_STREAM] = { QN_PART_STREAM, -1, 0.2 },
        [QN_COEF_SCATTER] = { QN_PART_SCATTER, -1, 0.5 },
        [QN_COEF_CACHE] = { QN_PART_CACHE, -1, 0.5 },
        [QN_COEF_POWER] = { QN_PART_POWER, 1, 1 },
        [QN_COEF_ASYNC] = { SLOT_ASYNC, 1, 0.5 },
        [QN_COEF_COPY_GBS] = { SLOT_COPY, 1, 0.5 },
        [QN_COEF_LINK] = { SLOT_LINK, 1, 0.5 },
        [QN_COEF_LINK_US] = { SLOT_LINK_US, 1, 0.5 },
        [QN_COEF_OVERLAP] = { SLOT_OVERLAP, 1, 0.5 },
        [QN_COEF_HOST] = { SLOT_HOST, 1, 0.5 },
        [QN_COEF_REPLICA] = { SLOT_REPLICA, 1, 0.5 },
        [QN_COEF_INTERVAL] = { -1, 0, 0 },
        [QN_COEF_INTERVAL_CARD] = { -1, 0, 0 },
        [QN_COEF_INTERVAL_MODEL] = { -1, 0, 0 },
    };
    *sign = info->tier >= 0   ? of_tier[info->which].sign
            : info->arch >= 0 ? of_arch[info->which].sign
                              : of_all[info->which].sign;
    *sigma = info->tier >= 0   ? of_tier[info->which].sigma
             : info->arch >= 0 ? of_arch[info->which].sigma
                               : of_all[info->which].sigma;
    return info->tier >= 0   ? of_tier[info->which].slot
           : info->arch >= 0 ? of_arch[info->which].slot
                             : of_all[info->which].slot;
}

/* ---- rows, keys, parameters ---- */

static int find_key(Fit *f, const char *name)
{
    int at = (int)(qn_hash_str(name) % (uint64_t)f->n_table);
    while (f->table[at] >= 0 && strcmp(f->keys[f->table[at]].name, name) != 0)
        at = (at + 1) % f->n_table;
    return at;
}

static QnStatus new_key(Fit *f, const char *name, QnEffectGroup group, int *out)
{
    QN_TRY(QN_GROW(f->keys, f->cap_keys, f->n_keys));
    Key *key = &f->keys[f->n_keys];
    *key = (Key){ .group = group };
    if (name) {
        size_t bytes = strlen(name) + 1;
        key->name = qn_arena_alloc(f->arena, bytes);
        if (!key->name)
            return QN_ENOMEM;
        memcpy(key->name, name, bytes);
    }
    *out = (int)f->n_keys++;
    return QN_OK;
}

static QnStatus join_key(Fit *f, int row, int key)
{
    Key *k = &f->keys[key];
    int64_t cap = k->cap;
    QN_TRY(qn_grow((void **)&k->rows, &cap, k->n, sizeof *k->rows));
    k->cap = (int)cap;
    k->rows[k->n++] = row;
    f->rows[row].key[f->rows[row].n_keys++] = key;
    return QN_OK;
}

static QnStatus add_items(Fit *f, const QnCount *count, const QnCostRequest *r, QnCostItem **items,
                          int64_t *n)
{
    if (!count)
        return QN_OK;
    *items = qn_arena_array(f->arena, (size_t)count->n_work + 1, sizeof **items);
    if (!*items)
        return QN_ENOMEM;
    *n = qn_cost_items(count, r, *items);
    return QN_OK;
}

/* Keys 0 .. are of all, of the tiers, of the architectures. */
static QnStatus add_row(Fit *f, const QnMeasured *m)
{
    int at = f->n_rows++;
    FitRow *row = &f->rows[at];
    const QnCostRequest *r = &m->request;
    *row = (FitRow){ .m = m };
    QN_TRY(add_items(f, m->prompt, r, &row->prompt, &row->n_prompt));
    QN_TRY(add_items(f, m->count, r, &row->items, &row->n_items));
    QN_TRY(join_key(f, at, 0));
    QN_TRY(join_key(f, at, 1 + (int)r->tier));
    QN_TRY(join_key(f, at, 1 + QN_TIERS + qn_arch_of(r->card)));
    for (int g = 0; g < QN_EFFECT_GROUPS; g++) {
        char name[QN_EFFECT_KEY_BYTES];
        int key;
        if (!qn_effect_key(r, (QnEffectGroup)g, name))
            continue;
        int slot = find_key(f, name);
        if (f->table[slot] < 0) {
            QN_TRY(new_key(f, name, (QnEffectGroup)g, &key));
            f->table[slot] = key;
        }
        QN_TRY(join_key(f, at, f->table[slot]));
    }
    return QN_OK;
}

static QnStatus add_param(Fit *f, Param p)
{
    QN_TRY(QN_GROW(f->params, f->cap_params, f->n_params));
    f->params[f->n_params++] = p;
    return QN_OK;
}

static QnStatus add_params(Fit *f)
{
    for (int c = 0; c < QN_COEF_COUNT; c++) {
        QnCoefInfo info = qn_coef_info(c);
        Param p = { .coef = c };
        p.key = info.tier >= 0 ? 1 + info.tier : info.arch >= 0 ? 1 + QN_TIERS + info.arch : 0;
        p.slot = slot_of(&info, &p.sign, &p.sigma);
        if (p.slot >= 0 && f->keys[p.key].n)
            QN_TRY(add_param(f, p));
    }
    for (int key = 1 + QN_TIERS + QN_ARCHS; key < f->n_keys; key++)
        for (int part = 0; part < QN_EFFECT_PARTS; part++)
            if (f->sigma[f->keys[key].group][part] > 0)
                QN_TRY(add_param(f, (Param){ .key = key, .slot = part, .coef = -1, .sign = 1 }));
    return QN_OK;
}

static QnStatus open_fit(Fit *f, const QnMeasuredSet *s, const bool *use)
{
    int key;
    *f = (Fit){ .arena = qn_arena_new(), .n_table = 16 + (int)s->n * QN_EFFECT_GROUPS * 2 };
    if (!f->arena)
        return QN_ENOMEM;
    f->rows = qn_arena_array(f->arena, (size_t)s->n + 1, sizeof *f->rows);
    f->table = qn_arena_array(f->arena, (size_t)f->n_table, sizeof *f->table);
    if (!f->rows || !f->table)
        return QN_ENOMEM;
    for (int i = 0; i < f->n_table; i++)
        f->table[i] = -1;
    qn_coefs_start(&f->coefs);
    for (int g = 0; g < QN_EFFECT_GROUPS; g++)
        for (int p = 0; p < QN_EFFECT_PARTS; p++)
            f->sigma[g][p] = qn_effect_sigma((QnEffectGroup)g, (QnTimePart)p);
    for (int t = 0; t < QN_TIERS; t++)
        f->noise[t] = 0.2;
    for (int i = 0; i < 1 + QN_TIERS + QN_ARCHS; i++)
        QN_TRY(new_key(f, NULL, QN_EFFECT_GROUPS, &key));
    for (int64_t i = 0; i < s->n; i++)
        if (!s->rows[i].reason && !s->rows[i].divided && (!use || use[i]))
            QN_TRY(add_row(f, &s->rows[i]));
    return add_params(f);
}

static void close_fit(Fit *f)
{
    for (int64_t i = 0; i < f->n_keys; i++)
        qn_free(f->keys[i].rows);
    qn_free(f->keys);
    qn_free(f->params);
    qn_arena_free(f->arena);
}

/* ---- linearising ---- */

static double *trial_coef(QnCoefs *k, int slot, QnTier tier)
{
    switch (slot) {
    case SLOT_GAP: return &k->tier[tier][QN_COEF_GAP_US];
    case SLOT_LAUNCH: return &k->tier[tier][QN_COEF_LAUNCH_US];
    case SLOT_UPDATE: return &k->tier[tier][QN_COEF_UPDATE];
    case SLOT_STEP: return &k->tier[tier][QN_COEF_STEP_US];
    case SLOT_ASYNC: return &k->all[QN_COEF_ASYNC];
    case SLOT_COPY: return &k->all[QN_COEF_COPY_GBS];
    case SLOT_LINK: return &k->all[QN_COEF_LINK];
    case SLOT_LINK_US: return &k->all[QN_COEF_LINK_US];
    case SLOT_OVERLAP: return &k->all[QN_COEF_OVERLAP];
    case SLOT_HOST: return &k->all[QN_COEF_HOST];
    default: return &k->all[QN_COEF_REPLICA];
    }
}

static double close_row(const FitRow *row, const QnCostSum *sum, const QnCoefs *k,
                        const double *logs)
{
    const QnMeasured *m = row->m;
    return log(
        qn_cost_close(sum, m->count, m->times + (m->prompt != NULL), &m->request, k, logs, NULL));
}

/* Predicts the row and finds all its slots; `few` by trial. */
static void linearise(Fit *f, FitRow *row)
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
    for (int slot = SLOT_TRIAL; slot < SLOTS; slot++) {
        double *coef = trial_coef(&f->coefs, slot, m->request.tier), before = *coef;
        *coef *= exp(delta);
        row->slot[slot] = (close_row(row, &sum, &f->coefs, row->logs) - at) / delta;
        *coef = before;
    }
}

static void set_weights(Fit *f)
{
    for (int i = 0; i < f->n_rows; i++) {
        FitRow *row = &f->rows[i];
        double s = f->noise[row->m->request.tier], x = row->left / s;
        row->weight = 1 / (s * s * sqrt(1 + x * x));
    }
}

/* ---- solving ---- */

static double sigma_of(const Fit *f, const Param *p)
{
    return p->coef >= 0 ? p->sigma : f->sigma[f->keys[p->key].group][p->slot];
}

/* One parameter's best step, all others held. */
static void relax(Fit *f, Param *p)
{
    const Key *key = &f->keys[p->key];
    double sigma = sigma_of(f, p), pull = 1 / (sigma * sigma);
    double top = -pull * (p->value + p->step), bottom = pull;
    for (int i = 0; i < key->n; i++) {
        const FitRow *row = &f->rows[key->rows[i]];
        double x = p->sign * row->slot[p->slot];
        top += row->weight * x * row->left;
        bottom += row->weight * x * x;
    }
    double move = top / bottom;
    p->variance = 1 / bottom;
    p->step += move;
    for (int i = 0; i < key->n; i++) {
        FitRow *row = &f->rows[key->rows[i]];
        row->left -= move * p->sign * row->slot[p->slot];
    }
}

/* Takes the steps, as far as the linear model can be trusted, and writes the values back. */
static void apply(Fit *f)
{
    const double most = 1; /* what is further off than e is no effect but an error */
    for (int i = 0; i < f->n_rows; i++)
        memset(f->rows[i].logs, 0, sizeof f->rows[i].logs);
    for (int64_t i = 0; i < f->n_params; i++) {
        Param *p = &f->params[i];
        const Key *key = &f->keys[p->key];
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
static QnStatus set_noise(Fit *f)
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
static void set_sigmas(Fit *f)
{
    enum { START = 20 };
    double sum[QN_EFFECT_GROUPS][QN_EFFECT_PARTS] = { 0 },
           n[QN_EFFECT_GROUPS][QN_EFFECT_PARTS] = { 0 };
    for (int64_t i = 0; i < f->n_params; i++) {
        const Param *p = &f->params[i];
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

static QnStatus solve(Fit *f)
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

static QnStatus write_lines(Fit *f, char **lines, int64_t n, QnStr *table)
{
    qsort(lines, (size_t)n, sizeof *lines, by_text);
    for (int64_t i = 0; i < n; i++)
        qn_str_printf(table, "%s\n", lines[i]);
    (void)f;
    return QN_OK;
}

static char *new_line(Fit *f, const char *key, int part, double value, double deviation)
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

static QnStatus write_effects(Fit *f, QnStr *table)
{
    const double least = 0.005; /* effects that are worth a line */
    int64_t n = 0, room = f->n_params + QN_EFFECT_GROUPS * QN_EFFECT_PARTS;
    char **lines = qn_arena_array(f->arena, (size_t)room, sizeof *lines);
    if (!lines)
        return QN_ENOMEM;
    for (int64_t i = 0; i < f->n_params; i++) {
        const Param *p = &f->params[i];
        const Key *key = &f->keys[p->key];
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

static QnStatus write_table(Fit *f, QnStr *table)
{
    for (int t = 0; t < QN_TIERS; t++)
        f->coefs.tier[t][QN_COEF_SPREAD] = f->noise[t];
    qn_coefs_print(&f->coefs, table);
    QN_TRY(write_effects(f, table));
    return table->s ? QN_OK : QN_ENOMEM;
}

QnStatus qn_fit(const QnMeasuredSet *s, const bool *use, QnStr *table)
{
    Fit f;
    QnStatus st = open_fit(&f, s, use);
    if (st == QN_OK)
        st = solve(&f);
    if (st == QN_OK)
        st = write_table(&f, table);
    close_fit(&f);
    return st;
}
