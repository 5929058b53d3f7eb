/* Operators on strings, computed while a model is imported. */
#include "onnx/mapping.h"
#include "ops/util.h"

#include <string.h>

static QnStatus need_text(QnOnnxNode *n, int i, const QnTensor **out)
{
    QN_ONNX_NEED(n, i);
    *out = n->in[i]->known;
    return (*out)->text
               ? QN_OK
               : qn_fail(QN_EDTYPE, "input %d, '%s', must hold strings", i, n->in[i]->name);
}

/* ---- StringNormalizer ------------------------------------------------------------------------ */

static bool is_ascii(QnText t)
{
    for (size_t i = 0; i < t.n; i++)
        if ((unsigned char)t.s[i] > 127)
            return false;
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool is_same(QnText a, QnText b, bool by_case)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (by_case ? a.s[i] != b.s[i] : lower(a.s[i]) != lower(b.s[i]))
            return false;
    return true;
}

static bool is_stopped(const QnOnnxAttr *stop, QnText t, bool by_case)
{
    for (int64_t i = 0; stop && stop->kind == QN_ONNX_STRINGS && i < stop->n; i++)
        if (is_same(stop->strings[i], t, by_case))
            return true;
    return false;
}

static QnStatus change_case(QnOnnxNode *n, char (*f)(char), QnText *t)
{
    char *s = qn_arena_alloc(n->arena, t->n + 1);
    if (!s)
        return QN_ENOMEM;
    for (size_t i = 0; i < t->n; i++)
        s[i] = f(t->s[i]);
    t->s = s;
    return QN_OK;
}

static QnStatus import_normalizer(QnOnnxNode *n)
{
    const QnTensor *x = NULL;
    QN_TRY(need_text(n, 0, &x));
    QnShape s = x->type.shape;
    if (s.rank < 1 || s.rank > 2 || (s.rank == 2 && s.dim[0] != 1))
        return qn_fail(QN_ESHAPE, "the input must be (C) or (1,C)");
    bool by_case = qn_onnx_int(n, "is_case_sensitive", 0) != 0;
    bool is_lower = qn_onnx_is(n, "case_change_action", "LOWER", "NONE");
    bool is_upper = qn_onnx_is(n, "case_change_action", "UPPER", "NONE");
    const QnOnnxAttr *stop = qn_onnx_attr(n, "stopwords");
    int64_t count = qn_shape_count(&s), kept = 0;
    QnText *keep = qn_arena_array(n->arena, (size_t)count + 1, sizeof *keep);
    if (!keep)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        QnText t = x->text[i];
        if (!is_ascii(t) && ((stop && !by_case) || is_lower || is_upper))
            return qn_onnx_refuse(n, "the case of letters outside ASCII (\"%.*s\")",
                                  (int)QN_MIN(t.n, 40), t.s);
        if (is_stopped(stop, t, by_case))
            continue;
        if (is_lower || is_upper)
            QN_TRY(change_case(n, is_lower ? lower : upper, &t));
        keep[kept++] = t;
    }
    if (kept == 0)
        keep[kept++] = (QnText){ "", 0 };
    s.dim[s.rank - 1] = kept;
    QnTensor *y = qn_onnx_tensor_text(n, &s);
    if (y)
        memcpy((void *)y->text, keep, (size_t)kept * sizeof *keep);
    return qn_onnx_out_known(n, 0, y);
}

/* ---- StringConcat ---------------------------------------------------------------------------- */

