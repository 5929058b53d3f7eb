#include "plan/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID,
    MODEL,
    TASK,
    GPU,
    NUM_GPUS,
    PRECISION,
    BATCH,
    SIZE,
    THROUGHPUT,
    UNIT,
    FRAMEWORK,
    FLAG,
    COLUMNS
};

static const char *const column_names[COLUMNS] = {
    "id",         "model",      "task", "gpu",       "num_gpus", "precision", "batch_per_gpu",
    "seq_or_res", "throughput", "unit", "framework", "flag",
};

/* The first text that the name has decides. */
QnTier qn_measured_tier(const char *framework)
{
    static const struct {
        const char *text;
        QnTier tier;
    } known[] = {
        { "torch.compile", QN_TIER_COMPILED },
        { "XLA", QN_TIER_COMPILED },
        { "MLPerf Training", QN_TIER_FUSED },
        { "TensorRT", QN_TIER_TENSORRT },
        { "MLPerf Inference", QN_TIER_TENSORRT },
        { "Megatron", QN_TIER_MEGATRON },
        { "MosaicML", QN_TIER_MEGATRON },
        { "torchtitan", QN_TIER_MEGATRON },
        { "nanoGPT", QN_TIER_MEGATRON },
        { "llama.cpp", QN_TIER_LLAMA_CPP },
        { "ExLlama", QN_TIER_LLAMA_CPP },
        { "MLC-LLM", QN_TIER_LLAMA_CPP },
        { "habana", QN_TIER_HABANA },
        { "torch7", QN_TIER_OLD },
        { "Caffe2", QN_TIER_OLD },
        { "PyTorch 0.", QN_TIER_OLD },
        { "PyTorch 1.0", QN_TIER_OLD },
        { "ensorFlow 1.x", QN_TIER_OLD },
        { "ensorflow 1.", QN_TIER_OLD },
        { "nhwc", QN_TIER_CHANNELS },
        { "NGC 20.01", QN_TIER_EAGER },
        { "NGC 22.09", QN_TIER_EAGER },
        { "PyTorch 20.", QN_TIER_CHANNELS },
        { "PyTorch 21.", QN_TIER_CHANNELS },
        { "PyTorch 22.", QN_TIER_CHANNELS },
        { "PyTorch NGC", QN_TIER_CHANNELS },
        { "ensorFlow", QN_TIER_TENSORFLOW },
        { "MXNet", QN_TIER_TENSORFLOW },
        { "Paddle", QN_TIER_TENSORFLOW },
    };
    for (int i = 0; i < QN_COUNT(known); i++)
        if (strstr(framework, known[i].text))
            return known[i].tier;
    return QN_TIER_EAGER;
}

/* ---- what a row means ---- */

typedef struct Reading {
    const char *const *cell; /* by COLUMNS */
    double number, batch;
} Reading;

typedef struct Size {
    int64_t dim[4]; /* of an image, or tokens */
    int n;          /* 0: not said */
} Size;

/* "224", "800x1333", "832-1344", "128x128x128x4", "seq384", "tgt192/mem192"; the name of a data set
 * stands for what its model takes. Token streams ("in128/out128", "tg128") have their own model of
 * cost, which is not here. */
static bool read_size(const char *text, Size *size)
{
    static const char *const sets[] = { "KiTS19",       "LibriSpeech", "Criteo",
                                        "Criteo1TB-mh", "16.7s audio", "best MxNxK found" };
    long first, second;
    *size = (Size){ 0 };
    if (!text[0])
        return true;
    if (sscanf(text, "tgt%6ld/mem%6ld", &first, &second) == 2 ||
        sscanf(text, "src%6ld/tgt%6ld", &first, &second) == 2) {
        *size = (Size){ { first, second }, 2 };
        return first > 0 && second > 0;
    }
    for (int i = 0; i < QN_COUNT(sets); i++)
        if (!strcmp(text, sets[i]))
            return true;
    if (!strncmp(text, "seq", 3))
        text += 3;
    while (size->n < QN_COUNT(size->dim)) {
        char *end;
        long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n >= 1 << 20)
            return false;
        size->dim[size->n++] = n;
        if (!*end)
            return true;
        if (*end != 'x' && *end != '-')
            return false;
        text = end + 1;
    }
    return false;
}

