/* RegexFullMatch: whether strings match a pattern from end to end. Patterns are RE2's, matching is
 * the C library's of POSIX extended patterns; whether a whole string matches hangs on the language
 * alone, not on who is greedy. What both mean by the same signs is passed on, classes and escapes
 * are written out, the rest is refused. Computed while a model is imported. */
#include "base/str.h"
#include "onnx/mapping.h"

#include <regex.h>
#include <string.h>

enum { LENGTH_MOST = 4096, DEPTH_MOST = 200 };

typedef struct Set {
    bool has[128];
} Set;

static void add_range(Set *s, int from, int to)
{
    for (int c = from; c <= to; c++)
        s->has[c] = true;
}

/* \d \w \s and their opposites; false: c is none of these. */
static bool add_named(Set *s, char c)
{
    Set named = { 0 };
    switch (c | 0x20) {
    case 'd': add_range(&named, '0', '9'); break;
    case 'w':
        add_range(&named, '0', '9');
        add_range(&named, 'A', 'Z');
        add_range(&named, 'a', 'z');
        named.has['_'] = true;
        break;
    case 's':
        named.has['\t'] = named.has['\n'] = named.has['\f'] = named.has['\r'] = named.has[' '] =
            true;
        break;
    default: return false;
    }
    bool opposite = c < 'a';
    for (int i = 1; i < 128; i++)
        s->has[i] |= named.has[i] != opposite;
    return true;
}

static int escaped(char c)
{
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    default:
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
                   ? -1
                   : c; /* a sign stands for itself */
    }
}

/* A bracket: ']' comes first, '[' and '^' late, '-' last, so that none has a second meaning. */
static void print_set(QnStr *out, const Set *s)
{
    int only = 0, n = 0;
    for (int c = 1; c < 128; c++)
        if (s->has[c])
            n++, only = c;
    if (n == 1) { /* also '^' alone, which a bracket cannot hold */
        qn_str_printf(out, strchr("\\.[](){}*+?|^$", only) ? "\\%c" : "%c", only);
        return;
    }
    qn_str_printf(out, "[%s", s->has[']'] ? "]" : "");
    for (int c = 1; c < 128; c++)
        if (s->has[c] && !strchr("]-[^", c))
            qn_str_printf(out, "%c", c);
    qn_str_printf(out, "%s%s%s]", s->has['['] ? "[" : "", s->has['^'] ? "^" : "",
                  s->has['-'] ? "-" : "");
}

/* From behind '['; NULL: a form that is not taken. */
static const char *read_class(const char *p, Set *s)
{
    bool opposite = *p == '^', first = true;
    int last = -1; /* what a range may begin with */
    p += opposite;
    for (; *p && (*p != ']' || first); first = false) {
        int c = (unsigned char)*p++;
        if (c == '[' && *p == ':')
            return NULL;
        if (c == '-' && last >= 0 && *p && *p != ']') {
            int to = (unsigned char)*p++;
            if (to == '\\' && (to = *p ? escaped(*p++) : -1) < 0)
                return NULL;
            if (to < last || to == '[')
                return NULL;
            add_range(s, last, to);
            last = -1;
            continue;
        }
        if (c == '\\') {
            char e = *p ? *p++ : '0';
            if (add_named(s, e)) {
                last = -1;
                continue;
            }
            if ((c = escaped(e)) < 0)
                return NULL;
        }
        s->has[c] = true;
        last = c;
    }
    for (int i = 1; opposite && i < 128; i++)
        s->has[i] = !s->has[i];
    bool any = false;
    for (int i = 1; i < 128; i++)
        any |= s->has[i];
    return *p == ']' && any ? p + 1 : NULL;
}

/* From behind '\\'. */
static const char *put_escape(const char *p, QnStr *out)
{
    Set s = { 0 };
    char c = *p++;
    if (c == 'b' || c == 'B') /* the C library's extension; where it has none, it says so */
        qn_str_printf(out, "\\%c", c);
    else if (c && add_named(&s, c))
        print_set(out, &s);
    else if (c && escaped(c) > 0) {
        s.has[escaped(c)] = true;
        print_set(out, &s);
    } else {
        return NULL;
    }
    return p;
}

static const char *put_next(const char *p, QnStr *out)
{
    Set s = { 0 };
    char c = *p++;
    switch (c) {
    case '\\': return put_escape(p, out);
    case '[':
        if ((p = read_class(p, &s)))
            print_set(out, &s);
        return p;
    case '.': qn_str_printf(out, "[^\n]"); return p;
    case '(':
        if (*p == '?' && p[1] == ':')
            p += 2;
        qn_str_printf(out, "(");
        return *p == '?' || *p == '*' || *p == '+' ? NULL : p;
    case '*':
    case '+':
    case '?': qn_str_printf(out, "%c", c); break;
    case '{':
        qn_str_printf(out, "{");
        if (!strspn(p, "0123456789"))
            return NULL;
        while (strchr("0123456789,", *p) && *p)
            qn_str_printf(out, "%c", *p++);
        if (*p++ != '}')
            return NULL;
        qn_str_printf(out, "}");
        break;
    default: qn_str_printf(out, "%c", c); return p;
    }
    p += *p == '?'; /* the fewest instead of the most: the same language */
    return *p == '*' || *p == '+' || *p == '?' || *p == '{' ? NULL : p;
}

