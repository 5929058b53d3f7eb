#include "plan/effect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

static const struct {
    const char *name;
    double sigma[QN_EFFECT_PARTS]; /* where a fit starts */
} groups[QN_EFFECT_GROUPS] = {
    [QN_EFFECT_STACK_ARCH] = { "stack+arch",
                               { [QN_PART_GEMM] = 0.2,
                                 [QN_PART_CONV] = 0.2,
                                 [QN_PART_DEPTHWISE] = 0.2,
                                 [QN_PART_ATTENTION] = 0.2,
                                 [QN_PART_RECURRENT] = 0.2,
                                 [QN_PART_MOVE] = 0.2,
                                 [QN_PART_HOST] = 0.2 } },
    [QN_EFFECT_STACK_NUMBERS] = { "stack+numbers",
                                  { [QN_PART_GEMM] = 0.25,
                                    [QN_PART_CONV] = 0.25,
                                    [QN_PART_DEPTHWISE] = 0.25,
                                    [QN_PART_ATTENTION] = 0.25,
                                    [QN_PART_RECURRENT] = 0.25,
                                    [QN_PART_MOVE] = 0.25,
                                    [QN_PART_HOST] = 0.25 } },
    [QN_EFFECT_CLASS] = { "class",
                          { [QN_PART_TENSOR] = 0.3,
                            [QN_PART_PLAIN] = 0.2,
                            [QN_PART_MEMORY] = 0.15,
                            [QN_PART_HOST] = 0.3 } },
    [QN_EFFECT_CARD] = { "card",
                         { [QN_PART_PLAIN] = 0.08,
                           [QN_PART_TENSOR] = 0.08,
                           [QN_PART_MEMORY] = 0.08,
                           [QN_PART_HOST] = 0.1,
                           [QN_PART_LINK] = 0.2,
                           [QN_PART_ALL] = 0.05 } },
    [QN_EFFECT_CARD_NUMBERS] = { "card+numbers", { [QN_PART_ALL] = 0.06 } },
    [QN_EFFECT_CARD_COUNT] = { "card+count", { [QN_PART_LINK] = 0.2 } },
    [QN_EFFECT_FRAMEWORK] = { "framework",
                              { [QN_PART_CONV] = 0.1,
                                [QN_PART_GEMM] = 0.1,
                                [QN_PART_MOVE] = 0.1,
                                [QN_PART_HOST] = 0.2,
                                [QN_PART_LINK] = 0.2,
                                [QN_PART_ALL] = 0.1 } },
    [QN_EFFECT_FRAMEWORK_NUMBERS] = { "framework+numbers",
                                      { [QN_PART_HOST] = 0.1, [QN_PART_ALL] = 0.1 } },
    [QN_EFFECT_FRAMEWORK_ARCH] = { "framework+arch",
                                   { [QN_PART_HOST] = 0.1, [QN_PART_ALL] = 0.08 } },
    [QN_EFFECT_FRAMEWORK_CARD] = { "framework+card",
                                   { [QN_PART_HOST] = 0.15, [QN_PART_ALL] = 0.06 } },
    [QN_EFFECT_FAMILY_STACK] = { "family+stack",
                                 { [QN_PART_MOVE] = 0.15,
                                   [QN_PART_HOST] = 0.2,
                                   [QN_PART_ALL] = 0.15 } },
    [QN_EFFECT_FAMILY_ARCH] = { "family+arch", { [QN_PART_ALL] = 0.06 } },
    [QN_EFFECT_MODEL] = { "model", { [QN_PART_HOST] = 0.15, [QN_PART_ALL] = 0.15 } },
    [QN_EFFECT_MODEL_NUMBERS] = { "model+numbers", { [QN_PART_ALL] = 0.08 } },
    [QN_EFFECT_MODEL_STACK] = { "model+stack",
                                { [QN_PART_PLAIN] = 0.1,
                                  [QN_PART_TENSOR] = 0.1,
                                  [QN_PART_MEMORY] = 0.1,
                                  [QN_PART_HOST] = 0.2,
                                  [QN_PART_LINK] = 0.2,
                                  [QN_PART_ALL] = 0.15 } },
    [QN_EFFECT_MODEL_FRAMEWORK] = { "model+framework",
                                    { [QN_PART_TENSOR] = 0.08,
                                      [QN_PART_MEMORY] = 0.08,
                                      [QN_PART_HOST] = 0.15,
                                      [QN_PART_ALL] = 0.12 } },
    [QN_EFFECT_MODEL_ARCH] = { "model+arch", { [QN_PART_ALL] = 0.06 } },
    [QN_EFFECT_RUN] = { "run", { [QN_PART_ALL] = 0.08 } },
};

const char *qn_effect_group_name(QnEffectGroup g)
{
    return groups[g].name;
}

double qn_effect_sigma(QnEffectGroup g, QnTimePart part)
{
    return groups[g].sigma[part];
}

/* ---- keys ---- */

/* Without what changes from run to run: "MLPerf Training v3.0 Dell (NGC ...)" is "MLPerf Training
 * v3.0", "Megatron-LM TP8 PP4" is "Megatron-LM". */
