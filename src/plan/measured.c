#include "plan/measured.h"

#include "plan/match.h"

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

/* ---- what a row means ---- */

typedef struct Reading {
    const char *const *cell; /* by COLUMNS */
    double number, batch;
    QnReadSize size;
    double weight_bits;
} Reading;

static void set_size(const QnFamily *f, const QnReadSize *s, QnCountRequest *q)
{
    if (!f->image) {
        q->sequence = s->dim[0];
        q->context = s->memory ? s->memory : s->out;
        if (f->token_batch)
            q->batch = QN_MAX(1, q->batch / (q->sequence ? q->sequence : f->sequence));
        return;
    }
    int volume = f->depth && s->n > 2; /* slices come first, channels last */
    q->depth = volume ? s->dim[0] : 0;
    q->image = s->dim[volume];
    q->width = s->n > 1 ? s->dim[volume + 1] : 0;
}

/* Devices that share each step of serving; the others serve on their own. */
static double ways_of(const QnMeasured *m)
{
    static const char *const sharing[] = { "TensorRT-LLM", "optimum-habana",    "vLLM",
                                           "DeepSpeed",    "FasterTransformer", "SGLang",
                                           "LMDeploy" };
    for (int i = 0; i < QN_COUNT(sharing); i++)
        if (strstr(m->framework, sharing[i]))
            return m->request.n_cards;
    return 1;
}

/* Steps in the row's unit. items: of one device's steps, all of them. */
static bool set_unit(const Reading *r, const QnReadUnit *unit, double items, double devices,
                     QnMeasured *m)
{
    m->is_time = unit->is_time;
    if (unit->is_time)
        m->per_step = unit->scale / (unit->of_one ? items : 1);
    else
        m->per_step = items * (unit->of_one ? 1 : devices);
    m->measured_s = m->is_time ? m->value / m->per_step : m->per_step / m->value;
    (void)r;
    return m->per_step > 0;
}

static double items_of(const Reading *r, const QnReadUnit *unit, const QnCount *c,
                       const QnMeasured *m)
{
    /* MLPerf logs tokens for GPT-3, whatever they are called */
    if (strstr(r->cell[FRAMEWORK], "MLPerf Training") && !strcmp(m->model, "gpt3_175b"))
        return c->tokens;
    switch (unit->items) {
    case QN_READ_EXAMPLES: return c->examples;
    case QN_READ_TOKENS: return c->tokens;
    case QN_READ_TFLOP: return 1e-12 * c->flops;
    default: return 1;
    }
}

static bool read_unit(const Reading *r, const QnCount *c, QnMeasured *m)
{
    QnReadUnit unit;
    return qn_read_unit(r->cell[UNIT], &unit) &&
           set_unit(r, &unit, items_of(r, &unit, c, m), m->request.n_cards, m);
}

/* How many sequences fit beside the weights, for rows that took as many as they could. */
static int64_t most_in_flight(const QnMeasured *m, const QnGeneration *g, double batch)
{
    const QnCount *last = g->last ? g->last : g->prompt;
    QnNumbers p = m->request.numbers;
    double width = p == QN_NUMBERS_INT8 || p == QN_NUMBERS_FP8 ? 0.5 : 1; /* 16 bits are counted */
    double weights = last->weights * (m->request.weight_bits > 0 ? 1 : width);
    double room = 0.9e9 * m->request.card->memory_gb * m->request.ways - weights;
    double each = QN_MAX(width * last->cache / batch, 1);
    return (int64_t)QN_MIN(QN_MAX(room / each, 1), 2048);
}

