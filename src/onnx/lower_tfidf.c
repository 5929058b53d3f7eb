/* TfIdfVectorizer: how often n-grams of a pool occur in rows of numbers or strings, their items
 * next to each other or a fixed distance apart. Computed while a model is imported. */
#include "onnx/mapping.h"

#include <stdlib.h>
#include <string.h>

typedef struct Words { /* of a pool or an input: numbers or strings */
    const int64_t *number;
    const QnText *text;
    int64_t n;
} Words;

typedef struct Gram { /* of the pool; qsort has no context */
    const Words *of;
    int64_t at, size, id;
} Gram;

typedef struct Counter {
    Words pool, x;
    const QnOnnxAttr *counts, *indexes, *weights;
    int64_t shortest, longest, skip, width;
    Gram *gram; /* those of one length, sorted */
    int64_t n_gram;
} Counter;

static int compare_words(const Words *a, int64_t i, const Words *b, int64_t k)
{
    if (a->number)
        return (a->number[i] > b->number[k]) - (a->number[i] < b->number[k]);
    QnText p = a->text[i], q = b->text[k];
    size_t both = QN_MIN(p.n, q.n);
    int c = both ? memcmp(p.s, q.s, both) : 0;
    return c ? c : (p.n > q.n) - (p.n < q.n);
}

static int by_words(const void *a, const void *b)
{
    const Gram *p = a, *q = b;
    for (int64_t i = 0; i < p->size; i++) {
        int c = compare_words(p->of, p->at + i, q->of, q->at + i);
        if (c)
            return c;
    }
    return 0;
}

/* The pool's n-grams; ids go on from those of the shorter ones. */
static QnStatus take_grams(Counter *c, int64_t size, int64_t *id)
{
    int64_t from = c->counts->ints[size - 1];
    int64_t to = size < c->counts->n ? c->counts->ints[size] : c->pool.n;
    if (from < 0 || to < from || to > c->pool.n || (to - from) % size)
        return qn_fail(QN_EFORMAT, "%lld to %lld is no part of a pool of %lld, in groups of %lld",
                       (long long)from, (long long)to, (long long)c->pool.n, (long long)size);
    c->n_gram = (to - from) / size;
    if (c->n_gram > c->indexes->n - *id)
        return qn_fail(QN_EFORMAT, "the pool has more n-grams than there are ngram_indexes");
    for (int64_t i = 0; i < c->n_gram; i++)
        c->gram[i] = (Gram){ &c->pool, from + i * size, size, (*id)++ };
    qsort(c->gram, (size_t)c->n_gram, sizeof *c->gram, by_words);
    return QN_OK;
}

/* The gram whose items are those of x from `at` on, `step` apart; NULL: none is. */
static const Gram *find(const Counter *c, int64_t at, int64_t step)
{
    int64_t lo = 0, hi = c->n_gram;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const Gram *g = &c->gram[mid];
        int order = 0;
        for (int64_t i = 0; i < g->size && !order; i++)
            order = compare_words(&c->pool, g->at + i, &c->x, at + i * step);
        if (!order)
            return g;
        *(order < 0 ? &lo : &hi) = order < 0 ? mid + 1 : mid;
    }
    return NULL;
}

/* Single words have no distance: they count once. */
static void count_row(const Counter *c, int64_t size, int64_t from, int64_t n, float *y)
{
    for (int64_t step = 1; step <= (size == 1 ? 1 : c->skip + 1) && step <= n; step++)
        for (int64_t i = 0; size - 1 <= (n - 1 - i) / step && i < n; i++) {
            const Gram *g = find(c, from + i, step);
            if (g)
                y[c->indexes->ints[g->id]]++;
        }
}

/* By the weights of the n-grams in the pool; IDF: once is as good as often. */
static void weigh(const QnOnnxNode *n, const Counter *c, int64_t rows, float *y)
{
    bool idf = qn_onnx_is(n, "mode", "IDF", "TF");
    for (int64_t r = 0; r < rows; r++, y += c->width) {
        for (int64_t i = 0; i < c->width && idf; i++)
            y[i] = y[i] > 0;
        for (int64_t i = 0; c->weights && i < c->weights->n && i < c->indexes->n; i++)
            y[c->indexes->ints[i]] *= c->weights->floats[i];
    }
}

