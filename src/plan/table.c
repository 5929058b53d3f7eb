#include "plan/table.h"

#include "io/csv_lexer.h"

#include <string.h>

enum { MAX_COLUMNS = 64 };

/* One row into cells[MAX_COLUMNS]. */
static QnStatus read_row(QnCsvLexer *l, QnArena *arena, const char **cells, int *n)
{
    QnCsvField f = { 0 };
    for (*n = 0; !f.last; (*n)++) {
        if (*n == MAX_COLUMNS)
            return qn_fail(QN_EFORMAT, "%s:%lld: more than %d columns", l->t->path,
                           (long long)l->line, MAX_COLUMNS);
        QN_TRY(qn_csv_lexer_field(l, &f));
        char *text = qn_arena_alloc(arena, f.size + 1);
        if (!text)
            return QN_ENOMEM;
        memcpy(text, f.text, f.size);
        cells[*n] = text;
    }
    return QN_OK;
}

static QnStatus add_row(QnTable *t, QnArena *arena, const char *const *cells, int n, int64_t line)
{
    if (n != t->n_columns)
        return qn_fail(QN_EFORMAT, "%s:%lld: %d cells in this row, the header names %d columns",
                       t->path, (long long)line, n, t->n_columns);
    const char **copy = qn_arena_copy(arena, cells, (size_t)n * sizeof *cells);
    if (!copy)
        return QN_ENOMEM;
    QN_TRY(QN_GROW(t->row, t->cap_rows, t->n_rows));
    QN_TRY(QN_GROW(t->line, t->cap_lines, t->n_rows));
    t->row[t->n_rows] = copy;
    t->line[t->n_rows++] = line;
    return QN_OK;
}

size_t qn_table_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
}

static QnStatus check_header(const char *path, int64_t line, const char *const *cells, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i && cells[i][0]; k++)
            if (!strcmp(cells[i], cells[k]))
                return qn_fail(QN_EFORMAT, "%s:%lld: two columns are called '%s'", path,
                               (long long)line, cells[i]);
    return QN_OK;
}

QnStatus qn_table_parse(QnTable *t, QnArena *arena, const char *path, const char *text,
                        size_t bytes)
{
    QnCsvTable source = { .path = path, .text = text, .size = bytes, .delimiter = ',' };
    source.text += qn_table_mark(text, bytes);
    source.size -= qn_table_mark(text, bytes);
    QnCsvLexer l = { .t = &source, .line = 1 };
    const char *cells[MAX_COLUMNS];
    QnStatus st = QN_OK;
    *t = (QnTable){ .path = path };
    while (qn_csv_lexer_row(&l)) {
        int n;
        int64_t line = l.line;
        QN_TRY_DONE(read_row(&l, arena, cells, &n));
        if (t->name) {
            QN_TRY_DONE(add_row(t, arena, cells, n, line));
            continue;
        }
        QN_TRY_DONE(check_header(path, line, cells, n));
        t->n_columns = n;
        t->name = qn_arena_copy(arena, cells, (size_t)n * sizeof *cells);
        if (!t->name)
            QN_TRY_DONE(QN_ENOMEM);
    }
    if (!t->name)
        st = qn_fail(QN_EFORMAT, "%s: empty; the first line must name the columns", path);
done:
    qn_free(l.scratch);
    if (st != QN_OK)
        qn_table_fini(t);
    return st;
}

void qn_table_fini(QnTable *t)
{
    qn_free(t->row);
    qn_free(t->line);
    *t = (QnTable){ 0 };
}

QnStatus qn_table_column(const QnTable *t, const char *name, int *column)
{
    for (int i = 0; i < t->n_columns; i++) {
        if (!strcmp(t->name[i], name)) {
            *column = i;
            return QN_OK;
        }
    }
    return qn_fail(QN_EFORMAT, "%s:1: no column '%s' in the header", t->path, name);
}

QnStatus qn_table_number(const QnTable *t, int64_t row, int column, double otherwise, double *out)
{
    const char *text = t->row[row][column];
    QnCsvField f = { .text = text, .size = strlen(text) };
    *out = otherwise;
    if (!f.size || (qn_csv_lexer_number(&f, out) && *out >= 0))
        return QN_OK;
    return qn_fail(QN_EFORMAT, "%s:%lld: column '%s': expected a number of at least 0, found '%s'",
                   t->path, (long long)t->line[row], t->name[column], text);
}

static QnStatus read_value(const QnTable *t, int64_t row, const int column[2], int n,
                           QnTableRange (*range)(int i), double *x)
{
    const char *name = t->row[row][column[0]];
    for (int i = 0; i < n; i++) {
        QnTableRange r = range(i);
        double value;
        if (strcmp(r.name, name) != 0)
            continue;
        QN_TRY(qn_table_number(t, row, column[1], r.start, &value));
        if (value < r.min || value > r.max)
            return qn_fail(QN_EFORMAT, "%s:%lld: %s is %g, out of its range %g to %g", t->path,
                           (long long)t->line[row], r.name, value, r.min, r.max);
        x[i] = value;
        return QN_OK;
    }
    return qn_fail(QN_EFORMAT, "%s:%lld: no coefficient '%s'", t->path, (long long)t->line[row],
                   name);
}

QnStatus qn_table_values(const char *path, const char *text, size_t bytes, int n,
                         QnTableRange (*range)(int i), double *x)
{
    QnTable t = { 0 };
    QnStatus st = QN_OK;
    int column[2] = { 0 };
    QnArena *arena = qn_arena_new();
    QN_TRY_DONE(arena ? qn_table_parse(&t, arena, path, text, bytes) : QN_ENOMEM);
    QN_TRY_DONE(qn_table_column(&t, "coefficient", &column[0]));
    QN_TRY_DONE(qn_table_column(&t, "value", &column[1]));
    for (int64_t row = 0; row < t.n_rows; row++)
        QN_TRY_DONE(read_value(&t, row, column, n, range, x));
done:
    qn_table_fini(&t);
    qn_arena_free(arena);
    return st;
}
