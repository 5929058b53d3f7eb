#include "plan/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 }; /* letters that are compared */

/* Letters and digits in lower case; gives their number. */
static int plain(const char *text, char out[MOST + 1])
{
    int n = 0;
    for (; *text && n < MOST; text++)
        if (isalnum((unsigned char)*text))
            out[n++] = (char)tolower((unsigned char)*text);
    out[n] = 0;
    return n;
}

bool qn_name_is(const char *a, const char *b)
{
    char x[MOST + 1], y[MOST + 1];
    return plain(a, x) && plain(b, y) && !strcmp(x, y);
}

bool qn_name_has(const char *name, const char *part)
{
    char x[MOST + 1], y[MOST + 1];
    plain(name, x);
    return plain(part, y) && strstr(x, y);
}

/* Letters that both have in the same order. */
static int common(const char *a, int n_a, const char *b, int n_b)
{
    int row[MOST + 1] = { 0 };
    for (int i = 0; i < n_a; i++) {
        int diagonal = 0;
        for (int k = 0; k < n_b; k++) {
            int above = row[k + 1];
            row[k + 1] = a[i] == b[k] ? diagonal + 1 : QN_MAX(row[k + 1], row[k]);
            diagonal = above;
        }
    }
    return row[n_b];
}

/* 1: the same; words that begin alike are a little nearer. */
static double likeness(const char *a, const char *b)
{
    char x[MOST + 1], y[MOST + 1];
    int n_x = plain(a, x), n_y = plain(b, y);
    if (!n_x || !n_y)
        return 0;
    double both = 2.0 * common(x, n_x, y, n_y) / (n_x + n_y);
    return both + (x[0] == y[0] ? 0.02 : 0) + (strstr(y, x) || strstr(x, y) ? 0.1 : 0);
}

int qn_names_near(const char *word, const char *const *known, int n,
                  const char *near[QN_NAMES_NEAR])
{
    double best[QN_NAMES_NEAR] = { 0 };
    int count = 0;
    for (int i = 0; i < n; i++) {
        double like = likeness(word, known[i]);
        int at = count;
        if (like < 0.6)
            continue;
        while (at > 0 && like > best[at - 1])
            at--;
        if (at == QN_NAMES_NEAR)
            continue;
        count = QN_MIN(count + 1, QN_NAMES_NEAR);
        for (int k = count - 1; k > at; k--) {
            best[k] = best[k - 1];
            near[k] = near[k - 1];
        }
        best[at] = like;
        near[at] = known[i];
    }
    /* what is far behind the best is only noise */
    while (count > 1 && best[count - 1] < best[0] - 0.15)
        count--;
    return count;
}

QnStatus qn_names_unknown(const char *what, const char *word, const char *const *known, int n,
                          const char *list)
{
    const char *near[QN_NAMES_NEAR];
    char text[400];
    int count = qn_names_near(word, known, n, near);
    size_t used = 0;
    if (!count)
        return qn_fail(QN_ENOTFOUND, "no %s '%.80s'; %s", what, word, list);
    for (int i = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s'%s'",
                                 i == 0           ? ""
                                 : i == count - 1 ? " or "
                                                  : ", ",
                                 near[i]);
    return qn_fail(QN_ENOTFOUND, "no %s '%.80s'; did you mean %s?", what, word, text);
}
