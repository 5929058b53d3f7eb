/* Measured memory: model,task,gpu,num_gpus,precision,batch_per_gpu,seq_or_res,memory,unit,
 * framework_or_config. */
#include "plan/figures.h"
#include "plan/memory.h"
#include "plan/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Part { ALL, ACTIVATIONS, STATES, ALLOCATED } Part;

typedef struct Job {
    bool divided;
    Part part;
    double bytes; /* of the unit */
    QnMemoryRequest request;
    QnPublished published;
} Job;

typedef struct Reading {
    const char *config, *size, *precision;
    const QnModel *model;
    const QnCard *card;
    double n, batch;
} Reading;

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* "seq2048", "tgt192/mem192", "800x1333", "224". */
static void read_size(const QnModel *m, const char *text, QnCountRequest *q)
{
    char *end;
    while (*text && (*text < '0' || *text > '9'))
        text++;
    long first = strtol(text, &end, 10);
    if (!m->family->image) {
        q->sequence = first;
        return;
    }
    q->image = first;
    if (*end == 'x')
        q->width = strtol(end + 1, NULL, 10);
}

/* A job of the text's framework as it is divided among devices. */
static const char *read_divided(QnFigures *s, const Reading *r, Job *j)
{
    bool megatron = has(r->config, "Megatron"), titan = has(r->config, "torchtitan");
    char *framework = qn_arena_alloc(s->arena, 160);
    QnNumbers numbers = QN_NUMBERS_BF16_AMP;
    QnCountRequest size = { 0 };
    if (!framework)
        return "out of memory";
    if (has(r->precision, "fp8"))
        numbers = QN_NUMBERS_FP8;
    else if (!strcmp(r->precision, "bf16") && !titan)
        numbers = QN_NUMBERS_BF16;
    read_size(r->model, r->size, &size);
    /* Korthikanti et al. 2022: eight devices a tensor group, four sequences without a pipeline */
    int stages = megatron ? QN_MAX(1, (int)r->n / 8) : 1;
    int64_t batch = (int64_t)r->batch;
    if (!batch)
        batch = megatron && stages == 1 ? 4 : 1;
    if (megatron)
        snprintf(framework, 160, "Megatron-LM %s TP8 PP%d",
                 has(r->config, "selective") ? "seq-par + selective recompute" : "", stages);
    else
        snprintf(framework, 160, "%.120s", titan ? r->config : "FSDP fullAC");
    QnPublishedText text = { r->model,  r->card,
                             numbers,   (int)r->n,
                             batch,     size.sequence,
                             framework, megatron && stages > 1 ? "global batch 4096" : "" };
    const char *reason = qn_published_read(&text, s->arena, s->counts, &j->published);
    QnSharding *l = &j->published.sharding;
    if (reason)
        return reason;
    if (megatron) {
        if (!has(r->config, "selective"))
            l->recompute = QN_RECOMPUTE_NONE;
        l->interleave = stages > 1 && j->published.split.layers / stages % 3 == 0 ? 3 : 1;
    }
    j->divided = true;
    return NULL;
}

static const char *read_whole(QnFigures *s, const Reading *r, Job *j)
{
    bool detection = has(r->config, "detectron2");
    bool low = has(r->precision, "16");
    QnCountRequest q = { .train = true, .low = low, .batch = (int64_t)r->batch, .unfused = true };
    read_size(r->model, r->size, &q);
    if (q.batch < 1)
        return "the batch is not said";
    j->request = (QnMemoryRequest){ .stack = QN_MEMORY_EAGER,
                                    .card = r->card,
                                    .low = low,
                                    .images = r->model->family->image > 0,
                                    .detection = detection,
                                    .allocated = has(r->config, "allocated"),
                                    .full = has(r->config, "largest that fits") };
    if (qn_counts_get(s->counts, r->model, &q, &j->request.count) != QN_OK)
        return "the graph cannot be built at this size";
    return NULL;
}

