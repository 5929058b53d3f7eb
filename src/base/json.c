#include "base/json.h"
#include "base/hash.h"
#include "base/utf8.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 400, FEW_KEYS = 8 };

typedef struct Parser {
    const char *text, *p, *end;
    QnArena *arena;
    QnJson *stack; /* finished values whose array or object is still open */
    int64_t n, cap;
    int depth;
} Parser;

static size_t offset(const Parser *ps)
{
    return (size_t)(ps->p - ps->text);
}

#define fail(ps, ...) fail_offset((ps), qn_fail(QN_EFORMAT, __VA_ARGS__))

static QnStatus fail_offset(const Parser *ps, QnStatus st)
{
    (void)st;
    return qn_fail_prefix("JSON, byte %zu", offset(ps));
}

static void skip_space(Parser *ps)
{
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\t' || *ps->p == '\n' || *ps->p == '\r'))
        ps->p++;
}

/* What stands here, for messages. */
static const char *here(const Parser *ps, char out[24])
{
    if (ps->p >= ps->end)
        return "the end of the text";
    unsigned char c = (unsigned char)*ps->p;
    snprintf(out, 24, c > 32 && c < 127 ? "'%c'" : "byte 0x%02x", c);
    return out;
}

static bool take(Parser *ps, char c)
{
    if (ps->p >= ps->end || *ps->p != c)
        return false;
    ps->p++;
    return true;
}

static QnStatus take_word(Parser *ps, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
        return fail(ps, "unknown word; the words are true, false and null");
    ps->p += n;
    return QN_OK;
}

static bool take_digits(Parser *ps)
{
    const char *from = ps->p;
    while (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9')
        ps->p++;
    return ps->p > from;
}

/* strtod reads the locale's decimal point, so give it that. */
static double to_double(char *text)
{
    char *point = strchr(text, '.');
    if (point)
        *point = localeconv()->decimal_point[0];
    return strtod(text, NULL);
}

static QnStatus parse_number(Parser *ps, QnJson *out)
{
    const char *from = ps->p;
    char text[NUMBER_BYTES], was[24];
    bool whole = true, negative = take(ps, '-');
    if (!take(ps, '0') && !take_digits(ps))
        return fail(ps, "a digit is expected, not %s", here(ps, was));
    if (take(ps, '.')) {
        whole = false;
        if (!take_digits(ps))
            return fail(ps, "a digit is expected after the point, not %s", here(ps, was));
    }
    if (take(ps, 'e') || take(ps, 'E')) {
        whole = false;
        if (!take(ps, '+'))
            take(ps, '-');
        if (!take_digits(ps))
            return fail(ps, "a digit is expected in the exponent, not %s", here(ps, was));
    }
    size_t n = (size_t)(ps->p - from);
    if (n >= sizeof text)
        return fail(ps, "a number of %zu characters; at most %d are read", n, NUMBER_BYTES - 1);
    memcpy(text, from, n);
    text[n] = '\0';
    if (whole && !(negative && text[1] == '0')) {
        errno = 0;
        out->integer = strtoll(text, NULL, 10);
        if (errno == 0) {
            out->type = QN_JSON_INT;
            return QN_OK;
        }
    }
    out->type = QN_JSON_DOUBLE;
    out->number = to_double(text);
    return isfinite(out->number) ? QN_OK : fail(ps, "a number too large for a double");
}

static QnStatus parse_hex4(Parser *ps, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        char c = ps->p < ps->end ? *ps->p : ' ', was[24];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return fail(ps, "four hexadecimal digits are expected after \\u, not %s",
                        here(ps, was));
        *code = *code << 4 | (uint32_t)digit;
        ps->p++;
    }
    return QN_OK;
}

/* Behind a backslash; writes what it stands for. */
static QnStatus parse_escape(Parser *ps, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    char c = ps->p < ps->end ? *ps->p : '\0', was[24];
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        ps->p++;
        *(*to)++ = into[simple - from];
        return QN_OK;
    }
    if (!take(ps, 'u'))
        return fail(ps, "no escape \\ with %s", here(ps, was));
    uint32_t code, low;
    QN_TRY(parse_hex4(ps, &code));
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take(ps, '\\') || !take(ps, 'u'))
            return fail(ps, "the second half of a surrogate pair is missing");
        QN_TRY(parse_hex4(ps, &low));
        if (low < 0xdc00 || low > 0xdfff)
            return fail(ps, "the second half of a surrogate pair is missing");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return fail(ps, "the first half of a surrogate pair is missing");
    }
    *to += qn_utf8_encode(code, *to);
    return QN_OK;
}

