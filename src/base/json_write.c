#include "base/json.h"
#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qn_json_begin(QnJsonWriter *w, QnStr *out, int indent)
{
    *w = (QnJsonWriter){ .out = out, .indent = indent };
}

static void misuse(QnJsonWriter *w, const char *what)
{
    if (w->st == QN_OK)
        w->st = qn_fail(QN_EINTERNAL, "JSON writer: %s", what);
}

QnStatus qn_json_end(QnJsonWriter *w)
{
    if (w->depth || !w->done)
        misuse(w, "something is not closed, or nothing was written");
    return w->st != QN_OK ? w->st : w->out->st;
}

static bool in_object(const QnJsonWriter *w)
{
    return w->depth && (w->is_object >> (w->depth - 1) & 1);
}

static void new_line(QnJsonWriter *w)
{
    if (w->indent) {
        qn_str_add(w->out, "\n");
        qn_str_add_repeat(w->out, " ", (int64_t)w->indent * w->depth);
    }
}

/* The comma and line before an item of the innermost array or object. */
static void separate(QnJsonWriter *w)
{
    uint64_t bit = (uint64_t)1 << (w->depth - 1);
    if (w->has_items & bit)
        qn_str_add(w->out, w->indent ? "," : ", ");
    w->has_items |= bit;
    new_line(w);
}

/* Before a value: false if none may stand here. */
static bool place(QnJsonWriter *w)
{
    if (w->st != QN_OK)
        return false;
    if (w->done || (in_object(w) && !w->after_key)) {
        misuse(w, w->done ? "a second value" : "a value without its key");
        return false;
    }
    if (w->depth && !w->after_key)
        separate(w);
    w->after_key = false;
    w->done = w->depth == 0;
    return true;
}

static void open_level(QnJsonWriter *w, bool object)
{
    if (!place(w))
        return;
    if (w->depth == QN_JSON_DEPTH) {
        misuse(w, "nested too deep");
        return;
    }
    uint64_t bit = (uint64_t)1 << w->depth++;
    w->has_items &= ~bit;
    w->is_object = object ? w->is_object | bit : w->is_object & ~bit;
    w->done = false;
    qn_str_add(w->out, object ? "{" : "[");
}

void qn_json_open_object(QnJsonWriter *w)
{
    open_level(w, true);
}

void qn_json_open_array(QnJsonWriter *w)
{
    open_level(w, false);
}

void qn_json_close(QnJsonWriter *w)
{
    if (w->st != QN_OK)
        return;
    if (w->depth == 0 || w->after_key) {
        misuse(w, w->depth ? "a key without its value" : "nothing to close");
        return;
    }
    bool object = in_object(w), items = w->has_items >> (w->depth - 1) & 1;
    w->depth--;
    if (items)
        new_line(w);
    qn_str_add(w->out, object ? "}" : "]");
    w->done = w->depth == 0;
}

static void add_quoted(QnStr *out, const char *text, size_t n)
{
    qn_str_add(out, "\"");
    while (n) {
        unsigned char c = (unsigned char)*text;
        int length = qn_utf8_length(text, n);
        if (length == 0)
            qn_str_add(out, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            qn_str_printf(out, "\\%c", c);
        else if (c == '\n')
            qn_str_add(out, "\\n");
        else if (c < 32)
            qn_str_printf(out, "\\u%04x", c);
        else
            qn_str_add_bytes(out, text, (size_t)length);
        size_t step = length ? (size_t)length : 1;
        text += step;
        n -= step;
    }
    qn_str_add(out, "\"");
}

void qn_json_key(QnJsonWriter *w, const char *key)
{
    if (w->st != QN_OK)
        return;
    if (!in_object(w) || w->after_key) {
        misuse(w, "a key outside an object");
        return;
    }
    separate(w);
    add_quoted(w->out, key, strlen(key));
    qn_str_add(w->out, ": ");
    w->after_key = true;
}

void qn_json_add_null(QnJsonWriter *w)
{
    if (place(w))
        qn_str_add(w->out, "null");
}

void qn_json_add_bool(QnJsonWriter *w, bool value)
{
    if (place(w))
        qn_str_add(w->out, value ? "true" : "false");
}

void qn_json_add_int(QnJsonWriter *w, int64_t value)
{
    if (place(w))
        qn_str_printf(w->out, "%lld", (long long)value);
}

/* The fewest digits that read back as `value`: a double needs 15 to 17, a float 6 to 9. */
static void add_number(QnJsonWriter *w, double value, bool single)
{
    char text[40];
    if (!isfinite(value)) {
        qn_json_add_null(w);
        return;
    }
    if (!place(w))
        return;
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            break;
    }
    char point = localeconv()->decimal_point[0], *at = strchr(text, point);
    if (at)
        *at = '.';
    qn_str_add(w->out, text);
    if (!strpbrk(text, ".e"))
        qn_str_add(w->out, ".0");
}

void qn_json_add_double(QnJsonWriter *w, double value)
{
    add_number(w, value, false);
}

void qn_json_add_float(QnJsonWriter *w, float value)
{
    add_number(w, (double)value, true);
}

void qn_json_add_bytes(QnJsonWriter *w, const char *text, size_t n)
{
    if (place(w))
        add_quoted(w->out, text, n);
}

void qn_json_add_string(QnJsonWriter *w, const char *text)
{
    qn_json_add_bytes(w, text, strlen(text));
}

void qn_json_put_bool(QnJsonWriter *w, const char *key, bool value)
{
    qn_json_key(w, key);
    qn_json_add_bool(w, value);
}

void qn_json_put_int(QnJsonWriter *w, const char *key, int64_t value)
{
    qn_json_key(w, key);
    qn_json_add_int(w, value);
}

void qn_json_put_double(QnJsonWriter *w, const char *key, double value)
{
    qn_json_key(w, key);
    qn_json_add_double(w, value);
}

void qn_json_put_string(QnJsonWriter *w, const char *key, const char *value)
{
    qn_json_key(w, key);
    qn_json_add_string(w, value);
}
