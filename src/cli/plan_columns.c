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
            if (i >= 0 && t->row[i].note && k)
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

/* Takes out columns until the rest fits. */
static void narrow(const QnColumns *t, int64_t width[QN_COLUMNS_MOST], int64_t room)
{
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
            pending += pad;
        if (text[0]) {
            fprintf(out, "%*s%s", (int)pending, "", text);
            pending = 0;
        }
        pending += t->column[k].align == 'r' ? 0 : pad;
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