/* MLPerf's rules for GPT-J: four answers are followed at once. */
static bool follow_beams(QnCounts *counts, const Reading *r, const QnModel *model,
                         QnCountRequest *q, int64_t in, int64_t out, QnGeneration *g,
                         const QnMeasured *m)
{
    if (!strstr(m->framework, "MLPerf Inference") || strcmp(model->name, "gptj_6b") != 0)
        return true;
    QnGeneration beams;
    q->batch = r->batch > 0 ? q->batch : QN_MAX(q->batch / 4, 1);
    QnCountRequest wide = *q;
    wide.batch = 4 * q->batch;
    if (qn_counts_generation(counts, model, q, in, out, g) != QN_OK ||
        qn_counts_generation(counts, model, &wide, in, out, &beams) != QN_OK)
        return false;
    g->step = beams.step;
    return true;
}

/* Prompts and the answers to them. */
static const char *express_serving(QnCounts *counts, const Reading *r, const QnModel *model,
                                   QnCountRequest *q, QnMeasured *m)
{
    const QnReadSize *s = &r->size;
    QnGeneration g = { 0 };
    QnReadUnit unit;
    bool layered = strstr(m->framework, "llama.cpp") != NULL; /* devices take turns */
    int64_t in = s->in, out = QN_MAX(s->out, 1);
    if (m->request.train || !model->family->generate)
        return "this model does not generate";
    if (!qn_read_unit(r->cell[UNIT], &unit))
        return "no model of this unit";
    if (strstr(r->cell[SIZE], "ubatch")) { /* parts of a long prompt, of `batch` tokens */
        in = q->batch;
        q->batch = 1;
    }
    q->low = q->low || r->weight_bits > 0 ? 2 : 0;
    q->weight_bits = r->weight_bits;
    m->request.weight_bits = r->weight_bits;
    m->request.ways = ways_of(m);
    for (int i = 0; i < 2; i++) { /* the batch may follow from the first */
        if (qn_counts_generation(counts, model, q, in, out, &g) != QN_OK)
            return "the graph cannot be built at this size";
        if (r->batch > 0 || i)
            break;
        q->batch = most_in_flight(m, &g, (double)q->batch);
    }
    if (!follow_beams(counts, r, model, q, in, out, &g, m))
        return "the graph cannot be built at this size";
    bool prompt_alone = s->out == 0 || unit.of_first;
    m->count = prompt_alone ? g.prompt : g.step;
    m->prompt = prompt_alone ? NULL : g.prompt;
    m->times = prompt_alone ? 1 : QN_MAX(g.steps, 1e-9);
    m->request.decodes = !prompt_alone;
    double examples = (double)q->batch;
    double items = unit.items == QN_READ_TOKENS     ? examples * (double)(prompt_alone ? in : out)
                   : unit.items == QN_READ_EXAMPLES ? examples
                                                    : 1;
    double n = layered ? 1 : m->request.n_cards / m->request.ways;
    if (unit.of_one && !unit.is_time) /* a latency is that of all who share the step */
        items /= m->request.ways;
    m->request.n_cards = layered ? 1 : m->request.n_cards;
    return set_unit(r, &unit, items, n, m) ? NULL : "no model of this unit";
}

/* A step that many devices share. global: sequences of a step where the text does not say how; else
 * 0. */
static const char *express_divided(QnArena *arena, QnCounts *counts, const Reading *r,
                                   const QnModel *model, int64_t sequence, int64_t global,
                                   QnMeasured *m)
{
    QnCoefs k;
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
    if (strstr(m->precision, "rowwise")) /* scales of rows cost what 8 bits save */
        text.numbers = QN_NUMBERS_BF16_AMP;
    qn_coefs_start(&k);
    const char *reason = global ? qn_published_find(&text, global, arena, counts, &k.fleet, p)
                                : qn_published_read(&text, arena, counts, p);
    if (reason)
        return reason;
    m->divided = p;
    m->request.tier = qn_measured_tier(m->framework);
    count->examples = (double)p->sharding.global_batch / m->request.n_cards;
    count->tokens = qn_published_tokens(p) / m->request.n_cards;
    m->count = count;
    return read_unit(r, count, m) ? NULL : "no model of this unit";
}

