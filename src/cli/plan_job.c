/* The job that the options of quern plan say. */
#include "cli/plan.h"

#include "plan/measured.h"
#include "plan/reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number that makes no sense as 0. */
static QnStatus read_positive(const QnArgs *a, int option, double *out)
{
    QN_TRY(qn_plan_number(a, option, 0, out));
    if (a->text[option] && !(*out > 0))
        return qn_fail(QN_EUSAGE, "%s: expected a number above 0, found '%s'",
                       a->command->options[option].name, a->text[option]);
    return QN_OK;
}

/* ---- the job ---- */

static QnStatus read_batch(const QnArgs *a, const QnPlanSubject *s, QnJob *job)
{
    const QnRecipe *recipe = s->recipe;
    const char *text = a->text[QN_PLAN_BATCH];
    char *end;
    job->accumulate = a->number[QN_PLAN_ACCUMULATE];
    if (!text && recipe && job->train) {
        job->batch = recipe->batch;
        job->accumulate = job->accumulate ? job->accumulate : recipe->accumulate;
    } else if (!text && recipe) {
        job->batch = recipe->eval_batch ? recipe->eval_batch : recipe->batch;
    } else if (!text) {
        job->batch = s->batch;
    }
    if (!text || !strcmp(text, "auto"))
        return QN_OK;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < 1 || n > 1 << 24)
        return qn_fail(QN_EUSAGE,
                       "--batch: expected auto or a whole number from 1 to 16777216, found '%s'",
                       text);
    job->batch = n;
    return QN_OK;
}

/* The stacks that have products in 8 bits, but no convolutions. */
static QnStatus check_stack(const QnArgs *a, const QnJob *job)
{
    bool narrow = job->numbers == QN_NUMBERS_INT8 || job->numbers == QN_NUMBERS_FP8;
    bool lacks = job->tier == QN_TIER_EAGER || job->tier == QN_TIER_CHANNELS ||
                 job->tier == QN_TIER_COMPILED || job->tier == QN_TIER_TENSORFLOW;
    if (job->any_numbers || !narrow || !lacks || !job->model->family->image ||
        !a->text[QN_PLAN_STACK])
        return QN_OK;
    return qn_fail(QN_EUSAGE,
                   "--precision %s: %s runs no nets of images in it on devices; --stack tensorrt "
                   "does, in inference",
                   qn_numbers_name(job->numbers), qn_tier_name(job->tier));
}

static QnStatus read_precision(const QnArgs *a, const QnRecipe *recipe, QnJob *job)
{
    static const QnNumbers of_recipe[] = { QN_NUMBERS_FP32, QN_NUMBERS_BF16_AMP,
                                           QN_NUMBERS_FP16_AMP, QN_NUMBERS_BF16_AMP,
                                           QN_NUMBERS_BF16_AMP };
    const char *text = a->text[QN_PLAN_PRECISION];
    job->any_numbers = text ? !strcmp(text, "auto") : !recipe;
    if (!text && recipe)
        job->numbers = of_recipe[recipe->precision];
    if (text && !job->any_numbers && !qn_read_numbers(text, &job->numbers, &job->weight_bits))
        QN_TRY(qn_numbers_find(text, &job->numbers)); /* the error */
    if (!job->any_numbers && job->numbers == QN_NUMBERS_INT8 && job->train)
        return qn_fail(QN_EUSAGE,
                       "--precision %s: nothing trains in it, it is for --task infer; "
                       "--precision auto takes what the device is best at",
                       text);
    if (job->weight_bits > 0 && job->train)
        return qn_fail(QN_EUSAGE, "--precision %s: weights of so few bits are for --task infer",
                       text);
    if (a->text[QN_PLAN_STACK] && a->text[QN_PLAN_FRAMEWORK])
        return qn_fail(QN_EUSAGE, "--stack and --framework: one of them at a time");
    job->framework = a->text[QN_PLAN_FRAMEWORK];
    if (job->framework)
        job->tier = qn_measured_tier(job->framework);
    if (a->text[QN_PLAN_STACK])
        QN_TRY(qn_tier_find(a->text[QN_PLAN_STACK], &job->tier));
    return check_stack(a, job);
}

static QnStatus read_generation(const QnArgs *a, QnJob *job)
{
    job->generate = a->number[QN_PLAN_GENERATE];
    job->prompt = a->text[QN_PLAN_PROMPT] ? a->number[QN_PLAN_PROMPT] : 512;
    if (a->text[QN_PLAN_PROMPT] && !job->generate)
        return qn_fail(QN_EUSAGE, "--prompt needs --generate N, the tokens of an answer");
    if (job->generate && job->train)
        return qn_fail(QN_EUSAGE, "--generate is for --task infer");
    if (job->generate && !job->model->family->generate)
        return qn_fail(QN_EUSAGE, "--generate: %s does not answer token by token",
                       job->model->name);
    if (job->generate && job->sequence)
        return qn_fail(QN_EUSAGE, "--generate and --sequence: one of them at a time");
    return QN_OK;
}