static void set_size(const QnFamily *f, const Size *s, QnCountRequest *q)
{
    if (!f->image) {
        q->sequence = s->dim[0];
        q->context = s->dim[1];
        if (f->token_batch)
            q->batch = QN_MAX(1, q->batch / (q->sequence ? q->sequence : f->sequence));
        return;
    }
    int volume = f->depth && s->n > 2; /* slices come first, channels last */
    q->depth = volume ? s->dim[0] : 0;
    q->image = s->dim[volume];
    q->width = s->n > 1 ? s->dim[volume + 1] : 0;
}

/* Sequences that were packed or sorted by length are shorter than what they are called. */
static void read_real_length(const char *flag, int64_t *size)
{
    double part = 0;
    const char *at = strstr(flag, "length about ");
    if (!at)
        return;
    if (!strncmp(at + 13, "half", 4))
        part = 0.5 * (double)*size;
    else if (sscanf(at + 13, "%lf", &part) == 1 && part < 1)
        part *= (double)*size;
    if (part >= 1)
        *size = (int64_t)part;
}

/* Examples, or tokens, of one step in the row's unit; false: not such a unit. */
static bool read_unit(const Reading *r, const QnCount *c, QnMeasured *m)
{
    static const struct {
        const char *unit;
        bool is_time, tokens, of_one;
        double scale;
    } units[] = {
        { "img/s", false, false, false, 1 },       { "seq/s", false, false, false, 1 },
        { "samples/s", false, false, false, 1 },   { "volumes/s", false, false, false, 1 },
        { "tok/s", false, true, false, 1 },        { "tok/s/GPU", false, true, true, 1 },
        { "ms/batch", true, false, false, 1e3 },   { "ms/iter", true, false, false, 1e3 },
        { "s/iter", true, false, false, 1 },       { "ms/img", true, false, true, 1e3 },
        { "s/img", true, false, true, 1 },         { "ms_p90_latency", true, false, true, 1e3 },
        { "utt/s", false, false, false, 1 },       { "items/s", false, false, false, 1 },
        { "mel_frames/s", false, true, false, 1 }, { "audio_samples/s", false, true, false, 1 },
    };
    if (!strcmp(r->cell[UNIT], "TFLOPS")) {
        m->per_step = 1e-12 * c->flops;
        m->measured_s = m->per_step / m->value;
        return true;
    }
    for (int i = 0; i < QN_COUNT(units); i++) {
        if (strcmp(r->cell[UNIT], units[i].unit) != 0)
            continue;
        /* MLPerf logs tokens for GPT-3, whatever they are called */
        bool tokens = units[i].tokens || (strstr(r->cell[FRAMEWORK], "MLPerf Training") &&
                                          !strcmp(m->model, "gpt3_175b"));
        double items = tokens ? c->tokens : c->examples;
        m->is_time = units[i].is_time;
        if (units[i].is_time)
            m->per_step = units[i].scale / (units[i].of_one ? items : 1);
        else
            m->per_step = items * (units[i].of_one ? 1 : m->request.n_cards);
        m->measured_s = m->is_time ? m->value / m->per_step : m->per_step / m->value;
        return m->per_step > 0;
    }
    return false;
}

static bool read_numbers(const char *text, QnNumbers *p)
{
    if (!strcmp(text, "fp32(tf32)"))
        text = "tf32";
    return qn_numbers_find(text, p) == QN_OK;
}