/* Repeated repetitions multiply; the C library would write them all out. */
static bool repeats_too_much(QnText from)
{
    enum { MOST = 10000 };
    int64_t all = 1;
    for (size_t i = 0; i < from.n; i++) {
        int64_t count = 0, largest = 1;
        if (from.s[i] != '{')
            continue;
        for (i++; i < from.n && from.s[i] != '}'; i++) {
            char c = from.s[i];
            count = c >= '0' && c <= '9' && count <= MOST ? 10 * count + (c - '0') : 0;
            largest = QN_MAX(largest, count);
        }
        all *= largest;
        if (all > MOST)
            return true;
    }
    return false;
}

/* The C library walks parentheses by recursion. */
static bool nests_too_deep(QnText from)
{
    int open = 0;
    for (size_t i = 0; i < from.n && open <= DEPTH_MOST; i++)
        open += from.s[i] == '(';
    return open > DEPTH_MOST;
}

static QnStatus translate(const QnOnnxNode *n, QnText from, QnStr *out)
{
    if (from.n > LENGTH_MOST || nests_too_deep(from))
        return qn_onnx_refuse(n, "a pattern of over %d signs or %d parentheses", LENGTH_MOST,
                              DEPTH_MOST);
    char *text = qn_arena_alloc(n->arena, from.n + 1); /* an attribute has no zero at its end */
    if (!text)
        return QN_ENOMEM;
    memcpy(text, from.s, from.n);
    if (memchr(from.s, 0, from.n))
        return qn_onnx_refuse(n, "a pattern with a zero byte");
    for (size_t i = 0; i < from.n; i++)
        if ((unsigned char)from.s[i] > 127)
            return qn_onnx_refuse(n, "a pattern beyond ASCII");
    if (repeats_too_much(from))
        return qn_onnx_refuse(n, "a pattern with more than 10000 repetitions in all");
    qn_str_printf(out, "^(");
    for (const char *p = text; *p;)
        if (!(p = put_next(p, out)))
            return qn_onnx_refuse(n, "the pattern '%.*s' has forms that are not supported",
                                  (int)QN_MIN(from.n, 200), from.s);
    qn_str_printf(out, ")$");
    return out->st;
}

static QnStatus match_all(QnOnnxNode *n, const QnTensor *x, const regex_t *regex)
{
    QnTensor *y = qn_onnx_tensor(n, QN_DTYPE_BOOL, &x->type.shape);
    if (!y)
        return QN_ENOMEM;
    for (int64_t i = 0; i < qn_shape_count(&x->type.shape); i++) {
        QnText t = x->text[i];
        char *s = qn_arena_alloc(n->arena, t.n + 1);
        if (!s)
            return QN_ENOMEM;
        for (size_t k = 0; k < t.n; k++) {
            s[k] = t.s[k];
            if (s[k] == '\0' || (unsigned char)s[k] > 127)
                return qn_onnx_refuse(n, "strings beyond ASCII, or with zero bytes");
        }
        ((bool *)(uintptr_t)y->data)[i] = regexec(regex, s, 0, NULL, 0) == 0;
    }
    return qn_onnx_out_known(n, 0, y);
}

static QnStatus import_match(QnOnnxNode *n)
{
    const QnOnnxAttr *pattern = qn_onnx_attr(n, "pattern");
    char why[200];
    regex_t regex;
    QnStr posix = { 0 };
    QN_ONNX_NEED(n, 0);
    if (!pattern || pattern->kind != QN_ONNX_STRING)
        return qn_fail(QN_EFORMAT, "attribute 'pattern' is missing");
    if (!n->in[0]->known->text)
        return qn_fail(QN_EDTYPE, "input 0 must hold strings");
    QnStatus st = translate(n, pattern->s, &posix);
    if (st == QN_OK) {
        int code = regcomp(&regex, qn_str_text(&posix), REG_EXTENDED | REG_NOSUB);
        if (code) {
            regerror(code, &regex, why, sizeof why);
            st = qn_onnx_refuse(n, "the pattern '%.*s': %s", (int)QN_MIN(pattern->s.n, 200),
                                pattern->s.s, why);
        } else {
            st = match_all(n, n->in[0]->known, &regex);
            regfree(&regex);
        }
    }
    qn_str_fini(&posix);
    return st;
}

const QnOnnxMap qn_onnx_regex[] = {
    { "RegexFullMatch", NULL, 20, 0, import_match, NULL },
    { 0 },
};
