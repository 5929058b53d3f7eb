#include "plan/device.h"

#include "plan/names.h"
#include "plan/table.h"
#include "plan/tables.h"

#include "base/utf8.h"

#include <string.h>
#include <strings.h>

typedef struct Field {
    const char *column;
    size_t offset;
    bool text, needed;
    double max; /* of numbers */
} Field;

#define TEXT(column, member, needed)                                                               \
    {                                                                                              \
        column, offsetof(QnCard, member), true, needed, 0                                          \
    }
#define NUMBER(column, member, needed, max)                                                        \
    {                                                                                              \
        column, offsetof(QnCard, member), false, needed, max                                       \
    }

static const Field fields[] = {
    TEXT("name", name, true),
    TEXT("vendor", vendor, true),
    TEXT("arch", arch, true),
    NUMBER("year", year, true, 2100),
    TEXT("class", kind, true),
    NUMBER("shader_cores", cores, false, 1e6),
    NUMBER("sm_or_cu", units, false, 1e6),
    NUMBER("boost_mhz", boost_mhz, false, 1e5),
    NUMBER("mem_gb", memory_gb, true, 1e5),
    TEXT("mem_type", memory, false),
    NUMBER("mem_bw_gbs", bandwidth_gbs, true, 1e6),
    NUMBER("l2_mb", cache_mb, false, 1e5),
    NUMBER("fp32_tflops", fp32, false, 1e6),
    NUMBER("tf32_tflops", tf32, false, 1e6),
    NUMBER("fp16_tc_tflops_dense", fp16, false, 1e6),
    NUMBER("bf16_tc_tflops_dense", bf16, false, 1e6),
    NUMBER("fp8_tflops_dense", fp8, false, 1e6),
    NUMBER("int8_tops_dense", int8, false, 1e6),
    NUMBER("fp64_tflops", fp64, false, 1e6),
    NUMBER("tdp_w", tdp_w, false, 1e5),
    TEXT("interconnect", link, false),
    NUMBER("interconnect_gbs", link_gbs, false, 1e5),
    NUMBER("pcie_gen", pcie_gen, false, 10),
    NUMBER("launch_price_usd", price_usd, false, 1e7),
    NUMBER("cloud_usd_per_hour", cloud_usd, false, 1e5),
    TEXT("notes", notes, false),
    TEXT("source", source, true),
};

static QnStatus read_field(const QnTable *t, int64_t row, int column, const Field *f, QnCard *card)
{
    const char *text = column < 0 ? "" : t->row[row][column];
    void *member = (char *)card + f->offset;
    double x = 0;
    if (f->needed && !text[0])
        return qn_fail(QN_EFORMAT, "%s:%lld: column '%s' is empty, every device needs it", t->path,
                       (long long)t->line[row], f->column);
    if (f->text) {
        memcpy(member, &text, sizeof text);
        return QN_OK;
    }
    if (column >= 0)
        QN_TRY(qn_table_number(t, row, column, 0, &x));
    if (x > f->max || (f->needed && !(x > 0)))
        return qn_fail(QN_EFORMAT, "%s:%lld: column '%s': %s is out of range (0 to %g)", t->path,
                       (long long)t->line[row], f->column, text, f->max);
    memcpy(member, &x, sizeof x);
    return QN_OK;
}