/* A step that many devices share. */
static const char *express_divided(QnArena *arena, QnCounts *counts, const Reading *r,
                                   const QnModel *model, int64_t sequence, QnMeasured *m)
{
    QnPublishedText text = {
        model,    m->request.card,    m->request.numbers, m->request.n_cards, (int64_t)r->batch,
        sequence, r->cell[FRAMEWORK], r->cell[FLAG]
    };
    QnPublished *p = qn_arena_alloc(arena, sizeof *p);
    QnCount *count = qn_arena_alloc(arena, sizeof *count);
    if (!p || !count)
        return "out of memory";
    if (!m->request.train)
        return "inference on shared devices is not modelled";
    const char *reason = qn_published_read(&text, arena, counts, p);
    if (reason)
        return reason;
    m->divided = p;
    m->request.tier = qn_measured_tier(m->framework);
    count->examples = (double)p->sharding.global_batch / m->request.n_cards;
    count->tokens = qn_published_tokens(p) / m->request.n_cards;
    m->count = count;
    return read_unit(r, count, m) ? NULL : "no model of this unit";
}

/* "gbs=256": examples of a step on all devices; 0: not said. */
static int64_t global_batch(const char *flag)
{
    const char *at = strstr(flag, "gbs=");
    long long n = 0;
    return at && sscanf(at + 4, "%lld", &n) == 1 && n > 0 && n < 1 << 24 ? n : 0;
}

/* NULL, or why the row cannot be predicted. */
static const char *express(QnArena *arena, const QnCatalogue *c, QnCounts *counts, const Reading *r,
                           QnMeasured *m)
{
    const QnModel *model;
    const char *const *cell = r->cell;
    Size size;
    m->request.train = !strcmp(m->task, "train");
    if (qn_model_find(m->model, &model) != QN_OK)
        return "no builder for this model";
    if (qn_catalogue_find(c, m->gpu, &m->request.card) != QN_OK)
        return "the device is not in the catalogue";
    if (!read_numbers(m->precision, &m->request.numbers))
        return "no model of this precision";
    if (r->batch < 0 || r->batch != (double)(int64_t)r->batch)
        return "the batch is no number";
    if (!read_size(cell[SIZE], &size))
        return "token by token, which is not modelled yet";
    if (qn_published_is_divided(cell[FRAMEWORK]))
        return express_divided(arena, counts, r, model, size.dim[0], m);
    read_real_length(cell[FLAG], &size.dim[0]);
    m->request.tier = qn_measured_tier(m->framework);
    m->request.no_update = strstr(cell[FLAG], "no optimizer step") != NULL;
    QnCountRequest q = { .train = m->request.train,
                         .low = qn_numbers_low(m->request.numbers, m->request.train),
                         .unfused = qn_tier_is_eager(m->request.tier),
                         .batch = (int64_t)r->batch };
    int64_t global = global_batch(cell[FLAG]);
    if (!q.batch && global && global < m->request.n_cards)
        return "an example is spread over several devices, which is not modelled";
    if (!q.batch && global)
        q.batch = global / m->request.n_cards;
    if (!q.batch) /* what most scripts take */
        q.batch = model->family->batch ? model->family->batch : model->family->image ? 64 : 8;
    set_size(model->family, &size, &q);
    m->request.model = model->name;
    m->request.family = model->family->name;
    m->request.framework = m->framework;
    m->request.bridged = strstr(m->framework, "+NVLink") != NULL;
    m->request.one_process = strstr(m->framework, "DataParallel") != NULL;
    if (strstr(cell[FLAG], "includes H2D copy"))
        m->request.copied_bytes =
            12.0 * (double)q.batch * (double)(q.image ? q.image * q.image : 224 * 224);
    m->times = 1;
    if (qn_counts_get(counts, model, &q, &m->count) != QN_OK)
        return "the graph cannot be built at this size";
    if (!read_unit(r, m->count, m))
        return "no model of this unit";
    if (model->family->p90 > 0 && !strcmp(m->unit, "ms_p90_latency")) {
        m->per_step *= model->family->p90;
        m->measured_s /= model->family->p90;
    }
    QnCoefs k;
    QnCostResult cost;
    qn_coefs_start(&k);
    return qn_measured_predict(m, &k, &cost) == QN_OK ? NULL : "the data sheet has no such rate";
}

