#include "cli/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const QnOption options[] = {
    [QN_PLAN_TASK] = { "--task", 0, QN_OPTION_TEXT, "train|infer", "default train", 0, 0 },
    [QN_PLAN_GPU] = { "--gpu", 0, QN_OPTION_TEXT, "NAME[:N],…", "devices, or all (default)", 0, 0 },
    [QN_PLAN_PRECISION] = { "--precision", 0, QN_OPTION_TEXT, "NAME",
                            "fp32 tf32 fp16-amp bf16-amp fp16 bf16 int8 fp8; default: the "
                            "device's best",
                            0, 0 },
    [QN_PLAN_STACK] = { "--stack", 0, QN_OPTION_TEXT, "NAME",
                        "the software: quern (default), pytorch, compiled, tensorrt …", 0, 0 },
    [QN_PLAN_BATCH] = { "--batch", 0, QN_OPTION_INT, "N",
                        "examples of one device; default: the fastest that fits, up to 256", 1,
                        1 << 24 },
    [QN_PLAN_IMAGE] = { "--image", 0, QN_OPTION_INT, "N", "side of the images", 1, 1 << 14 },
    [QN_PLAN_SEQUENCE] = { "--sequence", 0, QN_OPTION_INT, "N", "tokens of an example", 1,
                           1 << 24 },
    [QN_PLAN_SAMPLES] = { "--samples", 0, QN_OPTION_TEXT, "N", "examples of the data set", 0, 0 },
    [QN_PLAN_EPOCHS] = { "--epochs", 0, QN_OPTION_TEXT, "N", "passes over it; default 1", 0, 0 },
    [QN_PLAN_TOKENS] = { "--tokens", 0, QN_OPTION_TEXT, "N", "tokens to go through", 0, 0 },
    [QN_PLAN_BUDGET] = { "--budget", 0, QN_OPTION_TEXT, "USD", "at most this much", 0, 0 },
    [QN_PLAN_DEADLINE] = { "--deadline", 0, QN_OPTION_TEXT, "TIME", "90m, 48h, 7d", 0, 0 },
    [QN_PLAN_SCORE] = { "--score", 0, QN_OPTION_TEXT, "FILE.csv",
                        "predict published figures, and how far off that is", 0, 0 },
    [QN_PLAN_FIT] = { "--fit", 0, QN_OPTION_TEXT, "FILE.csv",
                      "print the coefficients that agree best with them", 0, 0 },
    [QN_PLAN_HOLD_OUT] = { "--hold-out", 0, QN_OPTION_TEXT, "gpu|model",
                           "with --score: predict each from fits that have not seen it", 0, 0 },
    [QN_PLAN_JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a device", 0, 0 },
};

/* ---- lists ---- */

static QnStatus json_card(const QnCard *card)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "name", card->name);
    qn_json_put_string(&w, "vendor", card->vendor);
    qn_json_put_string(&w, "arch", card->arch);
    qn_json_put_string(&w, "class", card->kind);
    qn_json_put_double(&w, "year", card->year);
    qn_json_put_double(&w, "memory_gb", card->memory_gb);
    qn_json_put_double(&w, "bandwidth_gbs", card->bandwidth_gbs);
    qn_json_put_double(&w, "fp32_tflops", card->fp32);
    qn_json_put_double(&w, "tf32_tflops", card->tf32);
    qn_json_put_double(&w, "fp16_tflops", card->fp16);
    qn_json_put_double(&w, "bf16_tflops", card->bf16);
    qn_json_put_double(&w, "fp8_tflops", card->fp8);
    qn_json_put_double(&w, "int8_tops", card->int8);
    qn_json_put_double(&w, "tdp_w", card->tdp_w);
    qn_json_put_double(&w, "price_usd", card->price_usd);
    qn_json_put_double(&w, "cloud_usd_per_hour", card->cloud_usd);
    qn_json_put_string(&w, "notes", card->notes);
    qn_json_put_string(&w, "source", card->source);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static QnStatus list_devices(const QnArgs *a)
{
    QnCatalogue c;
    QnStatus st = QN_OK;
    QN_TRY(qn_catalogue_open(&c));
    if (!a->json)
        printf("%-28s %-6s %-20s %8s %8s %8s %8s\n", "device", "year", "architecture", "GB", "GB/s",
               "fp32", "fp16");
    for (int i = 0; i < c.n_cards && st == QN_OK; i++) {
        const QnCard *card = &c.cards[i];
        if (a->json)
            st = json_card(card);
        else
            printf("%-28s %-6.0f %-20.20s %8.5g %8.5g %8.5g %8.5g\n", card->name, card->year,
                   card->arch, card->memory_gb, card->bandwidth_gbs, card->fp32, card->fp16);
    }
    if (!a->json)
        printf("%d devices, every row checked; rates in TFLOP/s, dense\n", c.n_cards);
    qn_catalogue_fini(&c);
    return st;
}