static const char *express(QnFigures *s, const char *model, Reading *r, const QnFigure *out, Job *j)
{
    if (qn_model_find(model, &r->model) != QN_OK)
        return "no builder for this model";
    if (qn_catalogue_find(s->catalogue, out->gpu, &r->card) != QN_OK)
        return "the device is not in the catalogue";
    if (has(r->config, "activations per GPU"))
        j->part = ACTIVATIONS;
    else if (has(r->config, "parameters+optimizer"))
        j->part = STATES;
    else if (has(r->config, "peak memory"))
        j->part = ALLOCATED;
    bool divided = has(r->config, "Megatron") || has(r->config, "FSDP") ||
                   (r->n > 1 && r->model->family->generate);
    return divided ? read_divided(s, r, j) : read_whole(s, r, j);
}

static QnStatus read_figure(QnFigures *s, int64_t row, QnFigure *out)
{
    Reading r = { .config = qn_figures_cell(s, row, "framework_or_config"),
                  .size = qn_figures_cell(s, row, "seq_or_res"),
                  .precision = qn_figures_cell(s, row, "precision") };
    const char *model = qn_figures_cell(s, row, "model"), *unit = qn_figures_cell(s, row, "unit");
    Job *j = qn_arena_alloc(s->arena, sizeof *j);
    if (!j)
        return QN_ENOMEM;
    QN_TRY(qn_figures_number(s, row, "memory", 0, &out->measured));
    QN_TRY(qn_figures_number(s, row, "num_gpus", 1, &r.n));
    if (qn_figures_number(s, row, "batch_per_gpu", 0, &r.batch) != QN_OK)
        r.batch = -1; /* "max" */
    if (r.n < 1 || r.n > 1e6 || r.batch > 1 << 24)
        return qn_fail(QN_EFORMAT,
                       "%s:%lld: num_gpus must be 1 to a million, batch_per_gpu at most "
                       "16,777,216",
                       s->table.path, (long long)out->line);
    out->gpu = qn_figures_cell(s, row, "gpu");
    out->model = model;
    out->unit = unit;
    out->group = has(r.config, "Megatron")     ? "Megatron-LM"
                 : has(r.config, "torchtitan") ? "torchtitan"
                 : has(r.config, "detectron2") ? "detectron2"
                 : has(r.config, "NGC")        ? "PyTorch, one device"
                                               : "others";
    snprintf(out->name, sizeof out->name, "%.28s %.20s x%g %s b%g %.12s %.16s", model, out->gpu,
             r.n, r.precision, r.batch, r.size, r.config);
    j->bytes = !strcmp(unit, "GiB")   ? 1073741824.0
               : !strcmp(unit, "MiB") ? 1048576.0
               : !strcmp(unit, "GB")  ? 1e9
               : !strcmp(unit, "MB")  ? 1e6
                                      : 0;
    out->reason = !(j->bytes > 0) ? "no model of this unit"
                  : r.batch < 0   ? "the batch is no number"
                                  : express(s, model, &r, out, j);
    out->job = j;
    return QN_OK;
}

static double predict(const QnFigures *s, const void *at, const QnFleet *f)
{
    const Job *j = at;
    (void)s;
    if (!j->divided)
        return qn_memory_terms(&j->request, f).total / j->bytes;
    const QnPublished *p = &j->published;
    QnParallelMemory m = qn_parallel_memory(&p->split, &p->sharding, &p->training);
    double bytes = j->part == ACTIVATIONS ? m.activations
                   : j->part == STATES    ? m.weights + m.gradients + m.optimizer
                                          : m.total;
    return bytes / j->bytes;
}

const QnFigureKind qn_figures_memory = {
    .name = "memory",
    .columns = "model,task,gpu,num_gpus,precision,batch_per_gpu,seq_or_res,memory,unit",
    .first = QN_FLEET_MEMORY_IMAGES,
    .last = QN_FLEET_MEMORY_SPREAD,
    .spread = QN_FLEET_MEMORY_SPREAD,
    .goal = 0.10,
    .read = read_figure,
    .predict = predict
};
