/* Typed reading of the tree; every complaint names the place and what was expected. */
#include "base/str.h"
#include "io/number.h"
#include "io/yaml_node.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool qn_yaml_node_is_null(const QnYaml *node)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };
    if (node->kind != QN_YAML_SCALAR || node->quoted)
        return false;
    for (int i = 0; i < QN_COUNT(words); i++)
        if (!strcmp(node->text, words[i]))
            return true;
    return false;
}

/* Appends "a.b[2]" of node at text[at…]; returns the new length. */
static size_t append_path(const QnYaml *node, char *text, size_t at, size_t bytes)
{
    if (!node->parent)
        return at;
    size_t start = at;
    at = append_path(node->parent, text, at, bytes);
    int n = 0;
    if (node->key)
        n = snprintf(text + at, bytes - at, "%s%s", at > start ? "." : "", node->key);
    else
        n = snprintf(text + at, bytes - at, "[%" PRId64 "]", node->index);
    at += n > 0 ? (size_t)n : 0;
    return QN_MIN(at, bytes - 1);
}

char *qn_yaml_place(const QnYaml *node, char *text, size_t bytes)
{
    int n = node->line ? snprintf(text, bytes, "%s:%d", node->file, node->line)
                       : snprintf(text, bytes, "%s", node->file);
    if (n < 0 || (size_t)n + 3 >= bytes || !node->parent || !node->line)
        return text;
    memcpy(text + n, ": ", 3);
    append_path(node, text, (size_t)n + 2, bytes);
    return text;
}

