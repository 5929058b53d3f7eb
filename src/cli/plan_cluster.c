/* quern plan cluster: the best layout of a training run for each number of devices. */
#include "cli/plan_cluster.h"

#include "base/term.h"
#include "plan/power.h"
#include "quern/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS = QN_PLAN_OWN, NETWORK, MTBF, COMPRESSION };

static const QnOption options[] = {
    [QN_PLAN_GPU] = { "--gpu", 0, QN_OPTION_TEXT, "NAME", "the device (needed)", 0, 0 },
    [GPUS] = { "--gpus", 0, QN_OPTION_TEXT, "N,N…N",
               "how many: numbers, and ranges of powers of two; default 8…1024", 0, 0 },
    [QN_PLAN_BATCH] = { "--batch", 0, QN_OPTION_TEXT, "N",
                        "sequences or images of a step, on all devices together; default: the "
                        "recipe's, else 4 Mi tokens, or 8192 images",
                        0, 0 },
    [QN_PLAN_SEQUENCE] = { "--sequence", 0, QN_OPTION_INT, "N", "tokens of an example", 1,
                           1 << 24 },
    [QN_PLAN_TOKENS] = { "--tokens", 0, QN_OPTION_TEXT, "N",
                         "tokens (or images) of the run: time, cost and failures of it", 0, 0 },
    [QN_PLAN_PRECISION] = { "--precision", 0, QN_OPTION_TEXT, "NAME",
                            "default bf16-amp, fp16-amp or fp32, as the device has it", 0, 0 },
    [NETWORK] = { "--network", 0, QN_OPTION_TEXT, "GB/S",
                  "of one device to other nodes; default: what nodes of its time have", 0, 0 },
    [COMPRESSION] = { "--compression", 0, QN_OPTION_TEXT, "N",
                      "gradients travel N times smaller; default 1", 0, 0 },
    [MTBF] = { "--mtbf", 0, QN_OPTION_TEXT, "HOURS",
               "of one device between failures; default 50000", 0, 0 },
    [QN_PLAN_CLASSES] = { "--classes", 0, QN_OPTION_INT, "N",
                          "classes, or words of the vocabulary, of a recipe whose data set is not "
                          "here",
                          1, 1 << 24 },
    [QN_PLAN_DIM] = QN_CLI_DIM_OPTION,
    [QN_PLAN_DEADLINE] = QN_PLAN_TEXT("--deadline", "TIME", "90m, 48h, 7d: with --tokens"),
    [QN_PLAN_BUDGET] = QN_PLAN_TEXT("--budget", "USD", "at most this much: 500, 2k, with --tokens"),
    QN_PLAN_OPTIONS_MONEY,
    QN_PLAN_OPTIONS_OUTPUT,
};

/* ---- what is asked ---- */

static QnStatus add_count(QnClusterPlan *p, int64_t n)
{
    if (p->n_counts == QN_CLUSTER_MOST)
        return qn_fail(QN_EUSAGE, "--gpus: more than %d numbers", QN_CLUSTER_MOST);
    int at = p->n_counts;
    while (at > 0 && p->counts_of[at - 1] > n)
        at--;
    if (at > 0 && p->counts_of[at - 1] == n)
        return QN_OK;
    memmove(&p->counts_of[at + 1], &p->counts_of[at],
            (size_t)(p->n_counts - at) * sizeof *p->counts_of);
    p->counts_of[at] = (int)n;
    p->n_counts++;
    return QN_OK;
}

static QnStatus read_one(const char **text, int64_t *n)
{
    char *end;
    *n = strtoll(*text, &end, 10);
    if (end == *text || *n < 1 || *n > 1 << 20)
        return qn_fail(QN_EUSAGE,
                       "--gpus: expected numbers from 1 to 1048576 such as 8…16384 or "
                       "8,64,96, found '%s'",
                       *text);
    *text = end;
    return QN_OK;
}

/* "8…1024", "8..1024", "8-1024": length of the mark between two numbers; 0: none. */
static size_t range_mark(const char *text)
{
    static const char *const marks[] = { "…", "...", "..", "-" };
    for (int i = 0; i < QN_COUNT(marks); i++)
        if (!strncmp(text, marks[i], strlen(marks[i])))
            return strlen(marks[i]);
    return 0;
}