static QnStatus list_models(const QnArgs *a)
{
    const QnModel *m;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        if (a->json)
            printf("{\"name\": \"%s\", \"family\": \"%s\", \"params_m\": %.6g}\n", m->name,
                   m->family->name, m->params);
        else
            printf("%-28s %-12s %10.5g M parameters\n", m->name, m->family->name, m->params);
    }
    return QN_OK;
}

/* ---- what is asked ---- */

static QnStatus read_deadline(const QnArgs *a, double *seconds)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    const char *text = a->text[QN_PLAN_DEADLINE];
    char *end;
    *seconds = 0;
    if (!text)
        return QN_OK;
    *seconds = strtod(text, &end);
    for (int i = 0; i < QN_COUNT(units); i++) {
        if (*end == units[i].unit && !end[1] && end != text && *seconds > 0) {
            *seconds *= units[i].seconds;
            return QN_OK;
        }
    }
    return qn_fail(QN_EUSAGE, "--deadline: expected a time such as 90m, 48h or 7d, found '%s'",
                   text);
}

static QnStatus read_items(const QnArgs *a, QnJob *job)
{
    double samples, epochs, tokens;
    QN_TRY(qn_cli_number(a, QN_PLAN_SAMPLES, 0, &samples));
    QN_TRY(qn_cli_number(a, QN_PLAN_EPOCHS, 1, &epochs));
    QN_TRY(qn_cli_number(a, QN_PLAN_TOKENS, 0, &tokens));
    if (tokens > 0 && job->model->family->image)
        return qn_fail(QN_EUSAGE, "--tokens: %s takes images; give --samples and --epochs",
                       job->model->name);
    if (tokens > 0 && samples > 0)
        return qn_fail(QN_EUSAGE, "--tokens and --samples say the same thing: give one of them");
    int64_t length = job->sequence ? job->sequence : job->model->family->sequence;
    job->items = tokens > 0                  ? tokens
                 : job->model->family->image ? samples * epochs
                                             : samples * epochs * (double)length;
    if (!(job->items > 0) && (job->budget_usd > 0 || job->deadline_s > 0))
        return qn_fail(QN_EUSAGE,
                       "%s needs the size of the job: --samples and --epochs, or "
                       "--tokens",
                       job->budget_usd > 0 ? "--budget" : "--deadline");
    return QN_OK;
}

static QnStatus read_job(const QnArgs *a, QnJob *job)
{
    const char *task = a->text[QN_PLAN_TASK] ? a->text[QN_PLAN_TASK] : "train";
    *job = (QnJob){ .batch = a->number[QN_PLAN_BATCH],
                    .image = a->number[QN_PLAN_IMAGE],
                    .sequence = a->number[QN_PLAN_SEQUENCE],
                    .train = !strcmp(task, "train"),
                    .any_numbers = !a->text[QN_PLAN_PRECISION] };
    QN_TRY(qn_model_find(a->positional[0], &job->model));
    if (!job->train && strcmp(task, "infer") != 0)
        return qn_fail(QN_EUSAGE, "--task: expected train or infer, found '%s'", task);
    if (job->image && !job->model->family->image)
        return qn_fail(QN_EUSAGE, "--image: %s takes tokens", job->model->name);
    if (job->sequence && job->model->family->image)
        return qn_fail(QN_EUSAGE, "--sequence: %s takes images", job->model->name);
    if (!job->any_numbers)
        QN_TRY(qn_numbers_find(a->text[QN_PLAN_PRECISION], &job->numbers));
    if (a->text[QN_PLAN_STACK])
        QN_TRY(qn_tier_find(a->text[QN_PLAN_STACK], &job->tier));
    QN_TRY(qn_cli_number(a, QN_PLAN_BUDGET, 0, &job->budget_usd));
    QN_TRY(read_deadline(a, &job->deadline_s));
    return read_items(a, job);
}

