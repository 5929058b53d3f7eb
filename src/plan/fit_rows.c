#include "plan/fit_rows.h"

#include "base/hash.h"

#include <string.h>

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
        [QN_COEF_GAP_US] = { QN_SLOT_GAP, 1, 0.5 },
        [QN_COEF_LAUNCH_US] = { QN_SLOT_LAUNCH, 1, 0.7 },
        [QN_COEF_UPDATE] = { QN_SLOT_UPDATE, 1, 0.7 },
        [QN_COEF_STEP_US] = { QN_SLOT_STEP, 1, 1 },
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
        [QN_COEF_ASYNC] = { QN_SLOT_ASYNC, 1, 0.5 },
        [QN_COEF_COPY_GBS] = { QN_SLOT_COPY, 1, 0.5 },
        [QN_COEF_LINK] = { QN_SLOT_LINK, 1, 0.5 },
        [QN_COEF_LINK_US] = { QN_SLOT_LINK_US, 1, 0.5 },
        [QN_COEF_OVERLAP] = { QN_SLOT_OVERLAP, 1, 0.5 },
        [QN_COEF_HOST] = { QN_SLOT_HOST, 1, 0.5 },
        [QN_COEF_REPLICA] = { QN_SLOT_REPLICA, 1, 0.5 },
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

static int find_key(QnFit *f, const char *name)
{
    int at = (int)(qn_hash_str(name) % (uint64_t)f->n_table);
    while (f->table[at] >= 0 && strcmp(f->keys[f->table[at]].name, name) != 0)
        at = (at + 1) % f->n_table;
    return at;
}

static QnStatus new_key(QnFit *f, const char *name, QnEffectGroup group, int *out)
{
    QN_TRY(QN_GROW(f->keys, f->cap_keys, f->n_keys));
    QnFitKey *key = &f->keys[f->n_keys];
    *key = (QnFitKey){ .group = group };
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

static QnStatus join_key(QnFit *f, int row, int key)
{
    QnFitKey *k = &f->keys[key];
    int64_t cap = k->cap;
    QN_TRY(qn_grow((void **)&k->rows, &cap, k->n, sizeof *k->rows));
    k->cap = (int)cap;
    k->rows[k->n++] = row;
    f->rows[row].key[f->rows[row].n_keys++] = key;
    return QN_OK;
}

static QnStatus add_items(QnFit *f, const QnCount *count, const QnCostRequest *r,
                          QnCostItem **items, int64_t *n)
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
static QnStatus add_row(QnFit *f, const QnMeasured *m)
{
    int at = f->n_rows++;
    QnFitRow *row = &f->rows[at];
    const QnCostRequest *r = &m->request;
    *row = (QnFitRow){ .m = m };
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

static QnStatus add_param(QnFit *f, QnFitParam p)
{
    QN_TRY(QN_GROW(f->params, f->cap_params, f->n_params));
    f->params[f->n_params++] = p;
    return QN_OK;
}

static QnStatus add_params(QnFit *f)
{
    for (int c = 0; c < QN_COEF_COUNT; c++) {
        QnCoefInfo info = qn_coef_info(c);
        QnFitParam p = { .coef = c };
        p.key = info.tier >= 0 ? 1 + info.tier : info.arch >= 0 ? 1 + QN_TIERS + info.arch : 0;
        p.slot = slot_of(&info, &p.sign, &p.sigma);
        if (p.slot >= 0 && f->keys[p.key].n)
            QN_TRY(add_param(f, p));
    }
    for (int key = 1 + QN_TIERS + QN_ARCHS; key < f->n_keys; key++)
        for (int part = 0; part < QN_EFFECT_PARTS; part++)
            if (f->sigma[f->keys[key].group][part] > 0)
                QN_TRY(
                    add_param(f, (QnFitParam){ .key = key, .slot = part, .coef = -1, .sign = 1 }));
    return QN_OK;
}

QnStatus qn_fit_open(QnFit *f, const QnMeasuredSet *s, const bool *use)
{
    int key;
    *f = (QnFit){ .arena = qn_arena_new(), .n_table = 16 + (int)s->n * QN_EFFECT_GROUPS * 2 };
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

void qn_fit_close(QnFit *f)
{
    for (int64_t i = 0; i < f->n_keys; i++)
        qn_free(f->keys[i].rows);
    qn_free(f->keys);
    qn_free(f->params);
    qn_arena_free(f->arena);
}
