#include "base/str.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void qn_str_fini(QnStr *str)
{
    qn_free(str->s);
    *str = (QnStr){ 0 };
}

void qn_str_clear(QnStr *str)
{
    str->n = 0;
    str->st = QN_OK;
    if (str->s)
        str->s[0] = '\0';
}

/* Room for `more` bytes and a NUL. */
static bool reserve(QnStr *str, size_t more)
{
    if (str->st != QN_OK)
        return false;
    size_t need;
    if (qn_add_overflow(str->n, more, &need) || need > SIZE_MAX / 4) {
        str->st = qn_fail(QN_ENOMEM, "a string of more than %zu bytes", SIZE_MAX / 4);
        return false;
    }
    if (need < str->cap)
        return true;
    size_t cap = QN_MAX(need + 1, QN_MAX(str->cap * 2, (size_t)64));
    char *s = qn_realloc(str->s, cap);
    if (!s) {
        str->st = QN_ENOMEM;
        return false;
    }
    str->s = s;
    str->cap = cap;
    return true;
}

void qn_str_add_bytes(QnStr *str, const void *bytes, size_t n)
{
    if (!reserve(str, n))
        return;
    if (n)
        memcpy(str->s + str->n, bytes, n);
    str->n += n;
    str->s[str->n] = '\0';
}

void qn_str_add(QnStr *str, const char *text)
{
    qn_str_add_bytes(str, text, strlen(text));
}

void qn_str_add_repeat(QnStr *str, const char *text, int64_t times)
{
    for (int64_t i = 0; i < times && str->st == QN_OK; i++)
        qn_str_add(str, text);
}

void qn_str_vprintf(QnStr *str, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0)
        str->st = qn_fail(QN_EINTERNAL, "cannot format \"%s\"", fmt);
    else if (reserve(str, (size_t)n)) {
        vsnprintf(str->s + str->n, (size_t)n + 1, fmt, again);
        str->n += (size_t)n;
    }
    va_end(again);
}

void qn_str_printf(QnStr *str, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    qn_str_vprintf(str, fmt, args);
    va_end(args);
}

const char *qn_str_text(const QnStr *str)
{
    return str->s ? str->s : "";
}

QnStatus qn_str_take(QnStr *str, char **text)
{
    if (!str->s)
        qn_str_add(str, "");
    QN_TRY(str->st);
    *text = str->s;
    *str = (QnStr){ 0 };
    return QN_OK;
}

int64_t qn_str_columns(const char *text)
{
    int64_t n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* Three significant digits, never in scientific notation: 1.50, 12.3, 123. */
static void three_digits(char *out, double x, const char *unit)
{
    double a = fabs(x);
    int decimals = a < 9.995 ? 2 : a < 99.95 ? 1 : 0;
    snprintf(out, QN_STR_NUMBER, "%.*f %s", decimals, x, unit);
}

char *qn_str_bytes(char out[QN_STR_NUMBER], uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double x = (double)bytes;
    int u = 0;
    while (x >= 1023.5 && u + 1 < QN_COUNT(units)) {
        x /= 1024;
        u++;
    }
    if (u == 0)
        snprintf(out, QN_STR_NUMBER, "%d B", (int)bytes);
    else
        three_digits(out, x, units[u]);
    return out;
}

char *qn_str_duration(char out[QN_STR_NUMBER], int64_t ns)
{
    double s = (double)ns * 1e-9, a = fabs(s);
    if (a < 0.9995e-6)
        snprintf(out, QN_STR_NUMBER, "%d ns", (int)ns);
    else if (a < 0.9995e-3)
        three_digits(out, s * 1e6, "us");
    else if (a < 0.9995)
        three_digits(out, s * 1e3, "ms");
    else if (a < 59.95)
        three_digits(out, s, "s");
    else {
        const char *sign = s < 0 ? "-" : "";
        int64_t whole = (int64_t)llround(a), minutes = (whole + 30) / 60;
        if (whole < 3600)
            snprintf(out, QN_STR_NUMBER, "%s%dm%02ds", sign, (int)(whole / 60), (int)(whole % 60));
        else if (minutes < 48 * 60)
            snprintf(out, QN_STR_NUMBER, "%s%dh%02dm", sign, (int)(minutes / 60),
                     (int)(minutes % 60));
        else
            snprintf(out, QN_STR_NUMBER, "%s%dd%02dh", sign, (int)(minutes / 1440),
                     (int)(minutes / 60 % 24));
    }
    return out;
}

char *qn_str_si(char out[QN_STR_NUMBER], double x)
{
    static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
    double a = fabs(x);
    int u = 0;
    if (!(a < 1000)) {
        for (; a >= 999.5 && u + 1 < QN_COUNT(units); u++)
            a /= 1000;
    }
    if (u == 0 || !isfinite(x))
        snprintf(out, QN_STR_NUMBER, "%.4g", x);
    else
        three_digits(out, x < 0 ? -a : a, units[u]);
    return out;
}

char *qn_str_unit(char out[QN_STR_NUMBER], double x, const char *unit)
{
    qn_str_si(out, x);
    size_t n = strlen(out);
    bool prefixed = strchr(out, ' ') != NULL;
    snprintf(out + n, QN_STR_NUMBER - n, "%s%s", prefixed ? "" : " ", unit);
    return out;
}

char *qn_str_count(char out[QN_STR_NUMBER], int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < len; i++) {
        out[at++] = digits[i];
        int left = len - 1 - i;
        if (left && left % 3 == 0 && digits[i] != '-')
            out[at++] = ',';
    }
    out[at] = '\0';
    return out;
}

/* Edits (insert, delete, replace) from a to b; words longer than 63 count as far apart. */
static int edit_distance(const char *a, const char *b)
{
    int row[64], n = (int)QN_MIN(strlen(b), (size_t)64);
    if (n > 63 || strlen(a) > 63)
        return 64;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < n; j++) {
            int best = QN_MIN(row[j + 1], row[j]) + 1;
            best = QN_MIN(best, diagonal + (a[i] != b[j]));
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *qn_str_nearest(const char *word, const char *const *known, int n)
{
    const char *nearest = NULL;
    int best = QN_MAX(2, (int)QN_MIN(strlen(word), (size_t)60) / 3);
    for (int i = 0; i < n; i++) {
        int d = edit_distance(word, known[i]);
        if (d <= best) {
            best = d - 1; /* the first of equals stays */
            nearest = known[i];
        }
    }
    return nearest;
}

bool qn_str_is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    while (list && *list) {
        size_t item = strcspn(list, ",");
        if (item == n && !memcmp(list, name, n))
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}
