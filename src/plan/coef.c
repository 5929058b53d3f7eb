#include "plan/coef.h"

#include "base/str.h"
#include "plan/names.h"
#include "plan/effect.h"
#include "plan/table.h"
#include "plan/tables.h"

#include <stdio.h>
#include <string.h>

typedef struct Row {
    const char *name;
    double start, min, max;
} Row;

static const Row of_tier[QN_COEFS_OF_TIER] = {
    [QN_COEF_GEMM] = { "gemm", 0.75, 0.02, 1 },
    [QN_COEF_CONV] = { "conv", 0.6, 0.02, 1.5 },
    [QN_COEF_DEPTHWISE] = { "depthwise", 0.3, 0.01, 1 },
    [QN_COEF_ATTENTION] = { "attention", 0.4, 0.01, 1 },
    [QN_COEF_RECURRENT] = { "recurrent", 0.2, 0.01, 1 },
    [QN_COEF_MOVE] = { "move", 0.7, 0.05, 1.5 },
    [QN_COEF_GAP_US] = { "gap_us", 1.5, 0.1, 20 },
    [QN_COEF_LAUNCH_US] = { "launch_us", 5, 0.1, 100 },
    [QN_COEF_UPDATE] = { "update", 1, 0.05, 20 },
    [QN_COEF_STEP_US] = { "step_us", 300, 1, 50000 },
    [QN_COEF_SPREAD] = { "spread", 0.2, 0.02, 3 },
};

static const Row of_arch[QN_COEFS_OF_ARCH] = {
    [QN_COEF_COMPUTE] = { "compute", 1, 0.2, 3 },
    [QN_COEF_TENSOR] = { "tensor", 1, 0.1, 2 },
    [QN_COEF_MEMORY] = { "memory", 1, 0.3, 2.5 },
};

static const Row of_all[QN_COEFS_OF_ALL] = {
    [QN_COEF_HALF_K] = { "half_k", 128, 4, 2048 },
    [QN_COEF_WINOGRAD] = { "winograd", 1.5, 1, 2.25 },
    [QN_COEF_STREAM] = { "stream", 0.8, 0.2, 1.2 },
    [QN_COEF_SCATTER] = { "scatter", 0.5, 0.05, 1 },
    [QN_COEF_CACHE] = { "cache", 2, 1, 6 },
    [QN_COEF_POWER] = { "power", 0.1, 0.001, 1 },
    [QN_COEF_ASYNC] = { "async", 3, 1, 12 },
    [QN_COEF_COPY_GBS] = { "copy_gbs", 5, 0.5, 60 },
    [QN_COEF_LINK] = { "link", 0.6, 0.05, 1 },
    [QN_COEF_LINK_US] = { "link_us", 10, 1, 100 },
    [QN_COEF_OVERLAP] = { "overlap", 0.7, 0.01, 1 },
    [QN_COEF_HOST] = { "host", 0.35, 0.05, 1 },
    [QN_COEF_REPLICA] = { "replica", 1.3, 0.3, 5 },
    [QN_COEF_INTERVAL] = { "interval", 1.28, 0.2, 8 },
    [QN_COEF_INTERVAL_CARD] = { "interval_card", 1.28, 0.2, 8 },
    [QN_COEF_INTERVAL_MODEL] = { "interval_model", 1.28, 0.2, 8 },
};

static const char *const tiers[QN_TIERS] = {
    [QN_TIER_QUERN] = "quern",
    [QN_TIER_EAGER] = "pytorch",
    [QN_TIER_CHANNELS] = "pytorch-nhwc",
    [QN_TIER_COMPILED] = "compiled",
    [QN_TIER_TENSORFLOW] = "tensorflow",
    [QN_TIER_FUSED] = "fused",
    [QN_TIER_MEGATRON] = "megatron",
    [QN_TIER_TENSORRT] = "tensorrt",
    [QN_TIER_LLAMA_CPP] = "llama.cpp",
    [QN_TIER_HABANA] = "habana",
    [QN_TIER_OLD] = "old",
};

/* What cards are by their own word; the rest by what their architecture begins with. */
static const char *const processors[] = { "Xeon", "EPYC", "Core ", "Ryzen", "Threadripper", "CPU" };

/* The first whose text the device's architecture begins with; the last takes the rest. */
static const struct {
    const char *name, *prefix;
} archs[QN_ARCHS] = {
    { "maxwell", "Maxwell" },
    { "pascal", "Pascal" },
    { "volta", "Volta" },
    { "turing", "Turing" },
    { "ga100", "Ampere GA100" },
    { "ampere", "Ampere" },
    { "ada", "Ada" },
    { "hopper", "Hopper" },
    { "blackwell", "Blackwell" },
    { "gaudi", "Habana" },
    { "cdna", "CDNA" },
    { "rdna", "RDNA" },
    { "apple", "M" },
    { "cpu", "\n" },
    { "other", "" },
};

const char *qn_tier_name(QnTier tier)
{
    return tiers[tier];
}

