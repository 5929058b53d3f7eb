#include "ir/parse_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the cursor ---- */

QnStatus qn_parser_place(const QnParser *r, const char *at)
{
    int64_t line = 1;
    const char *start = r->text;
    for (const char *p = r->text; p < at; p++) {
        if (*p == '\n') {
            line++;
            start = p + 1;
        }
    }
    return qn_fail_prefix("line %" PRId64 ", column %" PRId64, line, (int64_t)(at - start) + 1);
}

QnStatus qn_parser_fail(const QnParser *r, const char *at, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    qn_fail(QN_EFORMAT, "%s", text);
    return qn_parser_place(r, at);
}

void qn_parser_skip(QnParser *r)
{
    while (*r->p == ' ' || *r->p == '\t' || *r->p == '\r')
        r->p++;
}

bool qn_parser_take(QnParser *r, char c)
{
    qn_parser_skip(r);
    if (*r->p != c)
        return false;
    r->p++;
    return true;
}

QnStatus qn_parser_expect(QnParser *r, char c)
{
    return qn_parser_take(r, c) ? QN_OK : qn_parser_fail(r, r->p, "expected '%c'", c);
}

QnStatus qn_parser_word(QnParser *r, const char *what, char buf[QN_PARSER_WORD])
{
    qn_parser_skip(r);
    size_t n = strspn(r->p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    if (n == 0 || n >= QN_PARSER_WORD)
        return qn_parser_fail(r, r->p, n ? "%s is too long" : "expected %s", what);
    memcpy(buf, r->p, n);
    buf[n] = '\0';
    r->p += n;
    return QN_OK;
}

QnStatus qn_parser_int(QnParser *r, int64_t *out)
{
    qn_parser_skip(r);
    const char *p = r->p + (*r->p == '-');
    uint64_t v = 0, most = (uint64_t)INT64_MAX + (*r->p == '-');
    if (*p < '0' || *p > '9')
        return qn_parser_fail(r, r->p, "expected a whole number");
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > (most - digit) / 10)
            return qn_parser_fail(r, r->p, "the number does not fit 64 bits");
        v = v * 10 + digit;
    }
    *out = *r->p == '-' ? (int64_t)(0 - v) : (int64_t)v;
    r->p = p;
    return QN_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

QnStatus qn_parser_string(QnParser *r, const char **out)
{
    QN_TRY(qn_parser_expect(r, '"'));
    const char *start = r->p, *end = start;
    while (*end && *end != '"' && *end != '\n')
        end += *end == '\\' && end[1] ? 2 : 1;
    if (*end != '"')
        return qn_parser_fail(r, start - 1, "the string does not end on its line");
    char *s = qn_arena_alloc(r->graph->arena, (size_t)(end - start) + 1), *to = s;
    if (!s)
        return QN_ENOMEM;
    for (const char *p = start; p < end; p++) {
        if (*p != '\\') {
            *to++ = *p;
            continue;
        }
        const char *at = p++;
        int hi = *p == 'x' ? hex_digit(p[1]) : -1, lo = hi >= 0 ? hex_digit(p[2]) : -1;
        if (*p == 'n')
            *to++ = '\n';
        else if (*p == '"' || *p == '\\')
            *to++ = *p;
        else if (lo >= 0 && hi + lo > 0 && p + 2 < end)
            *to++ = (char)(hi * 16 + lo), p += 2;
        else
            return qn_parser_fail(r, at, "no such escape: use \\\" \\\\ \\n or \\x01 to \\xff");
    }
    *out = s;
    r->p = end + 1;
    return QN_OK;
}

QnStatus qn_parser_op(QnParser *r, const QnOp **out)
{
    char name[QN_PARSER_WORD];
    const char *at = r->p;
    int64_t version = 1;
    QN_TRY(qn_parser_word(r, "an operator", name));
    if (qn_parser_take(r, '@'))
        QN_TRY(qn_parser_int(r, &version));
    *out = r->find(name);
    if (!*out)
        return qn_parser_fail(r, at, "no operator is named '%s'", name);
    if ((*out)->version != version)
        return qn_parser_fail(r, at, "'%s' is at version %d here, not %" PRId64, name,
                              (*out)->version, version);
    return QN_OK;
}

