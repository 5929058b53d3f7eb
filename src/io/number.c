#include "io/number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 128, EXPONENT_MAX = 100000 };

/* A number's parts: digits · 10^exponent. */
typedef struct Parts {
    uint64_t digits;
    int count; /* digits that are in `digits`; more than 19 do not fit */
    int exponent;
    bool negative;
} Parts;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void take_digit(Parts *p, char c)
{
    if (p->count < 19)
        p->digits = p->digits * 10 + (uint64_t)(c - '0');
    p->count += p->digits > 0;
}

static bool take_exponent(const char **s, const char *end, Parts *p)
{
    bool negative = *s < end && **s == '-';
    int e = 0;
    if (*s < end && (**s == '-' || **s == '+'))
        ++*s;
    if (*s == end || !is_digit(**s))
        return false;
    for (; *s < end && is_digit(**s); ++*s)
        e = QN_MIN(e * 10 + (**s - '0'), EXPONENT_MAX);
    p->exponent += negative ? -e : e;
    return true;
}

static bool take_parts(const char *s, const char *end, Parts *p)
{
    bool any = false;
    p->negative = s < end && *s == '-';
    s += s < end && (*s == '-' || *s == '+');
    for (; s < end && is_digit(*s); s++, any = true)
        take_digit(p, *s);
    if (s < end && *s == '.')
        for (s++; s < end && is_digit(*s); s++, any = true) {
            take_digit(p, *s);
            p->exponent--;
        }
    if (!any)
        return false;
    if (s < end && (*s == 'e' || *s == 'E')) {
        s++;
        if (!take_exponent(&s, end, p))
            return false;
    }
    return s == end;
}

/* strtod reads the locale's decimal point, so give it that. */
static double parse_slowly(const char *text, size_t n)
{
    char buffer[NUMBER_BYTES];
    memcpy(buffer, text, n);
    buffer[n] = '\0';
    char *point = strchr(buffer, '.');
    if (point)
        *point = localeconv()->decimal_point[0];
    return strtod(buffer, NULL);
}

bool qn_number_parse(const char *text, size_t n, double *out)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    Parts p = { 0 };
    if (n >= NUMBER_BYTES || !take_parts(text, text + n, &p))
        return false;
    double v;
    if (p.count <= 19 && p.digits <= (uint64_t)1 << 53 && abs(p.exponent) <= 22) {
        /* digits and power are exact, so one operation rounds once: the right result */
        v = (double)p.digits;
        v = p.exponent < 0 ? v / powers[-p.exponent] : v * powers[p.exponent];
        v = p.negative ? -v : v;
    } else {
        v = parse_slowly(text, n);
    }
    if (!isfinite(v))
        return false;
    *out = v;
    return true;
}
