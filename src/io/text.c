#include "io/text.h"
#include "base/mem.h"
#include "base/rng.h"
#include "io/gz.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_LIMIT_BYTES ((size_t)1 << 36)

typedef struct TextSet {
    QnDataset head;
    uint32_t *tokens;
    int64_t token_count, window;
    double bytes_per_token;
    int64_t first; /* of the tokens, in the whole text, for messages */
    bool random;
} TextSet;

/* First token of a window. */
static int64_t window_start(const TextSet *s, int64_t index, uint64_t epoch, uint64_t seed)
{
    if (!s->random)
        return index * s->window;
    uint32_t r[4];
    qn_rng_u32x4(seed, QN_STREAM_WINDOW | epoch, (uint64_t)index, r);
    uint64_t places = (uint64_t)(s->token_count - s->window);
    uint64_t bits = (uint64_t)r[1] << 32 | r[0];
    return (int64_t)(bits % places); /* 64 bits: the bias is far below anything seen */
}

static void copy_tokens(const TextSet *s, int64_t start, int64_t *out)
{
    for (int64_t i = 0; i < s->window; i++)
        out[i] = s->tokens[start + i];
}

static QnStatus text_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                         void *y)
{
    const TextSet *s = (const TextSet *)ds;
    int64_t start = window_start(s, index, epoch, seed);
    copy_tokens(s, start, x);
    copy_tokens(s, start + 1, y);
    return QN_OK;
}

/* Labels are checked window by window, whatever the places that chance will draw. */
static QnStatus text_label(const QnDataset *ds, int64_t index, void *y)
{
    const TextSet *s = (const TextSet *)ds;
    copy_tokens(s, index * s->window + 1, y);
    return QN_OK;
}

static void text_place(const QnDataset *ds, int64_t index, char *text, size_t bytes)
{
    const TextSet *s = (const TextSet *)ds;
    if (s->random)
        snprintf(text, bytes, "%s: random window %" PRId64, ds->name, index);
    else
        snprintf(text, bytes, "%s: token %" PRId64, ds->name, s->first + index * s->window);
}

static void text_fini(QnDataset *ds)
{
    qn_free(((TextSet *)ds)->tokens);
}

static const QnDatasetOps text_ops = {
    .kind = "text",
    .get = text_get,
    .label = text_label,
    .place = text_place,
    .fini = text_fini,
};

int64_t qn_text_token_count(const QnDataset *ds)
{
    return ((const TextSet *)ds)->token_count;
}

double qn_text_bytes_per_token(const QnDataset *ds)
{
    return ((const TextSet *)ds)->bytes_per_token;
}

/* Tokens first … first+count-1 as a dataset. */
static QnStatus make_part(const QnTextOptions *o, const QnVocab *vocab, const uint32_t *ids,
                          int64_t first, int64_t count, double bytes_per_token, bool random,
                          QnDataset **out)
{
    if (count <= o->window)
        return qn_fail(QN_EARG,
                       "%s: the %s part has %" PRId64 " tokens, a window needs %" PRId64
                       ": a longer text or a shorter window",
                       o->path, random ? "training" : "validation", count, o->window + 1);
    TextSet *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    QN_TRY_DONE(qn_dataset_init(&s->head, &text_ops, o->path));
    s->tokens = qn_alloc_array((size_t)count, sizeof *s->tokens);
    if (!s->tokens) {
        st = QN_ENOMEM;
        goto done;
    }
    memcpy(s->tokens, ids + first, (size_t)count * sizeof *ids);
    s->token_count = count;
    s->window = o->window;
    s->bytes_per_token = bytes_per_token;
    s->first = first;
    s->random = random;
    s->head.count = (count - 1) / o->window;
    s->head.spec = (QnSampleSpec){ .x_kind = QN_FEATURE_TOKENS,
                                   .x_rank = 1,
                                   .x_dims = { o->window },
                                   .y_kind = QN_LABEL_TOKENS,
                                   .y_count = o->window,
                                   .class_count = qn_vocab_count(vocab) };
    *out = &s->head;
    s = NULL;
done:
    if (s)
        qn_dataset_free(&s->head);
    return st;
}

static QnStatus vocab_copy(const QnVocab *vocab, QnVocab **out)
{
    char *json;
    QN_TRY(qn_vocab_print(vocab, &json));
    QnStatus st = qn_vocab_parse("vocabulary", json, strlen(json), out);
    qn_free(json);
    return st;
}

QnStatus qn_text_parse(const QnTextOptions *o, const char *text, size_t size, QnDataset **train,
                       QnDataset **valid, QnVocab **vocab)
{
    QnStatus st = QN_OK;
    QnVocab *v = NULL;
    QnDataset *a = NULL, *b = NULL;
    uint32_t *ids = NULL;
    int64_t count = 0;
    double fraction = o->train_fraction != 0 ? o->train_fraction : 0.9;
    if (o->window < 1 || !(fraction > 0 && fraction <= 1))
        return qn_fail(QN_EARG, "%s: a window of %" PRId64 " tokens and a training part of %g",
                       o->path, o->window, fraction);
    if (o->vocab)
        QN_TRY_DONE(vocab_copy(o->vocab, &v));
    else
        QN_TRY_DONE(qn_vocab_build(o->path, o->kind, text, size, &v));
    QN_TRY_DONE(qn_vocab_encode_compact(v, o->path, text, size, &ids, &count));
    if (!count) {
        st = qn_fail(QN_EFORMAT, "%s: the file is empty", o->path);
        goto done;
    }
    double bytes_per_token = (double)size / (double)count;
    int64_t cut = fraction < 1 ? (int64_t)(fraction * (double)count) : count;
    QN_TRY_DONE(make_part(o, v, ids, 0, cut, bytes_per_token, true, &a));
    if (cut < count)
        QN_TRY_DONE(make_part(o, v, ids, cut, count - cut, bytes_per_token, false, &b));
    *train = a;
    *valid = b;
    *vocab = v;
    a = b = NULL;
    v = NULL;
done:
    qn_free(ids);
    qn_vocab_free(v);
    qn_dataset_free(a);
    qn_dataset_free(b);
    return st;
}

QnStatus qn_text_open(const QnTextOptions *o, QnDataset **train, QnDataset **valid, QnVocab **vocab)
{
    uint8_t *text;
    size_t size;
    QN_TRY(qn_gz_read(o->path, TEXT_LIMIT_BYTES, &text, &size));
    QnStatus st = qn_text_parse(o, (const char *)text, size, train, valid, vocab);
    qn_free(text);
    return st;
}
