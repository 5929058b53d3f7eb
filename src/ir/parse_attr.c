/* Attributes of the text form, by the operator's table. */
#include "ir/parse_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(Type, attr, field) (*(Type *)((char *)(attr) + (field)->offset))

enum { MAX_DEPTH = 4 };

static QnStatus parse_double(QnParser *r, double *out)
{
    qn_parser_skip(r);
    const char *p = r->p;
    size_t n = strspn(p, "+-.0123456789abcdefinxABCDEF");
    char text[40], *end;
    if (n == 0 || n >= sizeof text)
        return qn_parser_fail(r, p, "expected a number");
    memcpy(text, p, n);
    text[n] = '\0';
    if (!strcmp(text, "nan")) {
        *out = NAN;
        end = text + n;
    } else if (text[0] == '0' && text[1] == 'x') { /* the bits of a NaN */
        uint64_t bits = strtoull(text, &end, 16);
        memcpy(out, &bits, sizeof *out);
        if (n != 18 || !isnan(*out))
            return qn_parser_fail(r, p, "0x is for the 16 digits of a NaN");
    } else {
        *out = strtod(text, &end);
    }
    if (end != text + n)
        return qn_parser_fail(r, p, "'%s' is no number", text);
    r->p += n;
    return QN_OK;
}

static QnStatus parse_ints(QnParser *r, QnInts *out)
{
    *out = (QnInts){ 0 };
    QN_TRY(qn_parser_expect(r, '['));
    if (qn_parser_take(r, ']'))
        return QN_OK;
    do {
        if (out->n == QN_COUNT(out->v))
            return qn_parser_fail(r, r->p, "more than %d numbers", QN_COUNT(out->v));
        QN_TRY(qn_parser_int(r, &out->v[out->n++]));
    } while (qn_parser_take(r, ','));
    return qn_parser_expect(r, ']');
}

static QnStatus parse_names(QnParser *r, const QnAttrField *f, int *out)
{
    char word[QN_PARSER_WORD];
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_word(r, "a name", word));
    for (int i = 0; f->names[i]; i++) {
        if (!strcmp(f->names[i], word)) {
            *out = i;
            return QN_OK;
        }
    }
    return qn_parser_fail(r, at, "%s has no choice '%s'", f->name, word);
}

static QnStatus parse_dtype(QnParser *r, QnDtype *out)
{
    char word[QN_PARSER_WORD];
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_word(r, "a data type", word));
    return qn_dtype_find(word, out) ? QN_OK
                                    : qn_parser_fail(r, at, "no data type is named '%s'", word);
}

static QnStatus parse_bool(QnParser *r, bool *out)
{
    char word[QN_PARSER_WORD];
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_word(r, "true or false", word));
    *out = !strcmp(word, "true");
    return *out || !strcmp(word, "false") ? QN_OK : qn_parser_fail(r, at, "expected true or false");
}

/* ---- data ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* x"3f80…": bytes as they lie in memory. */
static QnStatus parse_hex(QnParser *r, QnData *out)
{
    const char *start = ++r->p;
    QN_TRY(qn_parser_expect(r, '"'));
    size_t n = strspn(r->p, "0123456789abcdef");
    if (n % 2 || r->p[n] != '"')
        return qn_parser_fail(r, start - 1, "expected pairs of hexadecimal digits up to '\"'");
    unsigned char *bytes = qn_arena_alloc(r->graph->arena, n / 2 + 1);
    if (!bytes)
        return QN_ENOMEM;
    for (size_t i = 0; i < n; i += 2)
        bytes[i / 2] = (unsigned char)(hex_digit(r->p[i]) * 16 + hex_digit(r->p[i + 1]));
    *out = (QnData){ n / 2, bytes };
    r->p += n + 1;
    return QN_OK;
}

static QnStatus parse_u64(QnParser *r, uint64_t *out)
{
    qn_parser_skip(r);
    const char *p = r->p;
    uint64_t v = 0;
    if (*p < '0' || *p > '9')
        return qn_parser_fail(r, p, "expected a whole number that is not negative");
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return qn_parser_fail(r, r->p, "the number does not fit 64 bits");
        v = v * 10 + digit;
    }
    *out = v;
    r->p = p;
    return QN_OK;
}

