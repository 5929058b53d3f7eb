/* Measured training steps of GPT models: num_gpus,global_batch,micro_batch,hidden,heads,layers,
 * seq,tp,dp,pp,iter_ms,system. */
#include "plan/figures.h"
#include "plan/parallel.h"

#include <stdio.h>
#include <string.h>

typedef struct Job {
    QnModel *model;
    const QnSplit *split;
    QnSharding layout;
    QnTraining training;
} Job;

/* Of one device: four cards of 200 Gb/s a node, as vTrain's cluster has (Bang et al. 2024). */
static const double network_gbs = 12.5;

enum { CARDS, BATCH, MICRO, WIDTH, HEADS, LAYERS, SEQUENCE, TENSOR, DATA, PIPELINE, TIME, CELLS };

static const char *const names[CELLS] = { "num_gpus", "global_batch", "micro_batch", "hidden",
                                          "heads",    "layers",       "seq",         "tp",
                                          "dp",       "pp",           "iter_ms" };

/* An earlier row's model of this size: its graphs are counted once. */
static const Job *find_same(const QnFigures *s, const double *v)
{
    for (int64_t i = 0; i < s->n; i++) {
        const Job *j = s->rows[i].job;
        if (j && j->model->size[0] == (int64_t)v[LAYERS] &&
            j->model->size[1] == (int64_t)v[WIDTH] && j->model->size[2] == (int64_t)v[HEADS] &&
            j->split->sequence == (int64_t)v[SEQUENCE])
            return j;
    }
    return NULL;
}

/* The GPT of this size: a feed-forward net of four times the width, 51,200 tokens. */
static QnStatus make_model(QnFigures *s, const double *v, Job *j)
{
    const QnModel *base;
    const Job *same = find_same(s, v);
    if (same) {
        j->model = same->model;
        j->split = same->split;
        return QN_OK;
    }
    QN_TRY(qn_model_find("gpt3_175b", &base));
    QnSplit *split = qn_arena_alloc(s->arena, sizeof *split);
    j->model = qn_arena_copy(s->arena, base, sizeof *base);
    if (!split || !j->model)
        return QN_ENOMEM;
    j->model->name = "GPT";
    j->model->size[0] = (int64_t)v[LAYERS];
    j->model->size[1] = (int64_t)v[WIDTH];
    j->model->size[2] = (int64_t)v[HEADS];
    j->model->size[4] = 4 * (int64_t)v[WIDTH];
    j->model->size[6] = QN_MAX(j->model->size[6], (int64_t)v[SEQUENCE]);
    j->split = split;
    return qn_split_open(split, s->arena, s->counts, j->model, (int64_t)v[SEQUENCE], 1);
}

static QnStatus check(const QnFigures *s, const QnFigure *r, const double *v)
{
    for (int i = 0; i < CELLS; i++)
        if (!(v[i] >= 1 && v[i] < 1e9))
            return qn_fail(QN_EFORMAT, "%s:%lld: column '%s': expected a number of at least 1",
                           s->table.path, (long long)r->line, names[i]);
    if (v[TENSOR] * v[DATA] * v[PIPELINE] != v[CARDS])
        return qn_fail(QN_EFORMAT, "%s:%lld: tp x dp x pp is %g, num_gpus %g", s->table.path,
                       (long long)r->line, v[TENSOR] * v[DATA] * v[PIPELINE], v[CARDS]);
    return QN_OK;
}

static QnStatus read_figure(QnFigures *s, int64_t row, QnFigure *out)
{
    double v[CELLS];
    Job *j = qn_arena_alloc(s->arena, sizeof *j);
    char *text = qn_arena_alloc(s->arena, 96);
    if (!j || !text)
        return QN_ENOMEM;
    for (int i = 0; i < CELLS; i++)
        QN_TRY(qn_figures_number(s, row, names[i], 0, &v[i]));
    QN_TRY(check(s, out, v));
    const char *system = qn_figures_cell(s, row, "system");
    out->gpu = strstr(system, "multi") ? "many nodes" : "one node";
    out->weight = v[CARDS] > 8 ? 6 : 1; /* few rows, and what large models need */
    out->unit = "ms";
    out->measured = v[TIME];
    snprintf(out->name, sizeof out->name, "h%g L%g x%g tp%g dp%g pp%g batch %g of %g", v[WIDTH],
             v[LAYERS], v[CARDS], v[TENSOR], v[DATA], v[PIPELINE], v[MICRO], v[BATCH]);
    snprintf(text, 96, "h%g L%g", v[WIDTH], v[LAYERS]);
    out->model = text;
    snprintf(text + 32, 64, "tp%g dp%g pp%g", v[TENSOR], v[DATA], v[PIPELINE]);
    out->group = text + 32;
    const QnCard *card;
    if (!strstr(system, "A100") || qn_catalogue_find(s->catalogue, "A100 SXM4 80GB", &card)) {
        out->reason = "the system's device is not known";
        return QN_OK;
    }
    QN_TRY(make_model(s, v, j));
    j->layout = (QnSharding){ .data = (int)v[DATA],
                              .tensor = (int)v[TENSOR],
                              .pipeline = (int)v[PIPELINE],
                              .context = 1,
                              .interleave = 1,
                              .micro_batch = (int64_t)v[MICRO],
                              .global_batch = (int64_t)v[BATCH] };
    j->training = (QnTraining){ .card = card,
                                .numbers = QN_NUMBERS_FP16_AMP,
                                .links = qn_links_of(card, network_gbs),
                                .host = 1,
                                .compression = 1,
                                .logit_bytes = 6 };
    if (qn_parallel_check(j->split, &j->layout) != QN_OK) {
        out->reason = "the batch or the layers cannot be divided so";
        return QN_OK;
    }
    /* the file does not say: on many nodes most would not fit otherwise, and none is faster */
    if (strstr(system, "multi") ||
        qn_parallel_memory(j->split, &j->layout, &j->training).total > 80 * 1.0737e9)
        j->layout.recompute = QN_RECOMPUTE_FULL;
    out->job = j;
    return QN_OK;
}

static double predict(const QnFigures *s, const void *at, const QnFleet *f)
{
    const Job *j = at;
    QnParallelResult r;
    (void)s;
    return qn_parallel_step(j->split, &j->layout, &j->training, f, &r) == QN_OK ? 1e3 * r.step_s
                                                                                : 0;
}

const QnFigureKind qn_figures_parallel = {
    .name = "parallel training",
    .columns = "num_gpus,global_batch,micro_batch,hidden,heads,layers,seq,tp,dp,pp,iter_ms,system",
    .first = QN_FLEET_GEMM,
    .last = QN_FLEET_PARALLEL_SPREAD,
    .spread = QN_FLEET_PARALLEL_SPREAD,
    .goal = 0.12,
    .read = read_figure,
    .predict = predict
};