/* From the opening quote to behind the closing one. */
static QnStatus parse_string(Parser *ps, const char **out, size_t *n)
{
    ps->p++;
    const char *close = ps->p; /* an upper bound first: an escape never gets longer */
    while (close < ps->end && *close != '"')
        close += *close == '\\' && close + 1 < ps->end ? 2 : 1;
    if (close >= ps->end) {
        ps->p = ps->end;
        return fail(ps, "a string without its closing quote");
    }
    char *copy = qn_arena_alloc(ps->arena, (size_t)(close - ps->p) + 1), *to = copy;
    if (!copy)
        return QN_ENOMEM;
    while (!take(ps, '"')) {
        if (take(ps, '\\')) {
            QN_TRY(parse_escape(ps, &to));
            continue;
        }
        int length = qn_utf8_length(ps->p, (size_t)(ps->end - ps->p));
        if (length == 0)
            return fail(ps, "invalid UTF-8 in a string");
        if ((unsigned char)*ps->p < 32)
            return fail(ps, "control character 0x%02x in a string; write it as an escape", *ps->p);
        memcpy(to, ps->p, (size_t)length);
        to += length;
        ps->p += length;
    }
    *to = '\0';
    *out = copy;
    *n = (size_t)(to - copy);
    return QN_OK;
}

static bool same_key(const QnJson *a, const QnJson *b)
{
    return a->key_n == b->key_n && memcmp(a->key, b->key, a->key_n) == 0;
}

static QnStatus fail_twice(Parser *ps, const QnJson *item)
{
    ps->p = ps->text + item->offset;
    return fail(ps, "the key \"%.100s\" comes twice in its object", item->key);
}

static QnStatus check_keys(Parser *ps, const QnJson *items, int64_t n)
{
    if (n <= FEW_KEYS) {
        for (int64_t i = 1; i < n; i++)
            for (int64_t j = 0; j < i; j++)
                if (same_key(&items[i], &items[j]))
                    return fail_twice(ps, &items[i]);
        return QN_OK;
    }
    size_t slots = 16;
    while (slots < (size_t)n * 2)
        slots *= 2;
    const QnJson **table = qn_alloc_array(slots, sizeof *table);
    if (!table)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    for (int64_t i = 0; i < n && st == QN_OK; i++) {
        /* The seed differs from run to run, so that a file cannot aim at one slot. */
        size_t at = qn_hash_bytes(items[i].key, items[i].key_n, (uintptr_t)table) & (slots - 1);
        for (; table[at]; at = (at + 1) & (slots - 1)) {
            if (same_key(table[at], &items[i])) {
                st = fail_twice(ps, &items[i]);
                break;
            }
        }
        table[at] = &items[i];
    }
    qn_free(table);
    return st;
}

static QnStatus parse_value(Parser *ps, QnJson *out);

static QnStatus push(Parser *ps, const QnJson *item)
{
    QN_TRY(QN_GROW(ps->stack, ps->cap, ps->n));
    ps->stack[ps->n++] = *item;
    return QN_OK;
}

static QnStatus parse_member_key(Parser *ps, QnJson *item)
{
    size_t n;
    char was[24];
    if (ps->p >= ps->end || *ps->p != '"')
        return fail(ps, "a key in quotes is expected, not %s", here(ps, was));
    QN_TRY(parse_string(ps, &item->key, &n));
    if (n > UINT32_MAX)
        return fail(ps, "a key of %zu bytes", n);
    item->key_n = (uint32_t)n;
    skip_space(ps);
    if (!take(ps, ':'))
        return fail(ps, "':' is expected after a key, not %s", here(ps, was));
    skip_space(ps);
    return QN_OK;
}