static void shorten(const char *framework, char out[80])
{
    static const char *const ends[] = {
        " (", " TP", " +NVLink", " DDP", " SingleStream", " Offline"
    };
    size_t n = strlen(framework);
    for (int i = 0; i < QN_COUNT(ends); i++) {
        const char *at = strstr(framework, ends[i]);
        if (at && at > framework)
            n = QN_MIN(n, (size_t)(at - framework));
    }
    if (!strncmp(framework, "MLPerf Training v", 17))
        n = QN_MIN(n, strcspn(framework + 17, " ") + 17);
    snprintf(out, 80, "%.*s", (int)QN_MIN(n, 79), framework);
}

/* One, a node, more nodes. */
static const char *count_text(int n)
{
    return n == 1 ? "1" : n <= 2 ? "2" : n <= 4 ? "4" : n <= 8 ? "8" : n <= 64 ? "64" : "many";
}

bool qn_effect_key(const QnCostRequest *r, QnEffectGroup g, char key[QN_EFFECT_KEY_BYTES])
{
    /* processors run other kernels under the same names */
    const char *tier = qn_card_is_cpu(r->card) ? "cpu" : qn_tier_name(r->tier),
               *arch = qn_arch_name(qn_arch_of(r->card));
    const char *task = r->train ? "train" : r->decodes ? "decode" : "infer";
    char numbers[32];
    snprintf(numbers, sizeof numbers, r->weight_bits > 0 ? "%s w%.0f" : "%s",
             qn_numbers_name(r->numbers), r->weight_bits);
    const char *parts[6] = { 0 };
    char framework[80] = "";
    /* server cards with graphics memory: error correction on, less air, lower clocks */
    const char *memory = r->card->memory && !strncmp(r->card->memory, "HBM", 3) ? "HBM" : "other";
    if (r->framework)
        shorten(r->framework, framework);
    if (qn_card_is_cpu(r->card) && framework[0])
        strcpy(framework + QN_MIN(strlen(framework), 70), " on CPU");
#define KEY(...)                                                                                   \
    memcpy(parts, (const char *[]){ __VA_ARGS__ }, sizeof(const char *[]){ __VA_ARGS__ })
    bool run = r->framework && r->framework[0];
    switch (g) {
    case QN_EFFECT_STACK_ARCH: KEY(tier, arch); break;
    case QN_EFFECT_STACK_NUMBERS: KEY(tier, numbers, task); break;
    case QN_EFFECT_CLASS: KEY(r->card->kind, memory); break;
    case QN_EFFECT_CARD: KEY(r->card->name); break;
    case QN_EFFECT_CARD_NUMBERS: KEY(r->card->name, numbers); break;
    case QN_EFFECT_CARD_COUNT:
        if (r->n_cards == 1)
            return false;
        KEY(r->card->name, count_text(r->n_cards));
        break;
    case QN_EFFECT_FRAMEWORK: KEY(run ? framework : NULL); break;
    case QN_EFFECT_FRAMEWORK_NUMBERS: KEY(run ? framework : NULL, numbers, task); break;
    case QN_EFFECT_FRAMEWORK_ARCH: KEY(run ? framework : NULL, arch); break;
    case QN_EFFECT_FRAMEWORK_CARD: KEY(run ? framework : NULL, r->card->name); break;
    case QN_EFFECT_FAMILY_STACK: KEY(r->family, tier, task); break;
    case QN_EFFECT_FAMILY_ARCH: KEY(r->family, arch, numbers); break;
    case QN_EFFECT_MODEL: KEY(r->model, task, qn_card_is_cpu(r->card) ? "cpu" : NULL); break;
    case QN_EFFECT_MODEL_NUMBERS: KEY(r->model, numbers, task); break;
    case QN_EFFECT_MODEL_STACK: KEY(r->model, tier, task); break;
    case QN_EFFECT_MODEL_FRAMEWORK: KEY(r->model, run ? framework : NULL, numbers, task); break;
    case QN_EFFECT_MODEL_ARCH: KEY(r->model, arch); break;
    case QN_EFFECT_RUN: KEY(r->model, run ? framework : "", r->card->name, numbers, task); break;
    case QN_EFFECT_GROUPS: return false;
    }
#undef KEY
    int n = snprintf(key, QN_EFFECT_KEY_BYTES, "%s:", groups[g].name);
    bool needs_model = g >= QN_EFFECT_MODEL,
         needs_framework = g >= QN_EFFECT_FRAMEWORK && g <= QN_EFFECT_FRAMEWORK_CARD;
    if ((needs_model && !r->model) ||
        ((needs_framework || g == QN_EFFECT_MODEL_FRAMEWORK) && !run) ||
        ((g == QN_EFFECT_FAMILY_STACK || g == QN_EFFECT_FAMILY_ARCH) && !r->family))
        return false;
    for (int i = 0; i < QN_COUNT(parts) && parts[i]; i++)
        n += snprintf(key + n, (size_t)(QN_EFFECT_KEY_BYTES - n), "%s%s", i ? "|" : "", parts[i]);
    if (n >= QN_EFFECT_KEY_BYTES - 16)
        return false;
    snprintf(key + n, (size_t)(QN_EFFECT_KEY_BYTES - n), ".");
    for (char *at = key; *at; at++)
        if (*at == ',' || iscntrl((unsigned char)*at))
            *at = ';';
    return true;
}