QnStatus qn_parser_dims(QnParser *r, QnDims *out)
{
    const char *at = r->p;
    *out = (QnDims){ 0 };
    QN_TRY(qn_parser_expect(r, '['));
    if (qn_parser_take(r, ']'))
        return QN_OK;
    do {
        if (out->n == QN_MAX_RANK)
            return qn_parser_fail(r, at, "more than %d dims", QN_MAX_RANK);
        qn_parser_skip(r);
        const char *here = r->p;
        if (qn_dim_parse(r->graph, r->p, &r->p, &out->d[out->n++]) != QN_OK)
            return qn_parser_place(r, here);
    } while (qn_parser_take(r, ','));
    return qn_parser_expect(r, ']');
}

/* ---- lines ---- */

/* "%3": a value that stands above. */
static QnStatus parse_value(QnParser *r, QnValue **out)
{
    int64_t id;
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_expect(r, '%'));
    QN_TRY(qn_parser_int(r, &id));
    if (id < 0 || id >= r->n_values)
        return qn_parser_fail(r, at, "value %%%" PRId64 " does not stand above", id);
    *out = r->values[id];
    return QN_OK;
}

/* "%4, %5 =": the numbers that follow. */
static QnStatus parse_results(QnParser *r, int *n)
{
    *n = 0;
    do {
        int64_t id;
        qn_parser_skip(r);
        const char *at = r->p;
        QN_TRY(qn_parser_expect(r, '%'));
        QN_TRY(qn_parser_int(r, &id));
        if (id != r->n_values + *n)
            return qn_parser_fail(r, at, "expected %%%" PRId64 ": values are numbered in order",
                                  r->n_values + *n);
        if (++*n > QN_MAX_OUT)
            return qn_parser_fail(r, at, "more than %d outputs", QN_MAX_OUT);
    } while (qn_parser_take(r, ','));
    return qn_parser_expect(r, '=');
}

static QnStatus parse_operands(QnParser *r, QnValue **in, int *n)
{
    *n = 0;
    QN_TRY(qn_parser_expect(r, '('));
    if (qn_parser_take(r, ')'))
        return QN_OK;
    do {
        if (*n == QN_MAX_IN)
            return qn_parser_fail(r, r->p, "more than %d inputs", QN_MAX_IN);
        in[*n] = NULL;
        if (!qn_parser_take(r, '_'))
            QN_TRY(parse_value(r, &in[*n]));
        ++*n;
    } while (qn_parser_take(r, ','));
    return qn_parser_expect(r, ')');
}

static QnStatus parse_type(QnParser *r, QnType *t)
{
    char word[QN_PARSER_WORD];
    qn_parser_skip(r);
    const char *at = r->p;
    QnDims d;
    *t = (QnType){ 0 };
    QN_TRY(qn_parser_word(r, "a type", word));
    if (!qn_dtype_find(word, &t->dtype))
        return qn_parser_fail(r, at, "no data type is named '%s'", word);
    if (*r->p == '@') {
        r->p++;
        QN_TRY(qn_parser_word(r, "a layout", word));
        if (strcmp(word, "nhwc"))
            return qn_parser_fail(r, at, "no layout is named '%s'", word);
        t->layout = QN_LAYOUT_CHANNELS_LAST;
    }
    QN_TRY(qn_parser_dims(r, &d));
    t->shape = qn_shape_make(d.n, d.d);
    if (t->layout != QN_LAYOUT_PLAIN && d.n < 3)
        return qn_parser_fail(r, at, "channels-last tensors have 3 axes or more");
    return QN_OK;
}

static QnStatus parse_types(QnParser *r, QnNode *n)
{
    QN_TRY(qn_parser_expect(r, ':'));
    for (int i = 0; i < n->n_out; i++) {
        QnType t;
        if (i)
            QN_TRY(qn_parser_expect(r, ','));
        qn_parser_skip(r);
        const char *at = r->p;
        QN_TRY(parse_type(r, &t));
        n->out[i].type.layout = t.layout;
        if (!qn_type_is_equal(&t, &n->out[i].type)) {
            char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES];
            return qn_parser_fail(r, at, "output %d of %s is %s, not %s", i, n->op->name,
                                  qn_type_text(&n->out[i].type, a), qn_type_text(&t, b));
        }
    }
    return QN_OK;
}