QnStatus qn_yaml_fail(const QnYaml *node, const char *fmt, ...)
{
    char place[512], text[QN_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return qn_fail(QN_EUSAGE, "%s: %s", qn_yaml_place(node, place, sizeof place), text);
}

/* ---- finding ---- */

static QnYaml *child_by_key(const QnYaml *map, const char *key, size_t n)
{
    for (QnYaml *c = map->first; c; c = c->next)
        if (c->key && !strncmp(c->key, key, n) && !c->key[n])
            return c;
    return NULL;
}

static QnYaml *find_any(const QnYaml *map, const char *key)
{
    const QnYaml *at = map;
    while (at && at->kind == QN_YAML_MAP) {
        size_t n = strcspn(key, ".");
        QnYaml *c = child_by_key(at, key, n);
        if (!c || !key[n])
            return c;
        at = c;
        key += n + 1;
    }
    return NULL;
}

QnYaml *qn_yaml_find(const QnYaml *map, const char *key)
{
    QnYaml *n = find_any(map, key);
    return n && !qn_yaml_node_is_null(n) ? n : NULL;
}

/* *out is NULL where an optional key is absent. */
static QnStatus lookup(const QnYaml *map, const char *key, bool required, const char *expected,
                       QnYaml **out)
{
    *out = qn_yaml_find(map, key);
    if (*out || !required)
        return QN_OK;
    if (!map)
        return qn_fail(QN_EUSAGE, "%s is missing: expected %s", key, expected);
    const QnYaml *empty = find_any(map, key);
    if (empty)
        return qn_yaml_fail(empty, "has no value: expected %s", expected);
    char place[512], path[512];
    path[append_path(map, path, 0, sizeof path)] = '\0';
    qn_yaml_place(map, place, sizeof place);
    if (map->line)
        snprintf(place, sizeof place, "%s:%d", map->file, map->line);
    return qn_fail(QN_EUSAGE, "%s: %s%s%s is missing: expected %s", place, path,
                   map->parent ? "." : "", key, expected);
}

static QnStatus wrong(const QnYaml *node, const char *expected)
{
    if (node->kind == QN_YAML_SCALAR)
        return qn_yaml_fail(node, "expected %s, found '%.80s'", expected, node->text);
    return qn_yaml_fail(node, "expected %s, found a %s", expected,
                        node->kind == QN_YAML_LIST ? "list" : "map");
}

/* ---- numbers ---- */

/* "an integer from 1 to 10" */
static const char *int_expected(int64_t min, int64_t max, char *text, size_t bytes)
{
    char from[40] = "", to[40] = "";
    if (min != INT64_MIN)
        snprintf(from, sizeof from, " from %" PRId64, min);
    if (max != INT64_MAX)
        snprintf(to, sizeof to, " %s %" PRId64, min == INT64_MIN ? "up to" : "to", max);
    snprintf(text, bytes, "an integer%s%s", from, to);
    return text;
}

static const char *real_expected(double min, double max, char *text, size_t bytes)
{
    char from[40] = "", to[40] = "";
    if (isfinite(min))
        snprintf(from, sizeof from, " from %g", min);
    if (isfinite(max))
        snprintf(to, sizeof to, " %s %g", isfinite(min) ? "to" : "up to", max);
    snprintf(text, bytes, "a number%s%s", from, to);
    return text;
}

/* Digits with an optional sign; 1_000 is allowed. */
static bool parse_int(const char *s, int64_t *out)
{
    bool negative = *s == '-';
    s += *s == '-' || *s == '+';
    if (*s < '0' || *s > '9')
        return false;
    int64_t v = 0;
    for (; *s; s++) {
        if (*s == '_' && s[1] && s[-1] != '_')
            continue;
        if (*s < '0' || *s > '9')
            return false;
        int64_t digit = negative ? -(*s - '0') : *s - '0';
        if (qn_mul_overflow(v, (int64_t)10, &v) || qn_add_overflow(v, digit, &v))
            return false;
    }
    *out = v;
    return true;
}

QnStatus qn_yaml_as_int(const QnYaml *node, int64_t min, int64_t max, int64_t *out)
{
    int64_t v;
    char expected[128];
    if (node->kind != QN_YAML_SCALAR || node->quoted || !parse_int(node->text, &v) || v < min ||
        v > max)
        return wrong(node, int_expected(min, max, expected, sizeof expected));
    *out = v;
    return QN_OK;
}

QnStatus qn_yaml_as_real(const QnYaml *node, double min, double max, double *out)
{
    double v;
    char expected[128];
    if (node->kind != QN_YAML_SCALAR || node->quoted ||
        !qn_number_parse(node->text, strlen(node->text), &v) || v < min || v > max)
        return wrong(node, real_expected(min, max, expected, sizeof expected));
    *out = v;
    return QN_OK;
}

QnStatus qn_yaml_as_string(const QnYaml *node, const char **out)
{
    if (node->kind != QN_YAML_SCALAR)
        return wrong(node, "a text");
    *out = node->text;
    return QN_OK;
}

QnStatus qn_yaml_int(const QnYaml *map, const char *key, bool required, int64_t min, int64_t max,
                     int64_t *out)
{
    QnYaml *n;
    char expected[128];
    QN_TRY(lookup(map, key, required, int_expected(min, max, expected, sizeof expected), &n));
    return n ? qn_yaml_as_int(n, min, max, out) : QN_OK;
}

QnStatus qn_yaml_real(const QnYaml *map, const char *key, bool required, double min, double max,
                      double *out)
{
    QnYaml *n;
    char expected[128];
    QN_TRY(lookup(map, key, required, real_expected(min, max, expected, sizeof expected), &n));
    return n ? qn_yaml_as_real(n, min, max, out) : QN_OK;
}

QnStatus qn_yaml_bool(const QnYaml *map, const char *key, bool required, bool *out)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
    QnYaml *n;
    QN_TRY(lookup(map, key, required, "true or false", &n));
    if (!n)
        return QN_OK;
    for (int i = 0; n->kind == QN_YAML_SCALAR && !n->quoted && i < QN_COUNT(words); i++)
        if (!strcasecmp(n->text, words[i])) {
            *out = i % 2;
            return QN_OK;
        }
    return wrong(n, "true or false");
}

QnStatus qn_yaml_string(const QnYaml *map, const char *key, bool required, const char **out)
{
    QnYaml *n;
    QN_TRY(lookup(map, key, required, "a text", &n));
    return n ? qn_yaml_as_string(n, out) : QN_OK;
}