/* Behind the opening bracket. Items gather on the stack and move to the arena as one array. */
static QnStatus parse_items(Parser *ps, QnJson *out)
{
    bool object = out->type == QN_JSON_OBJECT;
    char close = object ? '}' : ']', was[24];
    int64_t base = ps->n;
    if (++ps->depth > QN_JSON_DEPTH)
        return fail(ps, "nested deeper than %d", QN_JSON_DEPTH);
    skip_space(ps);
    bool more = !take(ps, close);
    while (more) {
        QnJson item = { 0 };
        if (object)
            QN_TRY(parse_member_key(ps, &item));
        QN_TRY(parse_value(ps, &item));
        QN_TRY(push(ps, &item));
        skip_space(ps);
        more = take(ps, ',');
        if (!more && !take(ps, close))
            return fail(ps, "',' or '%c' is expected, not %s", close, here(ps, was));
        skip_space(ps);
    }
    ps->depth--;
    out->n = ps->n - base;
    out->items = NULL;
    if (out->n) {
        QnJson *items = &ps->stack[base];
        if (object)
            QN_TRY(check_keys(ps, items, out->n));
        out->items = qn_arena_copy(ps->arena, items, (size_t)out->n * sizeof *items);
        if (!out->items)
            return QN_ENOMEM;
    }
    ps->n = base;
    return QN_OK;
}

static QnStatus parse_value(Parser *ps, QnJson *out)
{
    char c = ps->p < ps->end ? *ps->p : '\0', was[24];
    size_t n;
    out->offset = offset(ps);
    switch (c) {
    case '{':
    case '[':
        ps->p++;
        out->type = c == '{' ? QN_JSON_OBJECT : QN_JSON_ARRAY;
        return parse_items(ps, out);
    case '"':
        out->type = QN_JSON_STRING;
        QN_TRY(parse_string(ps, &out->string, &n));
        out->n = (int64_t)n;
        return QN_OK;
    case 't':
    case 'f':
        out->type = QN_JSON_BOOL;
        out->boolean = c == 't';
        return take_word(ps, c == 't' ? "true" : "false");
    case 'n': out->type = QN_JSON_NULL; return take_word(ps, "null");
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return parse_number(ps, out);
        return fail(ps, "a value is expected, not %s", here(ps, was));
    }
}

QnStatus qn_json_parse(QnArena *arena, const char *text, size_t bytes, const QnJson **out)
{
    Parser ps = { .text = text, .p = text, .end = text + bytes, .arena = arena };
    char was[24];
    QnJson *root = qn_arena_alloc(arena, sizeof *root);
    if (!root)
        return QN_ENOMEM;
    skip_space(&ps);
    QnStatus st = parse_value(&ps, root);
    if (st == QN_OK) {
        skip_space(&ps);
        if (ps.p < ps.end)
            st = fail(&ps, "only one value is expected; behind it stands %s", here(&ps, was));
    }
    qn_free(ps.stack);
    if (st == QN_OK)
        *out = root;
    return st;
}

const char *qn_json_type_name(QnJsonType type)
{
    static const char *const names[] = { "null",   "boolean", "whole number", "number",
                                         "string", "array",   "object" };
    return (unsigned)type < QN_COUNT(names) ? names[type] : "?";
}

const QnJson *qn_json_find(const QnJson *object, const char *key)
{
    if (!object || object->type != QN_JSON_OBJECT)
        return NULL;
    size_t n = strlen(key);
    for (int64_t i = 0; i < object->n; i++)
        if (object->items[i].key_n == n && memcmp(object->items[i].key, key, n) == 0)
            return &object->items[i];
    return NULL;
}

QnStatus qn_json_need(const QnJson *object, const char *key, QnJsonType type, const QnJson **out)
{
    const QnJson *item = qn_json_find(object, key);
    if (!item)
        return qn_fail(QN_EFORMAT, "JSON, byte %zu: the key \"%s\" is missing", object->offset,
                       key);
    bool fits = item->type == type || (type == QN_JSON_DOUBLE && item->type == QN_JSON_INT);
    if (!fits)
        return qn_fail(QN_EFORMAT, "JSON, byte %zu: \"%s\" is a %s, expected a %s", item->offset,
                       key, qn_json_type_name(item->type), qn_json_type_name(type));
    *out = item;
    return QN_OK;
}

double qn_json_double(const QnJson *number)
{
    return number->type == QN_JSON_INT ? (double)number->integer : number->number;
}