static QnStatus read_row(QnMeasuredSet *s, const QnCatalogue *c, QnCounts *counts, int64_t row,
                         const int *column)
{
    const char *cell[COLUMNS];
    Reading r = { .cell = cell };
    double cards;
    for (int i = 0; i < COLUMNS; i++)
        cell[i] = s->table.row[row][column[i]];
    QN_TRY(qn_table_number(&s->table, row, column[THROUGHPUT], 0, &r.number));
    if (qn_table_number(&s->table, row, column[BATCH], 0, &r.batch) != QN_OK)
        r.batch = -1; /* "max", "mix" */
    QN_TRY(qn_table_number(&s->table, row, column[NUM_GPUS], 1, &cards));
    if (strstr(cell[FLAG], "suspect")) {
        s->suspect++;
        return QN_OK;
    }
    if (!(r.number > 0) || cards < 1 || cards > 1e6 || r.batch > 1 << 24)
        return qn_fail(QN_EFORMAT,
                       "%s:%lld: throughput must be above 0, num_gpus 1 to a million, "
                       "batch_per_gpu at most 16,777,216",
                       s->table.path, (long long)s->table.line[row]);
    QnMeasured *m = &s->rows[s->n++];
    *m = (QnMeasured){ .id = cell[ID],
                       .model = cell[MODEL],
                       .task = cell[TASK],
                       .gpu = cell[GPU],
                       .precision = cell[PRECISION],
                       .framework = cell[FRAMEWORK],
                       .unit = cell[UNIT],
                       .line = s->table.line[row],
                       .value = r.number,
                       .request = { .n_cards = (int)cards } };
    m->reason = express(s->arena, c, counts, &r, m);
    return QN_OK;
}

QnStatus qn_measured_parse(QnMeasuredSet *s, const QnCatalogue *c, QnCounts *counts,
                           const char *path, const char *text, size_t bytes)
{
    int column[COLUMNS];
    QnStatus st = QN_OK;
    *s = (QnMeasuredSet){ .arena = qn_arena_new() };
    if (!s->arena)
        return QN_ENOMEM;
    QN_TRY_DONE(qn_table_parse(&s->table, s->arena, path, text, bytes));
    for (int i = 0; i < COLUMNS; i++)
        QN_TRY_DONE(qn_table_column(&s->table, column_names[i], &column[i]));
    s->rows = qn_arena_array(s->arena, (size_t)s->table.n_rows + 1, sizeof *s->rows);
    if (!s->rows)
        QN_TRY_DONE(QN_ENOMEM);
    for (int64_t row = 0; row < s->table.n_rows; row++)
        QN_TRY_DONE(read_row(s, c, counts, row, column));
done:
    if (st != QN_OK)
        qn_measured_fini(s);
    return st;
}

void qn_measured_fini(QnMeasuredSet *s)
{
    qn_table_fini(&s->table);
    qn_arena_free(s->arena);
    *s = (QnMeasuredSet){ 0 };
}

static QnStatus predict_divided(const QnMeasured *m, const QnCoefs *k, QnCostResult *out)
{
    const QnPublished *p = m->divided;
    double spread = k->fleet.x[QN_FLEET_PARALLEL_SPREAD];
    QnParallelResult r;
    QN_TRY(qn_parallel_step(&p->split, &p->sharding, &p->training, &k->fleet, &r));
    *out = (QnCostResult){ .step_s = r.step_s,
                           .low_s = r.step_s * exp(-spread),
                           .high_s = r.step_s * exp(spread),
                           .mfu = r.mfu,
                           .memory_bytes = r.memory.total,
                           .fits = r.fits };
    out->by_limit[QN_LIMIT_LINK] = r.exposed * r.step_s;
    out->by_limit[QN_LIMIT_COMPUTE] = r.step_s - out->by_limit[QN_LIMIT_LINK];
    out->limit = r.exposed > 0.5 ? QN_LIMIT_LINK : QN_LIMIT_COMPUTE;
    return QN_OK;
}

QnStatus qn_measured_predict(const QnMeasured *m, const QnCoefs *k, QnCostResult *out)
{
    if (m->divided)
        return predict_divided(m, k, out);
    return qn_cost_steps(m->prompt, m->count, m->times, &m->request, k, out);
}