static QnStatus parse_element(QnParser *r, QnDtype dtype, void *to)
{
    if (dtype == QN_DTYPE_I64) {
        int64_t v;
        QN_TRY(qn_parser_int(r, &v));
        memcpy(to, &v, sizeof v);
        return QN_OK;
    }
    if (dtype == QN_DTYPE_U64) {
        uint64_t v = 0;
        QN_TRY(parse_u64(r, &v));
        memcpy(to, &v, sizeof v);
        return QN_OK;
    }
    double x;
    QN_TRY(parse_double(r, &x));
    qn_dtype_from_f64(dtype, &x, to, 1);
    return QN_OK;
}

/* [1, 2.5]: elements of the dtype that the attributes before it say. */
static QnStatus parse_data(QnParser *r, const QnOp *op, const void *attr, QnData *out)
{
    qn_parser_skip(r);
    if (*r->p == 'x')
        return parse_hex(r, out);
    const QnAttrField *f = qn_attr_find(op, "dtype");
    QnDtype dtype = f && f->kind == QN_ATTR_DTYPE
                        ? *(const QnDtype *)(const void *)((const char *)attr + f->offset)
                        : QN_DTYPE_U8;
    size_t item = qn_dtype_bytes(dtype), n = 0;
    QN_TRY(qn_parser_expect(r, '['));
    size_t most = 1;
    for (const char *p = r->p; *p && *p != ']' && *p != '\n'; p++)
        most += *p == ',';
    char *bytes = qn_arena_array(r->graph->arena, most, item);
    if (!bytes)
        return QN_ENOMEM;
    if (!qn_parser_take(r, ']')) {
        do {
            QN_TRY(parse_element(r, dtype, bytes + n++ * item));
        } while (qn_parser_take(r, ','));
        QN_TRY(qn_parser_expect(r, ']'));
    }
    *out = (QnData){ n * item, bytes };
    return QN_OK;
}

/* ---- fused bodies ---- */

static QnStatus parse_operand(QnParser *r, int below, int *out)
{
    int64_t v;
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_expect(r, '$'));
    QN_TRY(qn_parser_int(r, &v));
    if (v < 0 || v >= below)
        return qn_parser_fail(r, at, "operand $%" PRId64 " does not stand above", v);
    *out = (int)v;
    return QN_OK;
}

/* "$3 = mul($0, $1) : f32;" */
static QnStatus parse_instr(QnParser *r, int number, QnBodyInstr *x)
{
    int64_t id;
    qn_parser_skip(r);
    const char *at = r->p;
    QN_TRY(qn_parser_expect(r, '$'));
    QN_TRY(qn_parser_int(r, &id));
    if (id != number)
        return qn_parser_fail(r, at, "expected $%d: results are numbered in order", number);
    QN_TRY(qn_parser_expect(r, '='));
    qn_parser_skip(r);
    at = r->p;
    QN_TRY(qn_parser_op(r, &x->op));
    if (!x->op->map)
        return qn_parser_fail(r, at, "%s is no map", x->op->name);
    QN_TRY(qn_parser_expect(r, '('));
    for (int k = 0; k < x->op->n_in; k++) {
        if (k)
            QN_TRY(qn_parser_expect(r, ','));
        QN_TRY(parse_operand(r, number, &x->arg[k]));
    }
    QN_TRY(qn_parser_expect(r, ')'));
    if (x->op->attr_bytes) {
        void *attr = qn_arena_alloc(r->graph->arena, x->op->attr_bytes);
        if (!attr)
            return QN_ENOMEM;
        QN_TRY(qn_parser_attr(r, x->op, attr));
        if (qn_attr_check(x->op, attr) != QN_OK)
            return qn_parser_place(r, at);
        x->attr = attr;
    }
    QN_TRY(qn_parser_expect(r, ':'));
    QN_TRY(parse_dtype(r, &x->dtype));
    return qn_parser_expect(r, ';');
}

