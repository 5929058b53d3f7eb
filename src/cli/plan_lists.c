/* quern plan devices, quern plan models: what there is. */
#include "cli/plan.h"
#include "cli/plan_sink.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CHECK = QN_PLAN_OWN, NAMES };

/* ---- devices ---- */

static QnStatus put_card(QnSink *s, const QnCard *card)
{
    qn_sink_begin(s);
    qn_sink_text(s, "name", card->name);
    qn_sink_text(s, "vendor", card->vendor);
    qn_sink_text(s, "arch", card->arch);
    qn_sink_text(s, "class", card->kind);
    qn_sink_known(s, "year", card->year);
    qn_sink_known(s, "memory_gb", card->memory_gb);
    qn_sink_known(s, "bandwidth_gbs", card->bandwidth_gbs);
    qn_sink_known(s, "fp32_tflops", card->fp32);
    qn_sink_known(s, "tf32_tflops", card->tf32);
    qn_sink_known(s, "fp16_tflops", card->fp16);
    qn_sink_known(s, "bf16_tflops", card->bf16);
    qn_sink_known(s, "fp8_tflops", card->fp8);
    qn_sink_known(s, "int8_tops", card->int8);
    qn_sink_known(s, "tdp_w", card->tdp_w);
    qn_sink_known(s, "price_usd", card->price_usd);
    qn_sink_known(s, "cloud_usd_per_hour", card->cloud_usd);
    qn_sink_text(s, "notes", card->notes);
    qn_sink_text(s, "source", card->source);
    return qn_sink_end(s);
}

static void print_card(const QnCard *card)
{
    printf("%-28s %-6.0f %-20.20s %8.5g %8.5g %8.5g %8.5g\n", card->name, card->year, card->arch,
           card->memory_gb, card->bandwidth_gbs, card->fp32, card->fp16);
}

/* In the name, the vendor, the architecture or the class, in any case. */
static bool has_text(const char *const *fields, int n, const char *part)
{
    for (int i = 0; i < n; i++)
        for (const char *at = fields[i]; *at; at++)
            if (!strncasecmp(at, part, strlen(part)))
                return true;
    return false;
}

static bool is_wanted(const QnArgs *a, const char *const *fields, int n)
{
    for (int i = 0; i < a->n_positional; i++)
        if (!has_text(fields, n, a->positional[i]))
            return false;
    return true;
}

static QnStatus no_match(const QnArgs *a, const char *what)
{
    return qn_fail(QN_ENOTFOUND, "no %s has '%s'%s; quern plan %ss lists them all", what,
                   a->positional[0], a->n_positional > 1 ? " and the other words" : "", what);
}

/* The first row of CSV stands under its header. */
static QnStatus put_card_row(QnSink *s, const QnCard *card)
{
    if (s->how == QN_SINK_HEAD) {
        QN_TRY(put_card(s, card));
        s->how = QN_SINK_CSV;
    }
    return put_card(s, card);
}

static QnStatus list_cards(const QnArgs *a, const QnCatalogue *c)
{
    bool names = a->text[NAMES] != NULL, rows = a->json || a->text[QN_PLAN_CSV];
    QnSink s = { .how = a->json ? QN_SINK_JSON : QN_SINK_HEAD };
    int n = 0;
    for (int i = 0; i < c->n_cards; i++) {
        const QnCard *card = &c->cards[i];
        const char *const fields[] = { card->name, card->vendor, card->arch, card->kind };
        if (!is_wanted(a, fields, QN_COUNT(fields)))
            continue;
        if (!n++ && !rows && !names)
            printf("%-28s %-6s %-20s %8s %8s %8s %8s\n", "device", "year", "architecture", "GB",
                   "GB/s", "fp32", "fp16");
        if (names)
            puts(card->name);
        else if (rows)
            QN_TRY(put_card_row(&s, card));
        else
            print_card(card);
    }
    if (!n)
        return no_match(a, "device");
    if (!a->json && !names)
        printf("%d device%s, every row checked; rates in TFLOP/s, dense\n", n, n > 1 ? "s" : "");
    return QN_OK;
}