QnStatus qn_yaml_choice(const QnYaml *map, const char *key, bool required, const char *const *words,
                        int n, int *out)
{
    char expected[512] = "one of";
    for (int i = 0; i < n; i++) {
        size_t at = strlen(expected);
        snprintf(expected + at, sizeof expected - at, "%s %s", i ? "," : "", words[i]);
    }
    QnYaml *node;
    QN_TRY(lookup(map, key, required, expected, &node));
    if (!node)
        return QN_OK;
    for (int i = 0; node->kind == QN_YAML_SCALAR && i < n; i++)
        if (!strcmp(node->text, words[i])) {
            *out = i;
            return QN_OK;
        }
    return wrong(node, expected);
}

/* ---- lists and maps ---- */

QnStatus qn_yaml_map(const QnYaml *map, const char *key, bool required, QnYaml **out)
{
    QnYaml *n;
    QN_TRY(lookup(map, key, required, "a map", &n));
    if (n && n->kind != QN_YAML_MAP)
        return wrong(n, "a map");
    if (n)
        *out = n;
    return QN_OK;
}

QnStatus qn_yaml_list(const QnYaml *map, const char *key, bool required, QnYaml **out)
{
    QnYaml *n;
    QN_TRY(lookup(map, key, required, "a list", &n));
    if (n && n->kind != QN_YAML_LIST)
        return wrong(n, "a list");
    if (n)
        *out = n;
    return QN_OK;
}

/* First item and number of items of a list, or of one number that stands for a list. */
static QnStatus list_items(const QnYaml *node, int cap, const QnYaml **first, int *count)
{
    int64_t n = node->kind == QN_YAML_LIST ? node->count : 1;
    if (node->kind == QN_YAML_MAP)
        return wrong(node, "a list of numbers");
    if (n > cap)
        return qn_yaml_fail(node, "expected at most %d numbers, found %" PRId64, cap, n);
    *first = node->kind == QN_YAML_LIST ? node->first : node;
    *count = (int)n;
    return QN_OK;
}

QnStatus qn_yaml_ints(const QnYaml *map, const char *key, bool required, int64_t min, int64_t max,
                      int64_t *out, int cap, int *count)
{
    QnYaml *n;
    const QnYaml *item = NULL;
    int items = 0, i = 0;
    QN_TRY(lookup(map, key, required, "a list of integers", &n));
    if (!n)
        return QN_OK;
    QN_TRY(list_items(n, cap, &item, &items));
    for (; i < items; i++, item = item->next)
        QN_TRY(qn_yaml_as_int(item, min, max, &out[i]));
    *count = items;
    return QN_OK;
}

QnStatus qn_yaml_reals(const QnYaml *map, const char *key, bool required, double min, double max,
                       double *out, int cap, int *count)
{
    QnYaml *n;
    const QnYaml *item = NULL;
    int items = 0, i = 0;
    QN_TRY(lookup(map, key, required, "a list of numbers", &n));
    if (!n)
        return QN_OK;
    QN_TRY(list_items(n, cap, &item, &items));
    for (; i < items; i++, item = item->next)
        QN_TRY(qn_yaml_as_real(item, min, max, &out[i]));
    *count = items;
    return QN_OK;
}

/* ---- unknown keys ---- */

static QnStatus unknown_key(const QnYaml *node, const char *const *known, int n)
{
    const char *nearest = qn_str_nearest(node->key, known, n);
    if (nearest)
        return qn_yaml_fail(node, "unknown key; did you mean '%s'?", nearest);
    char list[512] = "";
    for (int i = 0; i < n; i++) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", known[i]);
    }
    return qn_yaml_fail(node, "unknown key; known here: %s", list);
}

QnStatus qn_yaml_check_keys(const QnYaml *map, const char *const *known, int n)
{
    if (!map)
        return QN_OK;
    if (map->kind != QN_YAML_MAP)
        return wrong(map, "a map");
    for (const QnYaml *c = map->first; c; c = c->next) {
        bool found = false;
        for (int i = 0; i < n && !found; i++)
            found = !strcmp(c->key, known[i]);
        if (!found)
            return unknown_key(c, known, n);
    }
    return QN_OK;
}