static QnStatus parse_body(QnParser *r, const QnBody **out)
{
    QnBody *b = qn_arena_alloc(r->graph->arena, sizeof *b);
    QnBodyInstr *instr = NULL;
    int *outs = b ? qn_arena_array(r->graph->arena, QN_MAX_OUT, sizeof *outs) : NULL;
    int64_t cap = 0, n_in = 0, n = 0;
    char word[QN_PARSER_WORD];
    QnStatus st = outs ? QN_OK : QN_ENOMEM;
    if (st)
        goto done;
    QN_TRY_DONE(qn_parser_expect(r, '{'));
    QN_TRY_DONE(qn_parser_word(r, "in", word));
    QN_TRY_DONE(strcmp(word, "in") ? qn_parser_fail(r, r->p, "expected in") : QN_OK);
    QN_TRY_DONE(qn_parser_int(r, &n_in));
    if (n_in < 0 || n_in > QN_MAX_IN)
        QN_TRY_DONE(qn_parser_fail(r, r->p, "at most %d inputs", QN_MAX_IN));
    QN_TRY_DONE(qn_parser_expect(r, ';'));
    for (qn_parser_skip(r); *r->p == '$'; qn_parser_skip(r)) {
        QN_TRY_DONE(QN_GROW(instr, cap, n));
        instr[n] = (QnBodyInstr){ 0 };
        QN_TRY_DONE(parse_instr(r, (int)(n_in + n), &instr[n]));
        n++;
    }
    QN_TRY_DONE(qn_parser_word(r, "out", word));
    QN_TRY_DONE(strcmp(word, "out") ? qn_parser_fail(r, r->p, "expected out") : QN_OK);
    do {
        if (b->n_out == QN_MAX_OUT)
            QN_TRY_DONE(qn_parser_fail(r, r->p, "more than %d outputs", QN_MAX_OUT));
        QN_TRY_DONE(parse_operand(r, (int)(n_in + n), &outs[b->n_out]));
        outs[b->n_out] -= (int)n_in;
        if (outs[b->n_out++] < 0)
            QN_TRY_DONE(qn_parser_fail(r, r->p, "an output is no instruction's result"));
    } while (qn_parser_take(r, ','));
    QN_TRY_DONE(qn_parser_expect(r, '}'));
    b->n_in = (int)n_in;
    b->n_instr = (int)n;
    b->out = outs;
    b->instr = qn_arena_copy(r->graph->arena, instr, (size_t)n * sizeof *instr);
    st = b->instr ? QN_OK : QN_ENOMEM;
    *out = b;
done:
    qn_free(instr);
    return st;
}

/* ---- the table ---- */

static QnStatus parse_field(QnParser *r, const QnOp *op, const QnAttrField *f, void *attr)
{
    switch (f->kind) {
    case QN_ATTR_INT: return qn_parser_int(r, &AT(int64_t, attr, f));
    case QN_ATTR_FLOAT: return parse_double(r, &AT(double, attr, f));
    case QN_ATTR_BOOL: return parse_bool(r, &AT(bool, attr, f));
    case QN_ATTR_ENUM: return parse_names(r, f, &AT(int, attr, f));
    case QN_ATTR_DTYPE: return parse_dtype(r, &AT(QnDtype, attr, f));
    case QN_ATTR_STRING: return qn_parser_string(r, &AT(const char *, attr, f));
    case QN_ATTR_INTS: return parse_ints(r, &AT(QnInts, attr, f));
    case QN_ATTR_DIMS: return qn_parser_dims(r, &AT(QnDims, attr, f));
    case QN_ATTR_DATA: return parse_data(r, op, attr, &AT(QnData, attr, f));
    case QN_ATTR_BODY: return parse_body(r, &AT(const QnBody *, attr, f));
    }
    return QN_EINTERNAL;
}

static QnStatus parse_fields(QnParser *r, const QnOp *op, void *attr)
{
    uint64_t seen = 0;
    if (qn_parser_take(r, '}'))
        return QN_OK;
    do {
        char word[QN_PARSER_WORD];
        qn_parser_skip(r);
        const char *at = r->p;
        QN_TRY(qn_parser_word(r, "an attribute", word));
        const QnAttrField *f = qn_attr_find(op, word);
        if (!f)
            return qn_parser_fail(r, at, "%s has no attribute '%s'", op->name, word);
        uint64_t bit = UINT64_C(1) << ((f - op->fields) & 63);
        if (seen & bit)
            return qn_parser_fail(r, at, "attribute '%s' stands twice", word);
        seen |= bit;
        QN_TRY(qn_parser_expect(r, '='));
        QN_TRY(parse_field(r, op, f, attr));
    } while (qn_parser_take(r, ','));
    return qn_parser_expect(r, '}');
}

QnStatus qn_parser_attr(QnParser *r, const QnOp *op, void *attr)
{
    if (attr)
        qn_attr_defaults(op, attr);
    if (!qn_parser_take(r, '{'))
        return QN_OK;
    if (!attr)
        return qn_parser_fail(r, r->p - 1, "%s has no attributes", op->name);
    if (r->depth >= MAX_DEPTH)
        return qn_parser_fail(r, r->p - 1, "attributes nest over %d deep", MAX_DEPTH);
    r->depth++;
    QnStatus st = parse_fields(r, op, attr);
    r->depth--;
    return st;
}