/* A name that options can say: "NAME:8,NAME", "NAME=USD". */
static QnStatus check_name(const QnTable *t, int64_t row, const char *name)
{
    long long line = (long long)t->line[row];
    size_t n = strlen(name), bad = strcspn(name, ":,=");
    if (bad < n)
        return qn_fail(QN_EFORMAT,
                       "%s:%lld: '%s': a '%c' in a name means something else in options: a number "
                       "of devices, another device or a price; leave it out",
                       t->path, line, name, name[bad]);
    for (size_t i = 0; i < n;) {
        int length = qn_utf8_length(name + i, n - i);
        if (length < 1 || (unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return qn_fail(QN_EFORMAT, "%s:%lld: byte %zu of the name is no text in UTF-8", t->path,
                           line, i + 1);
        i += (size_t)length;
    }
    return QN_OK;
}

/* What one row alone cannot show to be wrong. */
static QnStatus check_card(const QnTable *t, int64_t row, const QnCatalogue *c, int before,
                           const QnCard *card)
{
    long long line = (long long)t->line[row];
    QN_TRY(check_name(t, row, card->name));
    for (int i = 0; i < c->n_cards; i++) {
        if (strcasecmp(c->cards[i].name, card->name) != 0)
            continue;
        if (i < before)
            return qn_fail(QN_EFORMAT, "%s:%lld: '%s' is in the catalogue already", t->path, line,
                           card->name);
        return qn_fail(QN_EFORMAT, "%s:%lld: '%s' stands in line %lld already", t->path, line,
                       card->name, (long long)t->line[i - before]);
    }
    return QN_OK;
}

/* The rows behind those that are there. */
static QnStatus read_cards(QnCatalogue *c, const QnTable *t)
{
    int column[QN_COUNT(fields)], before = c->n_cards;
    QnCard *cards = qn_arena_array(c->arena, (size_t)(before + t->n_rows) + 1, sizeof *cards);
    for (int i = 0; i < QN_COUNT(fields); i++)
        if (qn_table_column(t, fields[i].column, &column[i]) != QN_OK) {
            if (fields[i].needed)
                return QN_EFORMAT; /* with the text that it has */
            column[i] = -1;
        }
    if (!cards)
        return QN_ENOMEM;
    if (before)
        memcpy(cards, c->cards, (size_t)before * sizeof *cards);
    c->cards = cards;
    for (int64_t row = 0; row < t->n_rows; row++) {
        QnCard *card = &c->cards[c->n_cards];
        for (int i = 0; i < QN_COUNT(fields); i++)
            QN_TRY(read_field(t, row, column[i], &fields[i], card));
        QN_TRY(check_card(t, row, c, before, card));
        c->n_cards++;
    }
    return c->n_cards > before ? QN_OK : qn_fail(QN_EFORMAT, "%s: no devices", t->path);
}

QnStatus qn_catalogue_parse(QnCatalogue *c, const char *path, const char *text, size_t bytes)
{
    QnTable t = { 0 };
    *c = (QnCatalogue){ .arena = qn_arena_new() };
    QnStatus st = c->arena ? qn_table_parse(&t, c->arena, path, text, bytes) : QN_ENOMEM;
    if (st == QN_OK)
        st = read_cards(c, &t);
    qn_table_fini(&t);
    if (st != QN_OK)
        qn_catalogue_fini(c);
    return st;
}

QnStatus qn_catalogue_add(QnCatalogue *c, const char *path, const char *text, size_t bytes)
{
    QnTable t = { 0 };
    QnCatalogue before = *c;
    QnStatus st = qn_table_parse(&t, c->arena, path, text, bytes);
    if (st == QN_OK)
        st = read_cards(c, &t);
    qn_table_fini(&t);
    if (st != QN_OK)
        *c = before;
    return st;
}

QnStatus qn_catalogue_open(QnCatalogue *c)
{
    return qn_catalogue_parse(c, "plan/devices.csv", qn_plan_text_devices,
                              strlen(qn_plan_text_devices));
}

void qn_catalogue_fini(QnCatalogue *c)
{
    qn_arena_free(c->arena);
    *c = (QnCatalogue){ 0 };
}

static QnStatus unknown(const QnCatalogue *c, const char *name, const char *const *parts, int n)
{
    const char *names[512];
    int count = QN_MIN(c->n_cards, QN_COUNT(names));
    for (int i = 0; i < count; i++)
        names[i] = c->cards[i].name;
    if (n > 1)
        return qn_fail(QN_ENOTFOUND, "device '%s' could be %s or %s%s: say which", name, parts[0],
                       parts[1], n > 2 ? " or another" : "");
    return qn_names_unknown("device", name, names, count, "'quern plan devices' lists them");
}

/* "RTX 3060" is "RTX 3060 12GB" rather than "RTX 3060 Ti". */
static bool is_but_for_memory(const char *card, const char *name)
{
    size_t n = strlen(name);
    if (strncasecmp(card, name, n) != 0 || card[n] != ' ')
        return false;
    size_t digits = strspn(card + n + 1, "0123456789");
    return digits && !strcasecmp(card + n + 1 + digits, "GB");
}

QnStatus qn_catalogue_matches(const QnCatalogue *c, const char *name, const QnCard **out, int cap,
                              int *n)
{
    *n = 0;
    if (c->here && !strcmp(name, "this")) {
        out[(*n)++] = c->here;
        return QN_OK;
    }
    for (int i = 0; i < c->n_cards; i++) {
        if (!strcasecmp(c->cards[i].name, name) || qn_name_is(c->cards[i].name, name)) {
            out[(*n)++] = &c->cards[i];
            return QN_OK;
        }
    }
    for (int i = 0; i < c->n_cards && *n < cap; i++)
        if (qn_name_has(c->cards[i].name, name))
            out[(*n)++] = &c->cards[i];
    return *n ? QN_OK : unknown(c, name, NULL, 0);
}

QnStatus qn_catalogue_find(const QnCatalogue *c, const char *name, const QnCard **out)
{
    enum { MOST = 512 };
    const QnCard *all[MOST], *sized = NULL;
    int n, n_sized = 0;
    QN_TRY(qn_catalogue_matches(c, name, all, MOST, &n));
    for (int i = 0; i < n; i++) {
        if (is_but_for_memory(all[i]->name, name)) {
            n_sized++;
            sized = all[i];
        }
    }
    *out = n_sized == 1 ? sized : all[0];
    if (n == 1 || n_sized == 1)
        return QN_OK;
    const char *parts[] = { all[0]->name, all[1]->name };
    return unknown(c, name, parts, n);
}