/* What the run is, by the words of its source. */
static void describe(const Reading *r, const QnModel *model, QnMeasured *m)
{
    QnCostRequest *q = &m->request;
    const char *flag = r->cell[FLAG];
    q->tier = qn_measured_tier(m->framework);
    q->no_update = strstr(flag, "no optimizer step") || !strncmp(flag, "forward+backward", 16);
    /* LAMB's batches of 64k sequences are made of micro-batches, which is what tables list */
    q->accumulates =
        m->request.train && strstr(model->name, "_pretrain") && !strstr(m->framework, "MLPerf");
    q->model = model->name;
    q->family = model->family->name;
    q->framework = m->framework;
    q->bridged = strstr(m->framework, "+NVLink") != NULL;
    q->one_process = strstr(m->framework, "DataParallel") != NULL;
    m->times = 1;
}

/* "gbs=256": examples of a step on all devices; 0: not said. */
static int64_t global_batch(const char *flag)
{
    const char *at = strstr(flag, "gbs=");
    long long n = 0;
    return at && sscanf(at + 4, "%lld", &n) == 1 && n > 0 && n < 1 << 24 ? n : 0;
}

/* Where nothing is said: what most scripts take, and in MLPerf what fills the device. */
static int64_t usual_batch(const QnModel *model, const QnMeasured *m, const char *flag)
{
    const QnFamily *f = model->family;
    int64_t global = global_batch(flag);
    if (global) /* 0: an example is spread over several devices */
        return global / m->request.n_cards;
    bool offline = strstr(m->framework, "MLPerf Inference") && strstr(m->framework, "Offline");
    if (strstr(m->framework, "SingleStream"))
        return 1;
    if (f->batch)
        return f->batch;
    return f->image ? (offline ? 128 : 64) : offline ? 64 : 8;
}

static const char *express_step(QnCounts *counts, Reading *r, const QnModel *model,
                                QnCountRequest *q, QnMeasured *m)
{
    qn_read_real_length(r->cell[FLAG], &r->size.dim[0]);
    set_size(model->family, &r->size, q);
    if (strstr(r->cell[FLAG], "includes H2D copy"))
        m->request.copied_bytes =
            12.0 * (double)q->batch * (double)(q->image ? q->image * q->image : 224 * 224);
    if (qn_counts_get(counts, model, q, &m->count) != QN_OK)
        return "the graph cannot be built at this size";
    if (!read_unit(r, m->count, m))
        return "no model of this unit";
    if (model->family->p90 > 0 && !strcmp(m->unit, "ms_p90_latency")) {
        m->per_step *= model->family->p90;
        m->measured_s /= model->family->p90;
    }
    return NULL;
}

/* timm's runs with this version are of nets as they are deployed, as their parameters there say. */
static const QnModel *find_model(const QnMeasured *m)
{
    static const char *const deployed[][2] = {
        { "repvgg_b0", "repvgg_b0_fused" },
        { "mobileone_s0", "mobileone_s0_fused" },
        { "fastvit_t8", "fastvit_t8_fused" },
    };
    for (int i = 0; i < QN_COUNT(deployed) && strstr(m->framework, "timm PyTorch 2.9.1"); i++)
        if (!strcmp(m->model, deployed[i][0]))
            return qn_match_model(deployed[i][1]);
    return qn_match_model(m->model);
}