/* ---- the table ---- */

typedef struct Line {
    const char *text;
    size_t bytes; /* without the end */
} Line;

static Line line_at(const QnCoefs *k, size_t at)
{
    const char *text = k->effects + at, *end = memchr(text, '\n', k->effects_bytes - at);
    return (Line){ text, end ? (size_t)(end - text) : k->effects_bytes - at };
}

static int compare(const Line *line, const char *key)
{
    size_t n = strlen(key);
    int c = memcmp(line->text, key, QN_MIN(n, line->bytes));
    return c ? c : line->bytes < n ? -1 : 0;
}

/* The first line that does not stand before the key. */
static size_t find(const QnCoefs *k, const char *key)
{
    size_t low = 0, high = k->effects_bytes; /* starts of lines */
    while (low < high) {
        size_t at = low + (high - low) / 2;
        while (at > low && k->effects[at - 1] != '\n')
            at--;
        Line line = line_at(k, at);
        if (compare(&line, key) < 0)
            low = QN_MIN(at + line.bytes + 1, k->effects_bytes);
        else
            high = at;
    }
    return low;
}

static int part_of(const char *name, size_t bytes)
{
    for (int p = 0; p < QN_EFFECT_PARTS; p++)
        if (strlen(qn_part_name((QnTimePart)p)) == bytes &&
            !memcmp(qn_part_name((QnTimePart)p), name, bytes))
            return p;
    return -1;
}

/* "...part,value,deviation" behind the key. */
static bool read_line(const Line *line, size_t key, int *part, double *value, double *deviation)
{
    char text[64], *end;
    const char *comma = line->bytes > key ? memchr(line->text + key, ',', line->bytes - key) : NULL;
    if (!comma)
        return false;
    *part = part_of(line->text + key, (size_t)(comma - line->text) - key);
    size_t left = line->bytes - (size_t)(comma + 1 - line->text);
    if (*part < 0 || left >= sizeof text)
        return false;
    memcpy(text, comma + 1, left);
    text[left] = 0;
    *value = strtod(text, &end);
    if (end == text || *end != ',')
        return false;
    char *last = end + 1;
    *deviation = strtod(last, &end);
    return end != last && !*end && *value > -5 && *value < 5 && *deviation >= 0 && *deviation < 5;
}

/* Calls that add one key's lines; unknown: its deviations alone. */
static bool add_key(const QnCoefs *k, const char *key, QnEffects *out)
{
    size_t at = find(k, key), n = strlen(key);
    bool any = false;
    for (; at < k->effects_bytes; at += line_at(k, at).bytes + 1) {
        Line line = line_at(k, at);
        int part;
        double value, deviation;
        if (compare(&line, key) != 0)
            break;
        if (!read_line(&line, n, &part, &value, &deviation))
            continue;
        any = true;
        out->log[part] += value;
        out->variance[part] += deviation * deviation;
    }
    return any;
}

void qn_effects_of(const QnCoefs *k, const QnCostRequest *r, QnEffects *out)
{
    *out = (QnEffects){ 0 };
    if (!k->effects_bytes)
        return;
    for (int g = 0; g < QN_EFFECT_GROUPS; g++) {
        char key[QN_EFFECT_KEY_BYTES];
        if (g != QN_EFFECT_RUN && qn_effect_key(r, (QnEffectGroup)g, key) && add_key(k, key, out)) {
            out->card |= g == QN_EFFECT_CARD || g == QN_EFFECT_CARD_NUMBERS;
            out->model |= g >= QN_EFFECT_MODEL && g <= QN_EFFECT_MODEL_STACK;
            continue;
        }
        if (g == QN_EFFECT_CARD_COUNT && r->n_cards == 1)
            continue;
        snprintf(key, sizeof key, "any:%s.", groups[g].name); /* values of 0 */
        add_key(k, key, out);
    }
}

QnStatus qn_effects_check(const QnCoefs *k, const char *path)
{
    Line last = { 0 };
    for (size_t at = 0; at < k->effects_bytes;) {
        Line line = line_at(k, at);
        const char *comma = memchr(line.text, ',', line.bytes), *dot = comma;
        while (dot && dot > line.text && *dot != '.')
            dot--;
        int part;
        double value, deviation;
        int shown = (int)QN_MIN(line.bytes, 60);
        if (!dot || !read_line(&line, (size_t)(dot + 1 - line.text), &part, &value, &deviation))
            return qn_fail(
                QN_EFORMAT,
                "%s: '%.*s': expected a group, its key, a part, a value and its deviation", path,
                shown, line.text);
        int order = last.text ? memcmp(last.text, line.text, QN_MIN(last.bytes, line.bytes)) : -1;
        if (order > 0)
            return qn_fail(QN_EFORMAT, "%s: '%.*s' is not in order", path, shown, line.text);
        last = line;
        at += line.bytes + 1;
    }
    return QN_OK;
}