QnStatus qn_tier_find(const char *name, QnTier *tier)
{
    for (int i = 0; i < QN_TIERS; i++) {
        if (!strcmp(name, tiers[i])) {
            *tier = (QnTier)i;
            return QN_OK;
        }
    }
    return qn_names_unknown("software stack", name, tiers, QN_TIERS,
                            "there are quern, pytorch, pytorch-nhwc, compiled, tensorflow, fused, "
                            "megatron, tensorrt, llama.cpp, habana and old");
}

bool qn_tier_is_eager(QnTier tier)
{
    return tier == QN_TIER_EAGER || tier == QN_TIER_CHANNELS || tier == QN_TIER_TENSORFLOW ||
           tier == QN_TIER_OLD;
}

const char *qn_arch_name(int arch)
{
    return archs[arch].name;
}

bool qn_card_is_cpu(const QnCard *card)
{
    for (int i = 0; i < QN_COUNT(processors); i++)
        if (strstr(card->name, processors[i]))
            return true;
    return false;
}

int qn_arch_of(const QnCard *card)
{
    int i = 0;
    if (qn_card_is_cpu(card))
        return QN_ARCHS - 2;
    while (i < QN_ARCHS - 1 && strncmp(card->arch, archs[i].prefix, strlen(archs[i].prefix)) != 0)
        i++;
    return i;
}

QnCoefInfo qn_coef_info(int i)
{
    QnCoefInfo info = { .tier = -1, .arch = -1 };
    const char *group = "all";
    const Row *row = NULL;
    int n_tier = QN_TIERS * QN_COEFS_OF_TIER, n_arch = QN_ARCHS * QN_COEFS_OF_ARCH;
    if (i < n_tier) {
        info.tier = i / QN_COEFS_OF_TIER;
        info.which = i % QN_COEFS_OF_TIER;
        group = tiers[info.tier];
        row = &of_tier[info.which];
    } else if (i < n_tier + n_arch) {
        info.arch = (i - n_tier) / QN_COEFS_OF_ARCH;
        info.which = (i - n_tier) % QN_COEFS_OF_ARCH;
        group = archs[info.arch].name;
        row = &of_arch[info.which];
    } else {
        info.which = i - n_tier - n_arch;
        row = &of_all[info.which];
    }
    snprintf(info.name, sizeof info.name, "%s.%s", group, row->name);
    info.start = row->start;
    info.min = row->min;
    info.max = row->max;
    return info;
}

double *qn_coef_at(QnCoefs *c, int i)
{
    int n_tier = QN_TIERS * QN_COEFS_OF_TIER, n_arch = QN_ARCHS * QN_COEFS_OF_ARCH;
    if (i < n_tier)
        return &c->tier[i / QN_COEFS_OF_TIER][i % QN_COEFS_OF_TIER];
    i -= n_tier;
    return i < n_arch ? &c->arch[i / QN_COEFS_OF_ARCH][i % QN_COEFS_OF_ARCH] : &c->all[i - n_arch];
}

void qn_coefs_start(QnCoefs *c)
{
    *c = (QnCoefs){ .effects = "" };
    if (qn_fleet_open(&c->fleet) != QN_OK)
        qn_fleet_start(&c->fleet); /* of a build with a table that does not fit it */
    for (int i = 0; i < QN_COEF_COUNT; i++)
        *qn_coef_at(c, i) = qn_coef_info(i).start;
}

/* Effects have a colon in their names; they stand after the coefficients. */
static const char *find_effects(const char *text, const char *end)
{
    while (text < end) {
        const char *line = text, *stop = memchr(text, '\n', (size_t)(end - text));
        text = stop ? stop + 1 : end;
        if (memchr(line, ':', (size_t)(text - line)))
            return line;
    }
    return end;
}

void qn_coefs_print(const QnCoefs *c, QnStr *table)
{
    QnCoefs copy = *c;
    qn_str_add(table, "coefficient,value,deviation\n");
    for (int i = 0; i < QN_COEF_COUNT; i++)
        qn_str_printf(table, "%s,%.5g,\n", qn_coef_info(i).name, *qn_coef_at(&copy, i));
    qn_str_add_bytes(table, c->effects, c->effects_bytes);
}

static QnTableRange range_of(int i)
{
    QnCoefInfo info = qn_coef_info(i);
    QnTableRange r = { .start = info.start, .min = info.min, .max = info.max };
    snprintf(r.name, sizeof r.name, "%s", info.name);
    return r;
}

QnStatus qn_coefs_parse(QnCoefs *c, const char *path, const char *text, size_t bytes)
{
    double x[QN_COEF_COUNT];
    const char *effects = find_effects(text, text + bytes);
    size_t before = (size_t)(effects - text);
    qn_coefs_start(c);
    for (int i = 0; i < QN_COEF_COUNT; i++)
        x[i] = *qn_coef_at(c, i);
    QN_TRY(qn_table_values(path, text, before, QN_COEF_COUNT, range_of, x));
    for (int i = 0; i < QN_COEF_COUNT; i++)
        *qn_coef_at(c, i) = x[i];
    c->effects = effects;
    c->effects_bytes = bytes - before;
    return qn_effects_check(c, path);
}

QnStatus qn_coefs_open(QnCoefs *c)
{
    return qn_coefs_parse(c, "plan/coefficients.csv", qn_plan_text_coefficients,
                          strlen(qn_plan_text_coefficients));
}