static QnStatus read_counts(const char *text, QnClusterPlan *p)
{
    for (;;) {
        int64_t first, last;
        QN_TRY(read_one(&text, &first));
        size_t mark = range_mark(text);
        last = first;
        text += mark;
        if (mark)
            QN_TRY(read_one(&text, &last));
        if (last < first)
            return qn_fail(QN_EUSAGE, "--gpus: %lld…%lld goes downwards", (long long)first,
                           (long long)last);
        QN_TRY(add_count(p, first));
        QN_TRY(add_count(p, last));
        for (int64_t n = 1; n <= last; n *= 2)
            if (n >= first)
                QN_TRY(add_count(p, n));
        if (!*text)
            return QN_OK;
        if (*text != ',')
            return qn_fail(QN_EUSAGE, "--gpus: found '%s' behind a number", text);
        text++;
    }
}

static QnStatus read_numbers(const QnArgs *a, const QnCard *card, QnNumbers *out)
{
    const char *text = a->text[QN_PLAN_PRECISION];
    if (text)
        return qn_numbers_find(text, out);
    *out = card->bf16 > 0   ? QN_NUMBERS_BF16_AMP
           : card->fp16 > 0 ? QN_NUMBERS_FP16_AMP
                            : QN_NUMBERS_FP32;
    return QN_OK;
}

/* Of one device and its share of the machine, at work. */
static double device_kw(const QnClusterPlan *p, const QnCard *card)
{
    int per_node = QN_MIN(QN_MAX(qn_links_of(card, 0).per_node, 1), 8);
    QnPowerRequest r = { .card = card,
                         .n = per_node,
                         .host =
                             !strcmp(card->kind, "consumer") ? QN_POWER_DESKTOP : QN_POWER_SERVER,
                         .share = { 0.9, 0, 0.1, 0 },
                         .cap = 1,
                         .nodes = 1 };
    return 1e-3 * qn_power_w(&r, &p->coefs.fleet) / per_node;
}

static double usd_hour(const QnClusterPlan *p, const QnCard *card)
{
    bool rented;
    return qn_money_rate(&p->money, card, device_kw(p, card), &rented);
}

/* Examples of an update as the recipe has them. */
static int64_t of_recipe(const QnClusterPlan *p)
{
    const QnRecipe *r = p->subject.recipe;
    return r->batch * QN_MAX(r->accumulate, 1);
}

/* 8…1024; of a recipe, whose batch stays as it is, as many as it can be divided among. */
static QnStatus read_gpus(const QnArgs *a, QnClusterPlan *p)
{
    char text[64];
    int64_t most = 1024;
    if (a->text[GPUS])
        return read_counts(a->text[GPUS], p);
    if (p->subject.recipe && !a->text[QN_PLAN_BATCH])
        while (most > 1 && of_recipe(p) % most)
            most /= 2;
    snprintf(text, sizeof text, "%lld..%lld", (long long)QN_MIN(most, 8), (long long)most);
    return read_counts(text, p);
}

static QnStatus read_batch(const QnArgs *a, QnClusterPlan *p)
{
    double batch;
    int64_t length = p->split.sequence;
    int64_t usual = length ? QN_MAX(1, ((int64_t)4 << 20) / length) : 8192;
    if (p->subject.recipe)
        usual = of_recipe(p);
    QN_TRY(qn_plan_number(a, QN_PLAN_BATCH, (double)usual, &batch));
    if (batch < 1 || batch > 1 << 24 || batch != (double)(int64_t)batch)
        return qn_fail(QN_EUSAGE, "--batch: expected a whole number from 1 to 16,777,216");
    p->job.global_batch = (int64_t)batch;
    return QN_OK;
}

