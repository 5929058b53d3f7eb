#include "plan/published.h"

#include "plan/cluster.h"

#include <stdlib.h>
#include <string.h>

/* The number right after a word: "TP8" for "TP"; `otherwise` where there is none. The word begins
 * the text or follows something that is no letter. */
static int64_t number_after(const char *text, const char *word, int64_t otherwise)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n) {
        bool starts = at == text || at[-1] == ' ' || at[-1] == '+' || at[-1] == ';';
        if (starts && at[n] >= '0' && at[n] <= '9')
            return strtol(at + n, NULL, 10);
    }
    return otherwise;
}

bool qn_published_is_divided(const char *framework)
{
    return number_after(framework, "TP", 0) || number_after(framework, "PP", 0) ||
           number_after(framework, "CP", 0);
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static void read_recompute(const QnPublishedText *t, QnPublished *p)
{
    const char *text = t->framework;
    if (has(text, "selective recompute"))
        p->sharding.recompute = QN_RECOMPUTE_SELECTIVE;
    else if (has(text, "full recompute") || has(text, "fullAC") || has(t->flag, "act_ckpt=True"))
        p->sharding.recompute = QN_RECOMPUTE_FULL;
    else if (has(text, "selectiveAC")) /* every second layer */
        p->sharding.recompute = QN_RECOMPUTE_HALF;
    else if (has(text, "Megatron") &&
             (t->n_cards > 8 || qn_parallel_memory(&p->split, &p->sharding, &p->training).total >
                                    1.0737e9 * t->card->memory_gb))
        p->sharding.recompute = QN_RECOMPUTE_FULL; /* not said: see figures_parallel.c */
}

/* What the frameworks do when nothing is said. */
static void read_habits(const QnPublishedText *t, QnPublished *p)
{
    const char *text = t->framework;
    bool titan = has(text, "torchtitan");
    QnSharding *l = &p->sharding;
    l->sequence_parallel = l->tensor > 1 && (titan || has(text, "seq-par"));
    l->overlap_tensor = has(text, "asyncTP");
    if (titan || has(text, "FSDP"))
        l->zero = 3;
    if (has(t->flag, "SHARD_GRAD_OP"))
        l->zero = 2;
    p->training.flash = !has(text, "Megatron-LM");
    /* 16 bits, 32 bits, and the gradient of these */
    p->training.logit_bytes = titan ? 10 : has(text, "Megatron-LM") ? 6 : 0;
    p->training.host = has(text, "compile") || !has(text, "Megatron-LM") ? 0.3 : 1;
}

/* Pieces of a stage: two where the text says "interleaved"; three where Megatron has few
 * micro-batches a stage (Korthikanti et al. 2022) and the layers divide so. */
static int interleave_of(const QnPublishedText *t, const QnPublished *p)
{
    const QnSharding *l = &p->sharding;
    int64_t per_stage = p->split.layers / l->pipeline;
    if (l->pipeline < 2)
        return 1;
    if (has(t->framework, "interleaved"))
        return 2;
    bool few = l->global_batch / (l->micro_batch * l->data) <= 8 * (int64_t)l->pipeline;
    bool stated = has(t->framework, "recompute");
    return stated && few && per_stage % 3 == 0 ? 3 : 1;
}

static const char *read_batches(const QnPublishedText *t, QnPublished *p)
{
    QnSharding *l = &p->sharding;
    int64_t global = number_after(t->flag, "gbs=", number_after(t->flag, "global batch ", 0));
    l->micro_batch = QN_MAX(t->batch, 1);
    if (!global && l->pipeline > 1) { /* torchtitan: as many micro-batches as stages */
        global = l->micro_batch * l->data;
        l->micro_batch = QN_MAX(1, l->micro_batch / l->pipeline);
    }
    l->global_batch = global ? global : l->micro_batch * l->data;
    return qn_parallel_check(&p->split, l) == QN_OK
               ? NULL
               : "the batch or the layers cannot be divided so";
}

const char *qn_published_read(const QnPublishedText *t, QnArena *arena, QnCounts *counts,
                              QnPublished *out)
{
    QnSharding *l = &out->sharding;
    *out = (QnPublished){ .training = { .card = t->card,
                                        .numbers = t->numbers,
                                        .links = qn_links_of(t->card, 0),
                                        .compression = 1 } };
    *l = (QnSharding){ .interleave = 1 };
    l->tensor = (int)number_after(t->framework, "TP", 1);
    l->pipeline = (int)number_after(t->framework, "PP", 1);
    l->context = (int)number_after(t->framework, "CP", 1);
    int rest = l->tensor * l->pipeline * l->context;
    if (rest < 1 || t->n_cards % rest)
        return "the devices cannot be divided so";
    l->data = t->n_cards / rest;
    if (qn_split_open(&out->split, arena, counts, t->model, t->sequence, 1) != QN_OK)
        return "the graph cannot be built at this size";
    if (!out->split.layers)
        return "a model without equal layers is divided";
    const char *reason = read_batches(t, out);
    if (reason)
        return reason;
    read_habits(t, out);
    read_recompute(t, out);
    l->interleave = interleave_of(t, out);
    return qn_parallel_check(&out->split, l) == QN_OK ? NULL : "the layers cannot be divided so";
}

const char *qn_published_find(const QnPublishedText *t, int64_t global, QnArena *arena,
                              QnCounts *counts, const QnFleet *f, QnPublished *out)
{
    QnClusterPoint best;
    QnCoefs *coefs = qn_arena_alloc(arena, sizeof *coefs);
    if (!coefs)
        return "out of memory";
    *out = (QnPublished){ .training = { .card = t->card,
                                        .numbers = t->numbers,
                                        .links = qn_links_of(t->card, 0),
                                        .flash = true,
                                        .tuned = true,
                                        .overlap = true,
                                        .host = 0.3,
                                        .logit_bytes = 4,
                                        .compression = 1 } };
    coefs->fleet = *f;
    if (qn_split_open(&out->split, arena, counts, t->model, t->sequence, 1) != QN_OK)
        return "the graph cannot be built at this size";
    if (!out->split.layers)
        return "a model without equal layers is divided";
    QnClusterJob job = { .split = &out->split,
                         .training = out->training,
                         .counts = counts,
                         .coefs = coefs,
                         .global_batch = global,
                         .mtbf_hours = 50000,
                         .store_gbs = 2,
                         .store_most_gbs = 500 };
    if (qn_cluster_search(&job, t->n_cards, &best) != QN_OK || !best.found)
        return "no layout of it fits so many devices";
    out->sharding = best.layout;
    return NULL;
}

double qn_published_tokens(const QnPublished *p)
{
    return (double)p->sharding.global_batch * (double)p->split.sequence;
}
