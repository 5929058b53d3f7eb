#include "io/csv_lexer.h"
#include "io/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static bool at_blank(const QnCsvLexer *l)
{
    return l->pos < l->t->size && (l->t->text[l->pos] == ' ' || l->t->text[l->pos] == '\t');
}

static bool at_line_end(const QnCsvLexer *l)
{
    return l->pos >= l->t->size || l->t->text[l->pos] == '\n' || l->t->text[l->pos] == '\r';
}

static void skip_line_end(QnCsvLexer *l)
{
    const QnCsvTable *t = l->t;
    if (l->pos < t->size && t->text[l->pos] == '\r')
        l->pos++;
    if (l->pos < t->size && t->text[l->pos] == '\n')
        l->pos++;
    l->line++;
}

bool qn_csv_lexer_row(QnCsvLexer *l)
{
    while (l->pos < l->t->size) {
        size_t start = l->pos;
        while (at_blank(l) && l->t->delimiter != '\t')
            l->pos++;
        if (!at_line_end(l)) {
            if (l->t->delimiter != ' ')
                l->pos = start;
            return true;
        }
        if (l->pos < l->t->size)
            skip_line_end(l);
    }
    return false;
}

static QnStatus quoted_field(QnCsvLexer *l, QnCsvField *f)
{
    const QnCsvTable *t = l->t;
    size_t start = l->pos++;
    int64_t start_line = l->line, n = 0;
    for (;; n++) {
        if (l->pos >= t->size)
            return qn_fail(QN_EFORMAT, "%s:%" PRId64 ": byte %zu: this quote is never closed",
                           t->path, start_line, start);
        char c = t->text[l->pos++];
        if (c == '"') {
            if (l->pos >= t->size || t->text[l->pos] != '"')
                break;
            l->pos++;
        }
        if (c == '\n')
            l->line++;
        QN_TRY(QN_GROW(l->scratch, l->cap, n));
        l->scratch[n] = c;
    }
    *f = (QnCsvField){ .text = n ? l->scratch : "", .size = (size_t)n, .quoted = true };
    return QN_OK;
}

QnStatus qn_csv_lexer_field(QnCsvLexer *l, QnCsvField *f)
{
    const QnCsvTable *t = l->t;
    if (t->delimiter != '\t')
        while (at_blank(l))
            l->pos++;
    if (l->pos < t->size && t->text[l->pos] == '"') {
        QN_TRY(quoted_field(l, f));
    } else {
        size_t start = l->pos;
        while (!at_line_end(l) && t->text[l->pos] != t->delimiter &&
               !(t->delimiter == ' ' && at_blank(l)))
            l->pos++;
        size_t end = l->pos;
        while (end > start && (t->text[end - 1] == ' ' || t->text[end - 1] == '\t'))
            end--;
        *f = (QnCsvField){ .text = t->text + start, .size = end - start };
    }
    while (at_blank(l) && t->delimiter != '\t')
        l->pos++;
    f->last = at_line_end(l);
    if (f->last) {
        if (l->pos < t->size)
            skip_line_end(l);
        return QN_OK;
    }
    if (t->delimiter == ' ')
        return QN_OK; /* the run of blanks is behind us */
    if (t->text[l->pos] != t->delimiter)
        return qn_fail(QN_EFORMAT,
                       "%s:%" PRId64 ": byte %zu: '%c' after a closing quote: quotes inside a "
                       "field are written twice",
                       t->path, l->line, l->pos, t->text[l->pos]);
    l->pos++;
    return QN_OK;
}

bool qn_csv_lexer_is_missing(const QnCsvField *f)
{
    static const char *const words[] = { "", "?", "na", "nan", "n/a", "null" };
    for (int i = 0; i < QN_COUNT(words); i++)
        if (f->size == strlen(words[i]) && !strncasecmp(f->text, words[i], f->size))
            return true;
    return false;
}

bool qn_csv_lexer_number(const QnCsvField *f, double *value)
{
    return qn_number_parse(f->text, f->size, value) && fabs(*value) <= (double)FLT_MAX;
}

bool qn_csv_lexer_whole(const QnCsvField *f, int64_t *value)
{
    double d;
    if (!qn_csv_lexer_number(f, &d) || d != floor(d) || fabs(d) > 9e15)
        return false;
    *value = (int64_t)d;
    return true;
}