/* Examples of a second that a thread prepares: JPEG decoded by SIMD, notes of loaders say. */
enum { LOADER_RATE = 250 };

static QnStatus read_feed(const QnArgs *a, const QnPlanTable *t, QnJob *job)
{
    const QnRecipe *r = t->subject.recipe;
    bool pictures = r && r->data.format == QN_DATA_FOLDER && !r->data.cache;
    job->feed.bytes = qn_plan_subject_bytes(&t->subject, job->image, job->sequence);
    job->feed.workers = (double)a->number[QN_PLAN_WORKERS];
    if (!(job->feed.workers > 0) && pictures)
        job->feed.workers = r->data.workers ? (double)r->data.workers : 2; /* quern train's own */
    if (a->text[QN_PLAN_LOADER_RATE] && !(job->feed.workers > 0))
        return qn_fail(QN_EUSAGE, "--loader-rate needs --workers N");
    job->feed.rate = LOADER_RATE;
    return a->text[QN_PLAN_LOADER_RATE] ? read_positive(a, QN_PLAN_LOADER_RATE, &job->feed.rate)
                                        : QN_OK;
}

/* How many examples there are, and how often they are gone through. */
static QnStatus read_items(const QnArgs *a, QnPlanTable *t, QnJob *job)
{
    const QnRecipe *r = t->subject.recipe;
    double tokens, length = (double)(job->sequence ? job->sequence : job->model->family->sequence);
    bool by_tokens = length > 0 && !job->model->family->image;
    QN_TRY(read_positive(a, QN_PLAN_SAMPLES, &t->samples));
    QN_TRY(read_positive(a, QN_PLAN_EPOCHS, &job->epochs));
    QN_TRY(read_positive(a, QN_PLAN_TOKENS, &tokens));
    if (tokens > 0 && !by_tokens)
        return qn_fail(QN_EUSAGE, "--tokens: %s takes no tokens; give --samples and --epochs",
                       job->model->name);
    if (tokens > 0 && t->samples > 0)
        return qn_fail(QN_EUSAGE, "--tokens and --samples say the same thing: give one of them");
    if (!(t->samples > 0))
        t->samples = t->subject.samples;
    double examples = t->samples * (job->epochs > 0 ? job->epochs : 1);
    if (r && !(job->epochs > 0) && r->steps)
        examples = (double)(r->steps * r->batch * r->accumulate);
    else if (r && !(job->epochs > 0))
        examples = t->samples * (double)r->epochs;
    if (r && t->samples > 0)
        job->epochs = examples / t->samples;
    job->items = tokens > 0 ? tokens : examples * (by_tokens ? length : 1);
    if (t->samples > 0 && !(job->epochs > 0))
        job->epochs = 1;
    if (t->samples >= 1) /* quern train takes no batch that is larger than the data */
        job->most_batch = (int64_t)QN_MIN(t->samples, 256);
    if (tokens > 0)
        job->epochs = 0;
    /* a pass forward is a third of a step */
    if (t->subject.has_data && t->subject.data.test && job->train)
        job->evaluation = (double)qn_dataset_count(t->subject.data.test) /
                          (3 * (double)qn_dataset_count(t->subject.data.train));
    return QN_OK;
}

static QnStatus check_limits(const QnArgs *a, const QnPlanTable *t, const QnJob *job)
{
    /* in commands without a deadline the budget is the price of a device, whatever it works on */
    bool of_job = a->command->options[QN_PLAN_DEADLINE].name != NULL;
    const char *limit = !of_job               ? NULL
                        : job->budget_usd > 0 ? "--budget"
                        : job->deadline_s > 0 ? "--deadline"
                                              : NULL;
    if (!limit || job->items > 0)
        return QN_OK;
    if (t->subject.recipe)
        return qn_fail(QN_EUSAGE,
                       "%s needs the size of the data set, which is not here (%s): give "
                       "--samples N",
                       limit, t->subject.no_data);
    return qn_fail(QN_EUSAGE, "%s needs the size of the job: --samples and --epochs, or --tokens",
                   limit);
}