static QnStatus read_job(const QnArgs *a, QnClusterPlan *p)
{
    QnClusterJob *job = &p->job;
    double network;
    int n;
    QnPlanSubjectOptions o = { .train = true,
                               .dim_option = QN_PLAN_DIM,
                               .classes = a->number[QN_PLAN_CLASSES],
                               .sequence = a->number[QN_PLAN_SEQUENCE] };
    if (!a->text[QN_PLAN_GPU])
        return qn_fail(QN_EUSAGE, "--gpu: say which device; 'quern plan devices' lists them");
    QN_TRY(qn_plan_subject_open(&p->subject, a, a->positional[0], &o));
    const QnModel *model = p->subject.model;
    QN_TRY(qn_plan_device(&p->catalogue, "--gpu", a->text[QN_PLAN_GPU], &p->card, &n));
    if (n > 1)
        return qn_fail(QN_EUSAGE,
                       "--gpu: a number of devices stands in --gpus: --gpu \"%s\" --gpus %d",
                       p->card->name, n);
    QN_TRY(read_gpus(a, p));
    if (a->number[QN_PLAN_SEQUENCE] && model->family->image)
        return qn_fail(QN_EUSAGE, "--sequence: %s takes images", model->name);
    QN_TRY(qn_plan_number(a, NETWORK, 0, &network));
    QN_TRY(qn_plan_number(a, QN_PLAN_TOKENS, 0, &job->items));
    QN_TRY(qn_plan_time(a, QN_PLAN_DEADLINE, &p->deadline_s));
    QN_TRY(qn_plan_number(a, QN_PLAN_BUDGET, 0, &p->budget_usd));
    if ((p->deadline_s > 0 || p->budget_usd > 0) && !(job->items > 0))
        return qn_fail(QN_EUSAGE, "%s needs the size of the run: --tokens",
                       p->deadline_s > 0 ? "--deadline" : "--budget");
    QN_TRY(qn_plan_number(a, MTBF, 50000, &job->mtbf_hours));
    job->training = (QnTraining){ .card = p->card,
                                  .links = qn_links_of(p->card, network),
                                  .flash = true,
                                  .tuned = true,
                                  .overlap = true,
                                  .logit_bytes = 4,
                                  .host = 0.3 };
    QN_TRY(qn_plan_number(a, COMPRESSION, 1, &job->training.compression));
    if (!(job->mtbf_hours > 0) || !(job->training.compression >= 1))
        return qn_fail(QN_EUSAGE, "--mtbf must be above 0, --compression at least 1");
    QN_TRY(read_numbers(a, p->card, &job->training.numbers));
    if (job->training.numbers == QN_NUMBERS_INT8)
        return qn_fail(QN_EUSAGE, "--precision int8: nothing trains in it");
    if (!qn_cost_has(p->card, job->training.numbers))
        return qn_fail(QN_EUSAGE, "%s: its data sheet has no rate for %s", p->card->name,
                       qn_numbers_name(job->training.numbers));
    QN_TRY(qn_split_open(&p->split, p->arena, p->counts, model, a->number[QN_PLAN_SEQUENCE],
                         qn_numbers_low(job->training.numbers, true)));
    job->split = &p->split;
    job->counts = p->counts;
    job->coefs = &p->coefs;
    job->store_gbs = 2;
    job->store_most_gbs = 500;
    job->restart_s = 300;
    QN_TRY(qn_plan_money(a, &p->money));
    job->kw = device_kw(p, p->card);
    job->usd_hour = usd_hour(p, p->card);
    bool rented;
    if (qn_money_rate(&p->money, p->card, job->kw, &rented) > 0 && !rented)
        p->purchase_usd = qn_money_purchase(&p->money, p->card);
    return read_batch(a, p);
}

/* ---- the search ---- */

static QnStatus search(QnClusterPlan *p)
{
    const QnClusterPoint *first = NULL;
    for (int i = 0; i < p->n_counts; i++) {
        QnClusterPoint *at = &p->points[i];
        QN_TRY(qn_cluster_search(&p->job, p->counts_of[i], at));
        if (!at->found)
            continue;
        first = first ? first : at;
        at->efficiency = at->items_s / at->n / (first->items_s / first->n);
    }
    return QN_OK;
}

double qn_cluster_outlay(const QnClusterPlan *p, const QnClusterPoint *at)
{
    if (!(p->purchase_usd > 0) || !(at->usd > 0))
        return at->usd;
    return at->n * (p->purchase_usd + at->hours * qn_money_electricity(&p->money, p->job.kw));
}

static bool is_within(const QnClusterPlan *p, const QnClusterPoint *at)
{
    return at->found && at->hours > 0 &&
           (!(p->deadline_s > 0) || 3600 * at->hours <= p->deadline_s) &&
           (!(p->budget_usd > 0) ||
            (qn_cluster_outlay(p, at) > 0 && qn_cluster_outlay(p, at) <= p->budget_usd));
}

static void advise(QnClusterPlan *p)
{
    for (int i = 0; i < p->n_counts && p->job.items > 0; i++)
        if (is_within(p, &p->points[i]) && (!p->advised || p->points[i].usd < p->advised->usd))
            p->advised = &p->points[i];
}

