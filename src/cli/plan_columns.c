#include "cli/plan_columns.h"

#include "base/mem.h"
#include "base/term.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 2 };

QnStr *qn_columns_row(QnColumns *t, QnRowStyle style, const char *note)
{
    if (QN_GROW(t->row, t->cap, t->rows) != QN_OK)
        return NULL;
    QnColumnsRow *row = &t->row[t->rows++];
    *row = (QnColumnsRow){ .style = style, .note = note };
    return row->cell;
}

void qn_columns_fini(QnColumns *t)
{
    for (int64_t i = 0; i < t->rows; i++)
        for (int k = 0; k < t->n; k++)
            qn_str_fini(&t->row[i].cell[k]);
    qn_free(t->row);
    t->row = NULL;
    t->rows = t->cap = 0;
}

static const char *cell(const QnColumns *t, int64_t row, int column)
{
    return row < 0 ? t->column[column].title : qn_str_text(&t->row[row].cell[column]);
}

static void measure(const QnColumns *t, int64_t width[QN_COLUMNS_MOST])
{
    for (int k = 0; k < t->n; k++) {
        bool any = false;
        width[k] = 0;
        for (int64_t i = -1; i < t->rows; i++) {
            any |= i >= 0 && k && t->row[i].last == k;
            if (i >= 0 && k && (t->row[i].note || t->row[i].last == k))
                continue;
            width[k] = QN_MAX(width[k], qn_str_columns(cell(t, i, k)));
            any |= i >= 0 && cell(t, i, k)[0];
        }
        width[k] = any ? width[k] : 0; /* a column of nothing */
    }
}

static int64_t total(const QnColumns *t, const int64_t width[QN_COLUMNS_MOST])
{
    int64_t sum = 0;
    for (int k = 0; k < t->n; k++)
        sum += width[k] ? width[k] + GAP : 0;
    return sum - GAP;
}

/* Shortens the first and takes out columns until the rest fits. */
static void narrow(const QnColumns *t, int64_t width[QN_COLUMNS_MOST], int64_t room)
{
    int64_t whole = width[0];
    if (t->least)
        width[0] = QN_MIN(whole, t->least);
    while (total(t, width) > room) {
        int goes = -1;
        for (int k = 0; k < t->n; k++)
            if (width[k] && t->column[k].give &&
                (goes < 0 || t->column[k].give > t->column[goes].give))
                goes = k;
        if (goes < 0)
            return;
        width[goes] = 0;
    }
    width[0] = QN_MIN(whole, width[0] + room - total(t, width));
}

/* "Apple M2 Ultra (7…:8": what is before a number of devices is cut to so many columns. */
static void print_short(const char *text, int64_t room, FILE *out)
{
    const char *tail = strrchr(text, ':'), *mark = qn_term_unicode() ? "…" : "..";
    if (!tail || strlen(tail) > 6)
        tail = text + strlen(text);
    int64_t taken = 0, left = room - (int64_t)strlen(tail) - qn_str_columns(mark);
    while (text < tail && taken < left) {
        char one[8];
        int n = 1;
        while (n < 6 && ((unsigned char)text[n] & 0xC0) == 0x80) /* the rest of a letter */
            n++;
        snprintf(one, sizeof one, "%.*s", n, text);
        taken += qn_str_columns(one);
        text += n;
        fputs(taken <= left ? one : "", out);
    }
    fprintf(out, "%s%s%*s", mark, tail, (int)QN_MAX(left - taken, 0), "");
}

static void print_row(const QnColumns *t, const int64_t width[QN_COLUMNS_MOST], int64_t row,
                      FILE *out)
{
    const char *note = row < 0 ? NULL : t->row[row].note;
    int64_t pending = 0; /* spaces that only what follows asks for */
    for (int k = 0; k < t->n; k++) {
        if (!width[k])
            continue;
        const char *text = cell(t, row, k);
        int64_t pad = width[k] - qn_str_columns(text);
        if (t->column[k].align == 'r')
            pending += QN_MAX(pad, 0);
        if (text[0]) {
            fprintf(out, "%*s", (int)pending, "");
            pending = 0;
            if (k == 0 && pad < 0)
                print_short(text, width[0], out);
            else
                fputs(text, out);
        }
        if (row >= 0 && k && t->row[row].last == k)
            return;
        pending += t->column[k].align == 'r' ? 0 : QN_MAX(pad, 0);
        pending += GAP;
        if (note) {
            fprintf(out, "%*s%s", (int)pending, "", note);
            return;
        }
    }
}

QnStatus qn_columns_print(const QnColumns *t, FILE *out)
{
    int64_t width[QN_COLUMNS_MOST];
    bool color = qn_term_color(out);
    for (int64_t i = 0; i < t->rows; i++)
        for (int k = 0; k < t->n; k++)
            QN_TRY(t->row[i].cell[k].st);
    measure(t, width);
    if (qn_term_is_tty(out) || getenv("COLUMNS"))
        narrow(t, width, qn_term_width(out));
    for (int64_t i = -1; i < t->rows; i++) {
        QnRowStyle style = i < 0 ? QN_ROW_PLAIN : t->row[i].style;
        const char *on = i < 0                   ? "\033[1m"
                         : style == QN_ROW_BEST  ? "\033[1;32m"
                         : style == QN_ROW_FAINT ? "\033[2m"
                                                 : "";
        fputs(color ? on : "", out);
        print_row(t, width, i, out);
        fputs(color && on[0] ? "\033[0m\n" : "\n", out);
    }
    return QN_OK;
}

/* ---- lines ---- */

/* Prints the words of a line; those after the first line are indented by four. */
static void fold_line(const char *line, size_t n, int room, FILE *out)
{
    char word[256];
    int at = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && line[end] == ' '; end++)
            continue;
        while (end < n && line[end] != ' ')
            end++;
        snprintf(word, sizeof word, "%.*s", (int)QN_MIN(end - i, sizeof word - 1), line + i);
        int wide = (int)qn_str_columns(word);
        if (at > 4 && at + wide > room) {
            at = fprintf(out, "\n    ") - 1;
            wide -= line[i] == ' ';
            i += line[i] == ' ';
        }
        fwrite(line + i, 1, end - i, out);
        at += wide;
    }
}

void qn_columns_fold(const char *text, FILE *out)
{
    bool folds = qn_term_is_tty(out) || getenv("COLUMNS");
    int room = qn_term_width(out);
    for (const char *end; *text; text = *end ? end + 1 : end) {
        char line[1024];
        end = text + strcspn(text, "\n");
        size_t n = (size_t)(end - text);
        snprintf(line, sizeof line, "%.*s", (int)QN_MIN(n, sizeof line - 1), text);
        if (folds && n < sizeof line && !strstr(line, " quern ") && qn_str_columns(line) > room)
            fold_line(line, n, room, out);
        else
            fwrite(text, 1, n, out);
        fputc('\n', out);
    }
}