static QnStatus read_task(const QnArgs *a, bool *train)
{
    const char *task = a->text[QN_PLAN_TASK];
    bool onnx = a->positional[0] && strstr(a->positional[0], ".onnx");
    *train = task ? !strcmp(task, "train") : !onnx;
    if (task && !*train && strcmp(task, "infer") != 0)
        return qn_fail(QN_EUSAGE, "--task: expected train or infer, found '%s'", task);
    return QN_OK;
}

static QnStatus read_job(const QnArgs *a, QnPlanTable *t)
{
    QnJob *job = &t->job;
    const QnPlanSubject *s = &t->subject;
    job->model = s->model;
    job->image = a->number[QN_PLAN_IMAGE];
    job->sequence = a->number[QN_PLAN_SEQUENCE];
    job->recompute = a->text[QN_PLAN_RECOMPUTE] || (s->recipe && s->recipe->memory_budget_bytes);
    if (job->image && !job->model->family->image)
        return qn_fail(QN_EUSAGE, "--image: %s takes no images", job->model->name);
    if (job->sequence && (job->model->family->image || !job->model->family->sequence))
        return qn_fail(QN_EUSAGE, "--sequence: %s takes no tokens", job->model->name);
    QN_TRY(read_batch(a, s, job));
    QN_TRY(read_precision(a, s->recipe, job));
    QN_TRY(read_generation(a, job));
    QN_TRY(qn_plan_money(a, &job->money));
    QN_TRY(read_positive(a, QN_PLAN_BUDGET, &job->budget_usd));
    QN_TRY(read_positive(a, QN_PLAN_POWER, &job->power_w));
    QN_TRY(qn_plan_time(a, QN_PLAN_DEADLINE, &job->deadline_s));
    QN_TRY(read_items(a, t, job));
    QN_TRY(read_feed(a, t, job));
    return check_limits(a, t, job);
}

/* Some files hold their batch in shapes that cannot be changed. */
static QnStatus find_batch(QnPlanTable *t)
{
    const QnCount *count;
    int64_t asked = t->job.batch, holds = t->subject.file_batch;
    QnCountRequest r = { .train = t->job.train,
                         .batch = asked ? asked : 2,
                         .image = t->job.image,
                         .sequence = t->job.sequence };
    if (!t->subject.onnx || asked == holds)
        return QN_OK;
    QnStatus st = qn_counts_get(t->counts, t->job.model, &r, &count);
    if (st == QN_OK || st == QN_ENOMEM)
        return st;
    r.batch = holds;
    if (!asked)
        t->job.batch = holds;
    else if (qn_counts_get(t->counts, t->job.model, &r, &count) == QN_OK)
        return qn_fail(QN_EUSAGE, "--batch: the shapes in %s hold a batch of %lld alone",
                       t->job.model->name, (long long)holds);
    return QN_OK; /* what is wrong with it otherwise is said when it is priced */
}

QnStatus qn_plan_table_open(QnPlanTable *t, const QnArgs *a)
{
    *t = (QnPlanTable){ 0 };
    QN_TRY(read_task(a, &t->job.train));
    QN_TRY(
        qn_plan_subject_open(&t->subject, a, a->positional[0],
                             &(QnPlanSubjectOptions){ .train = t->job.train,
                                                      .dim_option = QN_PLAN_DIM,
                                                      .classes = a->number[QN_PLAN_CLASSES],
                                                      .image = a->number[QN_PLAN_IMAGE],
                                                      .sequence = a->number[QN_PLAN_SEQUENCE] }));
    QN_TRY(read_job(a, t));
    QN_TRY(qn_coefs_open(&t->coefs));
    QN_TRY(qn_fleet_open(&t->fleet));
    t->job.fleet = &t->fleet;
    QN_TRY(qn_plan_catalogue(a, &t->catalogue));
    QN_TRY(qn_plan_here_open(t, a));
    QN_TRY(qn_device_open_named("null", NULL, &t->device));
    t->counts = qn_counts_new(t->device);
    t->offers = qn_alloc_array(QN_PLAN_MOST, sizeof *t->offers);
    if (!t->counts || !t->offers)
        return QN_ENOMEM;
    QN_TRY(find_batch(t));
    if (t->catalogue.n_cards > QN_PLAN_MOST)
        return qn_fail(QN_EFORMAT, "more than %d devices in the catalogue", QN_PLAN_MOST);
    return QN_OK;
}

void qn_plan_table_close(QnPlanTable *t)
{
    qn_free(t->offers);
    qn_free(t->remedies);
    qn_counts_free(t->counts);
    qn_device_close(t->device);
    qn_plan_here_close(t);
    qn_catalogue_fini(&t->catalogue);
    qn_plan_subject_close(&t->subject);
    *t = (QnPlanTable){ 0 };
}