/* NULL, or why the row cannot be predicted. */
static const char *express(QnArena *arena, const QnCatalogue *c, QnCounts *counts, Reading *r,
                           QnMeasured *m)
{
    const QnModel *model;
    const char *const *cell = r->cell, *reason;
    m->request.train = !strcmp(m->task, "train");
    model = find_model(m);
    if (!model) {
        m->near = qn_match_near_model(m->model);
        return "no builder for this model";
    }
    if (qn_catalogue_find(c, m->gpu, &m->request.card) != QN_OK)
        m->request.card = qn_match_card(c, m->gpu);
    if (!m->request.card) {
        m->near = qn_match_near_card(c, m->gpu);
        return "the device is not in the catalogue";
    }
    if (!qn_read_numbers(m->precision, &m->request.numbers, &r->weight_bits)) {
        m->near = qn_match_near_numbers(m->precision);
        return "no model of this precision";
    }
    if (!qn_read_size(cell[SIZE], &r->size))
        return "no model of this size";
    if (qn_published_is_divided(cell[FRAMEWORK]))
        return express_divided(arena, counts, r, model, r->size.dim[0], 0, m);
    describe(r, model, m);
    QnCountRequest q = { .train = m->request.train,
                         .low = qn_numbers_low(m->request.numbers, m->request.train),
                         .unfused = qn_tier_is_eager(m->request.tier),
                         .batch =
                             r->batch > 0 ? (int64_t)r->batch : usual_batch(model, m, cell[FLAG]) };
    if (q.batch < 1)
        return express_divided(arena, counts, r, model, r->size.dim[0], global_batch(cell[FLAG]),
                               m);
    if (model->family->answers && !q.train) { /* what is measured is answers, not scores of them */
        QnReadSize *s = &r->size;
        int64_t source = s->dim[0] ? s->dim[0] : model->family->sequence;
        *s = (QnReadSize){ .serves = true, .in = source, .out = s->out ? s->out : source };
        q.batch = model->family->token_batch ? QN_MAX(1, q.batch / source) : q.batch;
    }
    reason = r->size.serves ? express_serving(counts, r, model, &q, m)
                            : express_step(counts, r, model, &q, m);
    if (reason)
        return reason;
    QnCoefs k;
    QnCostResult cost;
    qn_coefs_start(&k);
    return qn_measured_predict(m, &k, &cost) == QN_OK ? NULL : "the data sheet has no such rate";
}

/* column -1: there is none, as where the cell is empty. */
static QnStatus read_number(const QnTable *t, int64_t row, int column, double otherwise,
                            double *out)
{
    *out = otherwise;
    return column < 0 ? QN_OK : qn_table_number(t, row, column, otherwise, out);
}

static QnStatus read_row(QnMeasuredSet *s, const QnCatalogue *c, QnCounts *counts, int64_t row,
                         const int *column)
{
    const char *cell[COLUMNS];
    Reading r = { .cell = cell };
    double cards;
    for (int i = 0; i < COLUMNS; i++)
        cell[i] = column[i] < 0 ? "" : s->table.row[row][column[i]];
    QN_TRY(read_number(&s->table, row, column[THROUGHPUT], 0, &r.number));
    if (read_number(&s->table, row, column[BATCH], 0, &r.batch) != QN_OK)
        r.batch = -1; /* "max", "mix" */
    QN_TRY(read_number(&s->table, row, column[NUM_GPUS], 1, &cards));
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

static int column_of(const QnTable *t, const char *name)
{
    for (int i = 0; i < t->n_columns; i++)
        if (!strcmp(t->name[i], name))
            return i;
    return -1;
}

/* The others may be missing: one device, the usual batch and size of the model, no framework. */
static bool is_needed(int column)
{
    return column == MODEL || column == TASK || column == GPU || column == PRECISION ||
           column == THROUGHPUT || column == UNIT;
}

static QnStatus find_columns(const QnTable *t, int column[COLUMNS])
{
    char missing[128] = "";
    size_t used = 0;
    for (int i = 0; i < COLUMNS; i++) {
        column[i] = column_of(t, column_names[i]);
        if (column[i] < 0 && is_needed(i))
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s",
                                     used ? ", " : "", column_names[i]);
    }
    if (used)
        return qn_fail(QN_EFORMAT,
                       "%s:1: the header lacks %s; model, task, gpu, precision, throughput and "
                       "unit must be there, num_gpus, batch_per_gpu, seq_or_res, framework, flag "
                       "and id may be",
                       t->path, missing);
    return t->n_rows ? QN_OK : qn_fail(QN_EFORMAT, "%s: no rows below the header", t->path);
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
    QN_TRY_DONE(find_columns(&s->table, column));
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