/* "NAME" or "NAME:count" into a choice. */
static QnStatus price_named(const QnCatalogue *c, char *text, QnCounts *counts, const QnJob *job,
                            const QnCoefs *k, QnOffer *out)
{
    const QnCard *card;
    char *colon = strrchr(text, ':'), *end = NULL;
    long n = 1;
    if (colon) {
        *colon = 0;
        n = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || n < 1 || n > 16384)
            return qn_fail(QN_EUSAGE, "--gpu: '%s:%s': expected a number of devices, 1 to 16384",
                           text, colon + 1);
    }
    QN_TRY(qn_catalogue_find(c, text, &card));
    return qn_offer_price(counts, job, card, (int)n, k, out);
}

static QnStatus price_all(const QnArgs *a, const QnCatalogue *c, QnCounts *counts, const QnJob *job,
                          QnPlanTable *t)
{
    QnCoefs k;
    QN_TRY(qn_coefs_open(&k));
    const char *list = a->text[QN_PLAN_GPU];
    if (!list || !strcmp(list, "all")) {
        for (int i = 0; i < c->n_cards; i++, t->n++)
            QN_TRY(qn_offer_price(counts, job, &c->cards[i], 1, &k, &t->offers[i]));
        return QN_OK;
    }
    char *text = qn_strdup(list);
    QnStatus st = text ? QN_OK : QN_ENOMEM;
    for (char *name = text, *next; name && st == QN_OK; name = next) {
        next = strchr(name, ',');
        if (next)
            *next++ = 0;
        if (t->n == QN_PLAN_MOST)
            st = qn_fail(QN_EUSAGE, "--gpu: more than %d devices", QN_PLAN_MOST);
        else
            st = price_named(c, name, counts, job, &k, &t->offers[t->n]);
        t->n += st == QN_OK;
    }
    qn_free(text);
    return st;
}

static QnStatus plan(const QnArgs *a)
{
    QnCatalogue c = { 0 };
    QnCounts *counts = NULL;
    QnDevice *device = NULL;
    QnPlanTable t = { 0 };
    QnStatus st = read_job(a, &t.job);
    QN_TRY_DONE(st);
    QN_TRY_DONE(qn_catalogue_open(&c));
    QN_TRY_DONE(qn_device_open_named("null", NULL, &device));
    counts = qn_counts_new(device);
    t.offers = qn_alloc_array(QN_PLAN_MOST, sizeof *t.offers);
    if (!counts || !t.offers)
        QN_TRY_DONE(QN_ENOMEM);
    if (c.n_cards > QN_PLAN_MOST)
        QN_TRY_DONE(qn_fail(QN_EFORMAT, "more than %d devices in the catalogue", QN_PLAN_MOST));
    QN_TRY_DONE(price_all(a, &c, counts, &t.job, &t));
    QN_TRY_DONE(qn_plan_print(a, &t));
done:
    qn_free(t.offers);
    qn_counts_free(counts);
    qn_device_close(device);
    qn_catalogue_fini(&c);
    return st;
}

static int run(QnArgs *a)
{
    const char *what = a->n_positional ? a->positional[0] : "";
    bool measured = a->text[QN_PLAN_SCORE] || a->text[QN_PLAN_FIT];
    QnStatus st = measured                   ? qn_plan_measured(a)
                  : !what[0]                 ? qn_fail(QN_EUSAGE, "say which model; 'quern plan "
                                                                                  "models' lists them")
                  : !strcmp(what, "devices") ? list_devices(a)
                  : !strcmp(what, "models")  ? list_models(a)
                                             : plan(a);
    return st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
}

const QnCommand qn_cmd_plan = {
    .name = "plan",
    .summary = "Predict speed, memory and cost of a model on devices that are not here",
    .usage = "MODEL|devices|models [options] | --score FILE.csv | --fit FILE.csv",
    .examples = "  quern plan resnet50 --batch 64\n"
                "  quern plan gpt2_xl --gpu \"A100 SXM4 80GB:8,RTX 4090\" --tokens 1e9\n"
                "  quern plan devices\n"
                "  quern plan --score measured.csv --hold-out gpu\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 0,
    .max_positional = 1,
    .run = run,
};