static QnStatus check_file(const QnArgs *a)
{
    const char *path = a->text[CHECK];
    QnCatalogue c;
    char *text;
    size_t bytes;
    if (a->text[QN_PLAN_DEVICES])
        return qn_fail(QN_EUSAGE, "--check and --devices: one of them at a time");
    QN_TRY(qn_file_read(path, (size_t)1 << 26, &text, &bytes));
    QnStatus st = qn_catalogue_open(&c);
    if (st == QN_OK) { /* as --devices will take it */
        st = qn_catalogue_add(&c, path, text, bytes);
        qn_catalogue_fini(&c);
    }
    if (st == QN_OK)
        st = qn_catalogue_parse(&c, path, text, bytes);
    if (st == QN_OK) {
        st = list_cards(a, &c);
        qn_catalogue_fini(&c);
    }
    qn_free(text);
    return st;
}

static int list_devices(QnArgs *a)
{
    QnCatalogue c;
    QnStatus st = a->text[CHECK] ? check_file(a) : qn_plan_catalogue(a, &c);
    if (st == QN_OK && !a->text[CHECK]) {
        st = list_cards(a, &c);
        qn_catalogue_fini(&c);
    }
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
}

static const QnOption device_options[] = {
    QN_PLAN_OPTIONS_DEVICES,
    [QN_PLAN_CSV] = QN_PLAN_FLAG("--csv", "comma-separated, with a header"),
    [QN_PLAN_JSON] = QN_PLAN_FLAG("--json", "one JSON object a device"),
    [CHECK] = { "--check", 0, QN_OPTION_TEXT, "FILE.csv",
                "check and list the devices of a file of one's own instead", 0, 0 },
    [NAMES] = { "--names", 0, QN_OPTION_FLAG, NULL, "names alone", 0, 0 },
};

const QnCommand qn_cmd_plan_devices = {
    .name = "plan devices",
    .summary = "List the devices that can be planned for, and check every row",
    .usage = "[WORD…] [options]",
    .examples = "  quern plan devices ada\n"
                "  quern plan devices nvidia datacenter --json\n"
                "  quern plan devices --check mine.csv\n",
    .options = device_options,
    .n_options = QN_COUNT(device_options),
    .max_positional = QN_ARGS_MAX,
    .run = list_devices,
};

/* ---- models ---- */

static QnStatus put_model(QnSink *s, const QnModel *m)
{
    qn_sink_begin(s);
    qn_sink_text(s, "name", m->name);
    qn_sink_text(s, "family", m->family->name);
    qn_sink_known(s, "params_m", m->params);
    return qn_sink_end(s);
}

static QnStatus print_model(const QnArgs *a, const QnModel *m, QnSink *s)
{
    if (!a->text[NAMES] && (a->json || a->text[QN_PLAN_CSV])) {
        if (s->how == QN_SINK_HEAD) {
            QN_TRY(put_model(s, m));
            s->how = QN_SINK_CSV;
        }
        return put_model(s, m);
    }
    if (a->text[NAMES])
        puts(m->name);
    else if (m->params > 0)
        printf("%-28s %-12s %10.5g M parameters\n", m->name, m->family->name, m->params);
    else /* nothing that the count could be checked against */
        printf("%-28s %-12s %10s\n", m->name, m->family->name, "-");
    return QN_OK;
}

static int list_models(QnArgs *a)
{
    const QnModel *m;
    QnSink s = { .how = a->json ? QN_SINK_JSON : QN_SINK_HEAD };
    QnStatus st = QN_OK;
    int n = 0;
    for (int i = 0; (m = qn_model_at(i)) && st == QN_OK; i++) {
        const char *const fields[] = { m->name, m->family->name };
        if (!is_wanted(a, fields, QN_COUNT(fields)))
            continue;
        n++;
        st = print_model(a, m, &s);
    }
    if (!n)
        st = no_match(a, "model");
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
}

static const QnOption model_options[] = {
    [QN_PLAN_CSV] = QN_PLAN_FLAG("--csv", "comma-separated, with a header"),
    [QN_PLAN_JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a model", 0, 0 },
    [NAMES] = { "--names", 0, QN_OPTION_FLAG, NULL, "names alone", 0, 0 },
};

const QnCommand qn_cmd_plan_models = {
    .name = "plan models",
    .summary = "List the models that are known by name",
    .usage = "[WORD…] [options]",
    .examples = "  quern plan models resnet\n",
    .options = model_options,
    .n_options = QN_COUNT(model_options),
    .max_positional = QN_ARGS_MAX,
    .run = list_models,
};