/* What would fit where nothing does: the optimizer in the host's memory, more of the same device,
 * or one with more memory. */
static QnStatus search_way_out(QnClusterPlan *p)
{
    int most = 0;
    for (int i = 0; i < p->n_counts; i++)
        if (p->points[i].any) /* of those among which the batch can be divided at all */
            most = p->counts_of[i];
    QnClusterJob offload = p->job;
    offload.training.offload = true;
    QN_TRY(qn_cluster_search(&offload, most, &p->offloaded));
    for (int64_t n = 1; n <= 65536 && !p->more.found; n *= 2)
        if (n > most)
            QN_TRY(qn_cluster_search(&p->job, (int)n, &p->more));
    for (int i = 0; i < p->catalogue.n_cards; i++) {
        const QnCard *card = &p->catalogue.cards[i];
        QnClusterJob job = p->job;
        QnClusterPoint at;
        job.training.card = card;
        job.training.links = qn_links_of(card, 0);
        job.usd_hour = usd_hour(p, card);
        if (card->memory_gb <= p->card->memory_gb || !(job.usd_hour > 0) ||
            !qn_cost_has(card, job.training.numbers))
            continue;
        QN_TRY(qn_cluster_search(&job, most, &at));
        double cost = at.found ? job.usd_hour / at.items_s : 0;
        if (at.found && (!p->other || cost < p->other_usd)) {
            p->other = card;
            p->other_usd = cost;
            p->other_point = at;
        }
    }
    return QN_OK;
}

static bool any_found(const QnClusterPlan *p)
{
    for (int i = 0; i < p->n_counts; i++)
        if (p->points[i].found)
            return true;
    return false;
}

/* Whether the batch can be divided among any of them, fitting or not. */
static bool any_divided(const QnClusterPlan *p)
{
    for (int i = 0; i < p->n_counts; i++)
        if (p->points[i].any)
            return true;
    return false;
}

static QnStatus plan(const QnArgs *a, QnClusterPlan *p)
{
    QN_TRY(qn_coefs_open(&p->coefs));
    QN_TRY(qn_plan_catalogue(a, &p->catalogue));
    QN_TRY(qn_device_open_named("null", NULL, &p->device));
    p->counts = qn_counts_new(p->device);
    p->arena = qn_arena_new();
    p->points = qn_alloc_array(QN_CLUSTER_MOST, sizeof *p->points);
    if (!p->counts || !p->arena || !p->points)
        return QN_ENOMEM;
    QN_TRY(read_job(a, p));
    QN_TRY(search(p));
    advise(p);
    if (!any_found(p) && any_divided(p))
        QN_TRY(search_way_out(p));
    return qn_cluster_print(a, p, a->text[QN_PLAN_CSV] != NULL);
}

static int run(QnArgs *a)
{
    QnClusterPlan *p = qn_alloc(sizeof *p);
    QnStatus st = p ? plan(a, p) : QN_ENOMEM;
    bool limited = p && (p->deadline_s > 0 || p->budget_usd > 0);
    bool found = st == QN_OK && any_found(p) && (!limited || p->advised);
    if (p) {
        qn_counts_free(p->counts);
        qn_plan_subject_close(&p->subject);
        qn_arena_free(p->arena);
        qn_device_close(p->device);
        qn_catalogue_fini(&p->catalogue);
        qn_free(p->points);
    }
    qn_free(p);
    if (st != QN_OK)
        return qn_cli_fail(a);
    return found ? QN_EXIT_OK : QN_EXIT_USAGE;
}

const QnCommand qn_cmd_plan_cluster = {
    .name = "plan cluster",
    .summary = "Find the best way to share a training run among many devices",
    .usage = "RECIPE|MODEL.onnx|NAME --gpu NAME [--gpus 8…16384] [options]",
    .examples = "  quern plan cluster gpt3_175b --gpu \"H100 SXM5\" --gpus 64…4096 --tokens 300G\n"
                "  quern plan cluster llama2_7b --gpu \"A100 SXM4 80GB\" --gpus 8,16,96 --csv\n"
                "  quern plan cluster resnet101 --gpu \"V100 SXM2 16GB\" --network 1.5\n"
                "\nExit code 2 where nothing fits or no number of devices is within the limits; "
                "what would be is printed all the same.\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
