/* The tree as YAML or JSON text. */
#include "base/str.h"
#include "io/yaml_node.h"

#include <stdlib.h>
#include <string.h>

/* Could the text be taken for a number, boolean or null when not quoted? */
static bool looks_typed(const char *s)
{
    static const char *const words[] = { "",     "~",    "null",  "Null",  "NULL", "true",
                                         "True", "TRUE", "no",    "yes",   "on",   "off",
                                         "No",   "Yes",  "On",    "Off",   "NO",   "YES",
                                         "ON",   "OFF",  "false", "False", "FALSE" };
    for (int i = 0; i < QN_COUNT(words); i++)
        if (!strcmp(s, words[i]))
            return true;
    return strchr("+-.0123456789", *s) != NULL;
}

/* Letters, digits and a few marks in between need no quotes in YAML. */
static bool is_plain(const char *s)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    return *s && s[strspn(s, safe)] == '\0' && !(s[0] == '-' && (!s[1] || s[1] == '-')) &&
           strcmp(s, "...") != 0;
}

/* YAML does not take these as they are, or takes them for the end of a line: controls, two
 * separators, byte order marks. All of them are sequences of two or three bytes. */
static uint32_t odd_character(const unsigned char *p)
{
    uint32_t c = 0;
    if (p[0] == 0xc2)
        c = p[1];
    else if (p[0] >= 0xe0 && p[0] < 0xf0 && p[1])
        c = (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    bool odd = (c >= 0x80 && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
               c == 0xfffe || c == 0xffff;
    return odd ? c : 0;
}

static void put_quoted(QnStr *out, const char *s)
{
    qn_str_add(out, "\"");
    for (; *s; s++) {
        const unsigned char *p = (const unsigned char *)s;
        uint32_t odd = odd_character(p);
        if (*p == '"' || *p == '\\')
            qn_str_printf(out, "\\%c", *p);
        else if (*p == '\n')
            qn_str_add(out, "\\n");
        else if (*p == '\t')
            qn_str_add(out, "\\t");
        else if (*p < 0x20 || *p == 0x7f)
            qn_str_printf(out, "\\u%04x", *p);
        else if (odd)
            qn_str_printf(out, "\\u%04x", odd);
        else
            qn_str_add_bytes(out, s, 1);
        s += odd ? (odd < 0x800 ? 1 : 2) : 0;
    }
    qn_str_add(out, "\"");
}

static void put_scalar(QnStr *out, const QnYaml *n)
{
    bool plain = n->quoted ? is_plain(n->text) && !looks_typed(n->text) : is_plain(n->text);
    if (qn_yaml_node_is_null(n))
        qn_str_add(out, "null");
    else if (plain)
        qn_str_add(out, n->text);
    else
        put_quoted(out, n->text);
}

static void put_key(QnStr *out, const char *key)
{
    if (is_plain(key) && !looks_typed(key))
        qn_str_add(out, key);
    else
        put_quoted(out, key);
}

static bool is_flat_list(const QnYaml *n)
{
    for (const QnYaml *c = n->first; c; c = c->next)
        if (c->kind != QN_YAML_SCALAR)
            return false;
    return n->kind == QN_YAML_LIST;
}

static void put_flat_list(QnStr *out, const QnYaml *n)
{
    qn_str_add(out, "[");
    for (const QnYaml *c = n->first; c; c = c->next) {
        put_scalar(out, c);
        if (c->next)
            qn_str_add(out, ", ");
    }
    qn_str_add(out, "]");
}

/* Writes the value after "key:" or "-", and ends its line. */
static void put_value(QnStr *out, const QnYaml *n, int indent)
{
    if (n->kind == QN_YAML_SCALAR) {
        qn_str_add(out, " ");
        put_scalar(out, n);
        qn_str_add(out, "\n");
        return;
    }
    if (is_flat_list(n) || !n->count) {
        qn_str_add(out, " ");
        if (n->kind == QN_YAML_MAP)
            qn_str_add(out, "{}");
        else
            put_flat_list(out, n);
        qn_str_add(out, "\n");
        return;
    }
    qn_str_add(out, "\n");
    for (const QnYaml *c = n->first; c; c = c->next) {
        qn_str_add_repeat(out, " ", indent);
        if (n->kind == QN_YAML_MAP) {
            put_key(out, c->key);
            qn_str_add(out, ":");
        } else {
            qn_str_add(out, "-");
        }
        put_value(out, c, indent + 2);
    }
}

QnStatus qn_yaml_print(const QnYaml *node, char **out)
{
    QnStr s = { 0 };
    put_value(&s, node, 0);
    const char *text = qn_str_text(&s);
    if (s.st == QN_OK && (*text == '\n' || *text == ' ')) {
        /* put_value begins as if after a key */
        memmove(s.s, s.s + 1, s.n);
        s.n--;
    }
    QnStatus st = qn_str_take(&s, out);
    qn_str_fini(&s);
    return st;
}

/* ---- JSON ---- */

/* As JSON writes numbers: no plus sign, no leading zero or dot, digits after a dot. */
static bool is_json_number(const char *s)
{
    s += *s == '-';
    if (*s < '0' || *s > '9' || (s[0] == '0' && s[1] >= '0' && s[1] <= '9'))
        return false;
    s += strspn(s, "0123456789");
    if (*s == '.') {
        size_t n = strspn(s + 1, "0123456789");
        if (!n)
            return false;
        s += 1 + n;
    }
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '+' || s[1] == '-');
        size_t n = strspn(s, "0123456789");
        if (!n)
            return false;
        s += n;
    }
    return !*s;
}

static void json_value(QnStr *out, const QnYaml *n)
{
    if (n->kind == QN_YAML_SCALAR) {
        bool bare = !n->quoted && (is_json_number(n->text) || !strcmp(n->text, "true") ||
                                   !strcmp(n->text, "false"));
        if (qn_yaml_node_is_null(n))
            qn_str_add(out, "null");
        else if (bare)
            qn_str_add(out, n->text);
        else
            put_quoted(out, n->text);
        return;
    }
    bool map = n->kind == QN_YAML_MAP;
    qn_str_add(out, map ? "{" : "[");
    for (const QnYaml *c = n->first; c; c = c->next) {
        if (map) {
            put_quoted(out, c->key);
            qn_str_add(out, ": ");
        }
        json_value(out, c);
        if (c->next)
            qn_str_add(out, ", ");
    }
    qn_str_add(out, map ? "}" : "]");
}

QnStatus qn_yaml_print_json(const QnYaml *node, char **out)
{
    QnStr s = { 0 };
    json_value(&s, node);
    QnStatus st = qn_str_take(&s, out);
    qn_str_fini(&s);
    return st;
}