static QnStatus parse_node(QnParser *r)
{
    int n_out, n_in;
    const QnOp *op;
    QnValue *in[QN_MAX_IN];
    QN_TRY(parse_results(r, &n_out));
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_op(r, &op));
    QN_TRY(parse_operands(r, in, &n_in));
    void *attr = op->attr_bytes ? qn_arena_alloc(r->graph->arena, op->attr_bytes) : NULL;
    if (op->attr_bytes && !attr)
        return QN_ENOMEM;
    QN_TRY(qn_parser_attr(r, op, attr));
    QnNode *n = qn_emit(r->graph, op, attr, in, n_in);
    if (!n) {
        qn_graph_check(r->graph);
        return qn_parser_place(r, at);
    }
    if (n->n_out != n_out)
        return qn_parser_fail(r, at, "%s has %d outputs, not %d", op->name, n->n_out, n_out);
    qn_parser_skip(r);
    if (*r->p == '"')
        QN_TRY(qn_parser_string(r, &n->name));
    QN_TRY(parse_types(r, n));
    for (int i = 0; i < n_out; i++) {
        QN_TRY(QN_GROW(r->values, r->cap_values, r->n_values));
        r->values[r->n_values++] = &n->out[i];
    }
    return QN_OK;
}

static QnStatus parse_output(QnParser *r)
{
    const char *name;
    QnValue *v;
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_string(r, &name));
    if (qn_graph_output_find(r->graph, name))
        return qn_parser_fail(r, at, "output \"%.64s\" stands twice", name);
    QN_TRY(qn_parser_expect(r, '='));
    QN_TRY(parse_value(r, &v));
    return qn_graph_output(r->graph, name, v);
}

/* "dims B, (B*4)": gives expressions the numbers that they had. */
static QnStatus parse_dims(QnParser *r)
{
    do {
        QnDim d;
        qn_parser_skip(r);
        const char *at = r->p;
        if (qn_dim_parse(r->graph, r->p, &r->p, &d) != QN_OK)
            return qn_parser_place(r, at);
    } while (qn_parser_take(r, ','));
    return QN_OK;
}

static QnStatus parse_line(QnParser *r)
{
    char word[QN_PARSER_WORD];
    qn_parser_skip(r);
    const char *at = r->p;
    if (*at == '\n' || *at == '#' || *at == '\0')
        return QN_OK;
    if (*at == '%')
        return parse_node(r);
    QN_TRY(qn_parser_word(r, "a node, output, dims or streams", word));
    if (!strcmp(word, "output"))
        return parse_output(r);
    if (!strcmp(word, "dims"))
        return parse_dims(r);
    if (strcmp(word, "streams"))
        return qn_parser_fail(r, at, "expected a node, output, dims or streams");
    QN_TRY(qn_parser_int(r, &r->graph->next_stream));
    return r->graph->next_stream < 0 ? qn_parser_fail(r, at, "streams are counted") : QN_OK;
}

static QnStatus parse_lines(QnParser *r)
{
    for (;;) {
        QN_TRY(parse_line(r));
        qn_parser_skip(r);
        if (*r->p == '#')
            r->p += strcspn(r->p, "\n");
        if (*r->p == '\0')
            return QN_OK;
        if (*r->p != '\n')
            return qn_parser_fail(r, r->p, "expected the end of the line");
        r->p++;
    }
}

QnStatus qn_graph_parse(const char *text, size_t n, QnOpFind *find, QnGraph **out)
{
    QnParser r = { .graph = qn_graph_new(), .find = find };
    char *copy = r.graph ? qn_arena_alloc(r.graph->arena, n + 1) : NULL;
    QnStatus st = copy ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    memcpy(copy, text, n);
    r.text = r.p = copy;
    if (memchr(text, '\0', n))
        QN_TRY_DONE(qn_parser_fail(&r, copy + strlen(copy), "a NUL byte"));
    QN_TRY_DONE(parse_lines(&r));
    QN_TRY_DONE(qn_graph_check(r.graph));
    *out = r.graph;
    r.graph = NULL;
done:
    qn_free(r.values);
    qn_graph_free(r.graph);
    return st;
}