static const QnOnnxAttr *list(const QnOnnxNode *n, const char *name, QnOnnxAttrKind kind)
{
    const QnOnnxAttr *a = qn_onnx_attr(n, name);
    return a && a->kind == kind ? a : NULL;
}

static QnStatus open_counter(QnOnnxNode *n, Counter *c)
{
    const QnOnnxAttr *text = list(n, "pool_strings", QN_ONNX_STRINGS);
    const QnOnnxAttr *number = list(n, "pool_int64s", QN_ONNX_INTS);
    const QnTensor *x = n->in[0]->known;
    c->counts = list(n, "ngram_counts", QN_ONNX_INTS);
    c->indexes = list(n, "ngram_indexes", QN_ONNX_INTS);
    c->weights = list(n, "weights", QN_ONNX_FLOATS);
    c->shortest = qn_onnx_int(n, "min_gram_length", 1);
    c->longest = qn_onnx_int(n, "max_gram_length", 1);
    c->skip = qn_onnx_int(n, "max_skip_count", 0);
    if (!c->counts || !c->indexes || !c->indexes->n || !text == !number)
        return qn_fail(QN_EFORMAT, "ngram_counts, ngram_indexes and one pool must be given");
    if (!text != !x->text)
        return qn_fail(QN_EDTYPE, "the pool and the input must both be strings or both numbers");
    if (c->shortest < 1 || c->longest < c->shortest || c->skip < 0 || c->skip > INT32_MAX)
        return qn_fail(QN_EARG, "n-grams of %lld to %lld with %lld skipped", (long long)c->shortest,
                       (long long)c->longest, (long long)c->skip);
    c->pool =
        text ? (Words){ NULL, text->strings, text->n } : (Words){ number->ints, NULL, number->n };
    c->x = (Words){ NULL, x->text, qn_shape_count(&x->type.shape) };
    if (!x->text)
        QN_TRY(qn_onnx_in_array(n, 0, &c->x.number, &c->x.n));
    for (int64_t i = 0; i < c->indexes->n; i++) {
        if (c->indexes->ints[i] < 0 || c->indexes->ints[i] > INT64_C(1) << 40)
            return qn_fail(QN_EFORMAT, "ngram_indexes has %lld", (long long)c->indexes->ints[i]);
        c->width = QN_MAX(c->width, c->indexes->ints[i] + 1);
    }
    c->gram = qn_arena_array(n->arena, (size_t)c->pool.n + 1, sizeof *c->gram);
    return c->gram ? QN_OK : QN_ENOMEM;
}

static QnStatus import_tfidf(QnOnnxNode *n)
{
    Counter c = { 0 };
    QN_ONNX_NEED(n, 0);
    QN_TRY(open_counter(n, &c));
    QnShape s = n->in[0]->known->type.shape;
    if (s.rank < 1 || s.rank > 2)
        return qn_fail(QN_ESHAPE, "the input must be (C) or (N,C)");
    int64_t rows = s.rank == 2 ? s.dim[0] : 1, row = s.dim[s.rank - 1], id = 0;
    s.dim[s.rank - 1] = c.width;
    QnTensor *y = qn_onnx_tensor(n, QN_DTYPE_F32, &s);
    if (!y)
        return QN_ENOMEM;
    for (int64_t size = 1; size <= c.counts->n && size <= c.longest; size++) {
        QN_TRY(take_grams(&c, size, &id));
        for (int64_t r = 0; r < rows && size >= c.shortest; r++)
            count_row(&c, size, r * row, row, (float *)y->data + r * c.width);
    }
    if (!qn_onnx_is(n, "mode", "TF", "TF"))
        weigh(n, &c, rows, (float *)y->data);
    return qn_onnx_out_known(n, 0, y);
}

const QnOnnxMap qn_onnx_tfidf[] = {
    { "TfIdfVectorizer", NULL, 9, 0, import_tfidf, NULL },
    { 0 },
};