static QnStatus import_concat(QnOnnxNode *n)
{
    const QnTensor *a = NULL, *b = NULL;
    QnShape s;
    QN_TRY(need_text(n, 0, &a));
    QN_TRY(need_text(n, 1, &b));
    QN_TRY(qn_onnx_broadcast(&a->type.shape, &b->type.shape, &s));
    QnTensor *y = qn_onnx_tensor_text(n, &s);
    if (!y)
        return QN_ENOMEM;
    int64_t at[QN_MAX_RANK] = { 0 }, to_a[QN_MAX_RANK], to_b[QN_MAX_RANK];
    qn_util_spread_strides(&a->type.shape, s.rank, to_a);
    qn_util_spread_strides(&b->type.shape, s.rank, to_b);
    for (int64_t i = 0, count = qn_shape_count(&s); i < count; i++) {
        QnText p = a->text[qn_util_offset(s.rank, at, to_a)];
        QnText q = b->text[qn_util_offset(s.rank, at, to_b)];
        char *both = qn_arena_alloc(n->arena, p.n + q.n + 1);
        if (!both)
            return QN_ENOMEM;
        if (p.n)
            memcpy(both, p.s, p.n);
        if (q.n)
            memcpy(both + p.n, q.s, q.n);
        ((QnText *)y->text)[i] = (QnText){ both, p.n + q.n };
        qn_util_next(&s, at);
    }
    return qn_onnx_out_known(n, 0, y);
}

/* ---- StringSplit ----------------------------------------------------------------------------- */

typedef struct Split {
    QnText by; /* empty: whitespace, and none at the ends */
    int64_t most;
} Split;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Where the next delimiter begins; the end where there is none. */
static size_t find(const Split *s, QnText t, size_t from)
{
    for (; from < t.n; from++) {
        if (s->by.n == 0 ? is_space(t.s[from])
                         : t.n - from >= s->by.n && !memcmp(t.s + from, s->by.s, s->by.n))
            return from;
    }
    return t.n;
}

static size_t skip_space(const Split *s, QnText t, size_t from)
{
    while (s->by.n == 0 && from < t.n && is_space(t.s[from]))
        from++;
    return from;
}

/* The parts of t; to NULL: only their number. */
static int64_t cut(const Split *s, QnText t, QnText *to)
{
    int64_t n = 0;
    if (s->by.n == 0)
        while (t.n && is_space(t.s[t.n - 1]))
            t.n--;
    size_t from = skip_space(s, t, 0);
    if (t.n == from) /* nothing at all has no part */
        return 0;
    for (bool more = true; more; n++) {
        size_t end = n < s->most ? find(s, t, from) : t.n;
        if (to)
            to[n] = (QnText){ t.s + from, end - from };
        more = end < t.n;
        from = skip_space(s, t, end + (s->by.n ? s->by.n : 1));
    }
    return n;
}

static QnStatus import_split(QnOnnxNode *n)
{
    const QnTensor *x = NULL;
    const QnOnnxAttr *by = qn_onnx_attr(n, "delimiter");
    Split s = { .most = qn_onnx_int(n, "maxsplit", INT64_MAX) };
    int64_t widest = 0;
    QN_TRY(need_text(n, 0, &x));
    if (by && by->kind == QN_ONNX_STRING)
        s.by = by->s;
    QnShape shape = x->type.shape;
    int64_t count = qn_shape_count(&shape);
    QnTensor *number = qn_onnx_tensor(n, QN_DTYPE_I64, &shape);
    if (shape.rank == QN_MAX_RANK)
        return qn_onnx_refuse(n, "rank %d leaves no room for an axis", shape.rank);
    if (!number)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        int64_t parts = cut(&s, x->text[i], NULL);
        ((int64_t *)number->data)[i] = parts;
        widest = QN_MAX(widest, parts);
    }
    shape.dim[shape.rank++] = widest;
    QnTensor *y = qn_onnx_tensor_text(n, &shape);
    if (!y)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++)
        cut(&s, x->text[i], (QnText *)y->text + i * widest);
    QN_TRY(qn_onnx_out_known(n, 0, y));
    return qn_onnx_out_known(n, 1, number);
}

const QnOnnxMap qn_onnx_text[] = {
    { "StringNormalizer", NULL, 10, 0, import_normalizer, NULL },
    { "StringConcat", NULL, 20, 0, import_concat, NULL },
    { "StringSplit", NULL, 20, 0, import_split, NULL },
    { 0 },
};
