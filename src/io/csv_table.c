#include "io/csv_table.h"
#include "io/csv_lexer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row copied into the arena, for the header. */
typedef struct Row {
    QnCsvField *fields;
    int64_t count, cap;
} Row;

static QnStatus read_row(QnCsvLexer *l, QnArena *arena, Row *row)
{
    row->count = 0;
    QnCsvField f;
    do {
        QN_TRY(qn_csv_lexer_field(l, &f));
        char *copy = qn_arena_alloc(arena, f.size + 1);
        if (!copy)
            return QN_ENOMEM;
        memcpy(copy, f.text, f.size);
        f.text = copy;
        QN_TRY(QN_GROW(row->fields, row->cap, row->count));
        row->fields[row->count++] = f;
    } while (!f.last);
    return QN_OK;
}

static bool row_has_number(const Row *row)
{
    double d;
    for (int64_t i = 0; i < row->count; i++)
        if (qn_csv_lexer_number(&row->fields[i], &d))
            return true;
    return false;
}

/* samples, features, then class names or nothing; `next` has one target more than the features. */
static bool row_is_counts(const Row *row, const Row *next)
{
    int64_t samples, features;
    double d;
    if (row->count < 2 || !qn_csv_lexer_whole(&row->fields[0], &samples) ||
        !qn_csv_lexer_whole(&row->fields[1], &features) || samples < 1 || features < 1)
        return false;
    for (int64_t i = 2; i < row->count; i++)
        if (qn_csv_lexer_number(&row->fields[i], &d))
            return false;
    if (row->count == 2 && next->count == 2)
        return false;
    return features == next->count - 1 || features == next->count;
}

static bool row_is_names(const Row *row, const Row *next)
{
    return !row_has_number(row) && row_has_number(next);
}

static char find_delimiter(const char *text, size_t size)
{
    static const char candidates[] = ",;\t";
    bool quoted = false;
    size_t seen[3] = { 0 };
    for (size_t i = 0; i < size && (quoted || (text[i] != '\n' && text[i] != '\r')); i++) {
        if (text[i] == '"')
            quoted = !quoted;
        for (int c = 0; c < 3 && !quoted; c++)
            seen[c] += text[i] == candidates[c];
    }
    for (int c = 0; c < 3; c++)
        if (seen[c])
            return candidates[c];
    return ' ';
}

static QnStatus take_counts(QnCsvTable *t, const Row *row, int64_t *want_rows)
{
    if (!qn_csv_lexer_whole(&row->fields[0], want_rows) || row->count < 2)
        return qn_fail(QN_EFORMAT,
                       "%s:1: the header should begin with the counts of samples and features",
                       t->path);
    t->classes = qn_arena_array(t->arena, (size_t)row->count, sizeof *t->classes);
    if (!t->classes)
        return QN_ENOMEM;
    for (int64_t i = 2; i < row->count; i++)
        if (row->fields[i].size)
            t->classes[t->class_count++] = row->fields[i].text;
    return QN_OK;
}

static QnStatus name_columns(QnCsvTable *t, const Row *names, int64_t count)
{
    t->column_count = count;
    t->columns = qn_arena_array(t->arena, (size_t)count, sizeof *t->columns);
    if (!t->columns)
        return QN_ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        bool given = names && i < names->count && names->fields[i].size;
        t->columns[i].role = QN_CSV_FEATURE;
        t->columns[i].name =
            given ? names->fields[i].text : qn_arena_printf(t->arena, "column %" PRId64, i);
        if (!t->columns[i].name)
            return QN_ENOMEM;
    }
    return QN_OK;
}

/* Reads up to three rows to tell the header from the data; sets data_pos and columns. */
static QnStatus scan_header(QnCsvTable *t, QnCsvLexer *l, QnCsvHeader header, int64_t *want_rows)
{
    Row rows[3] = { { 0 } };
    size_t start[3];
    int64_t line[3];
    QnStatus st = QN_OK;
    int n = 0, first = 0;
    for (; n < 3 && qn_csv_lexer_row(l); n++) {
        start[n] = l->pos;
        line[n] = l->line;
        QN_TRY_DONE(read_row(l, t->arena, &rows[n]));
    }
    if (!n) {
        st = qn_fail(QN_EFORMAT, "%s: the file is empty", t->path);
        goto done;
    }
    const Row *names = NULL;
    bool is_auto = header == QN_CSV_HEADER_AUTO;
    if (header == QN_CSV_HEADER_COUNTS || (is_auto && n > 1 && row_is_counts(&rows[0], &rows[1]))) {
        QN_TRY_DONE(take_counts(t, &rows[0], want_rows));
        first = 1;
        if (n > 2 && row_is_names(&rows[1], &rows[2])) {
            names = &rows[1];
            first = 2;
        }
    } else if (header == QN_CSV_HEADER_NAMES ||
               (is_auto && n > 1 && row_is_names(&rows[0], &rows[1]))) {
        names = &rows[0];
        first = 1;
    }
    if (first >= n) {
        st = qn_fail(QN_EFORMAT, "%s: there is a header but no row of data", t->path);
        goto done;
    }
    t->data_pos = start[first];
    t->data_line = line[first];
    st = name_columns(t, names, rows[first].count);
done:
    for (int i = 0; i < 3; i++)
        qn_free(rows[i].fields);
    return st;
}

/* First pass: counts rows, checks their width, notes the columns that hold text. */
static QnStatus scan_rows(QnCsvTable *t, QnCsvLexer *l)
{
    l->pos = t->data_pos;
    l->line = t->data_line;
    while (qn_csv_lexer_row(l)) {
        int64_t line = l->line, i = 0;
        size_t start = l->pos;
        QnCsvField f;
        double d;
        do {
            QN_TRY(qn_csv_lexer_field(l, &f));
            QnCsvColumn *c = i < t->column_count ? &t->columns[i] : NULL;
            if (c && !c->text_line && !qn_csv_lexer_number(&f, &d) &&
                !qn_csv_lexer_is_missing(&f)) {
                c->text_line = line;
                c->text_cell = qn_arena_printf(t->arena, "%.*s", (int)QN_MIN(f.size, 40U), f.text);
                if (!c->text_cell)
                    return QN_ENOMEM;
            }
            i++;
        } while (!f.last);
        if (i != t->column_count)
            return qn_fail(QN_EFORMAT,
                           "%s:%" PRId64 ": byte %zu: %" PRId64 " fields, the first row of data "
                           "has %" PRId64 "%s",
                           t->path, line, start, i, t->column_count,
                           l->pos >= t->size ? ": the file may be cut short" : "");
        t->row_count++;
    }
    return QN_OK;
}

QnStatus qn_csv_table_scan(QnCsvTable *t, QnArena *arena, const char *path, const char *text,
                           size_t size, char delimiter, QnCsvHeader header)
{
    *t = (QnCsvTable){ .path = path, .text = text, .size = size, .arena = arena };
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    if (nul)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: a zero byte: a binary file, or text that is not UTF-8", path,
                       (size_t)(nul - text));
    QnCsvLexer l = { .t = t, .line = 1 };
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        l.pos = 3; /* byte order mark */
    t->delimiter = delimiter ? delimiter : find_delimiter(text + l.pos, size - l.pos);
    int64_t want_rows = -1;
    QnStatus st = scan_header(t, &l, header, &want_rows);
    if (st == QN_OK)
        st = scan_rows(t, &l);
    qn_free(l.scratch);
    if (st == QN_OK && want_rows >= 0 && want_rows != t->row_count)
        st = qn_fail(QN_EFORMAT,
                     "%s:1: the header promises %" PRId64 " rows, the file has %" PRId64
                     ": cut short, or not a header of counts",
                     path, want_rows, t->row_count);
    return st;
}

QnStatus qn_csv_table_find(const QnCsvTable *t, const char *what, int64_t *column)
{
    for (int64_t i = 0; i < t->column_count; i++)
        if (!strcmp(t->columns[i].name, what)) {
            *column = i;
            return QN_OK;
        }
    char *end;
    errno = 0;
    long long i = strtoll(what, &end, 10);
    if (end == what || *end || errno)
        return qn_fail(QN_ENOTFOUND,
                       "%s: there is no column '%s' (the first is '%s', the last '%s')", t->path,
                       what, t->columns[0].name, t->columns[t->column_count - 1].name);
    if (i < -t->column_count || i >= t->column_count)
        return qn_fail(QN_ENOTFOUND, "%s: there is no column %lld: the file has %" PRId64, t->path,
                       i, t->column_count);
    *column = i < 0 ? i + t->column_count : i;
    return QN_OK;
}

static QnStatus missing_fail(const QnCsvTable *t, const QnCsvColumn *c, int64_t line, bool feature)
{
    return qn_fail(QN_EFORMAT, "%s:%" PRId64 ": %s is missing: %s", t->path, line, c->name,
                   feature ? "fill it in, drop the column or set fill_missing"
                           : "a target cannot be filled in; remove the row");
}

static QnStatus put_target(const QnCsvTable *t, const QnCsvSink *s, const QnCsvColumn *c,
                           int64_t row, int64_t line, const QnCsvField *f)
{
    double d;
    int64_t whole;
    if (qn_csv_lexer_is_missing(f))
        return missing_fail(t, c, line, false);
    if (s->y) {
        if (!qn_csv_lexer_number(f, &d))
            return qn_fail(QN_EFORMAT, "%s:%" PRId64 ": %s: '%.*s' is not a number", t->path, line,
                           c->name, (int)QN_MIN(f->size, 40U), f->text);
        s->y[row * s->target_count + c->role] = (float)d;
    }
    if (!s->labels)
        return QN_OK;
    if (!c->text_line && !qn_csv_lexer_whole(f, &whole))
        return qn_fail(QN_EFORMAT,
                       "%s:%" PRId64 ": %s: '%.*s' is not a class (a whole number or a name): for "
                       "numbers set the regression target",
                       t->path, line, c->name, (int)QN_MIN(f->size, 40U), f->text);
    s->labels[row] = c->text_line
                         ? qn_arena_printf(t->arena, "%.*s", (int)QN_MIN(f->size, 4096U), f->text)
                         : qn_arena_printf(t->arena, "%" PRId64, whole);
    return s->labels[row] ? QN_OK : QN_ENOMEM;
}

static QnStatus put_feature(const QnCsvTable *t, const QnCsvSink *s, const QnCsvColumn *c,
                            int64_t at, int64_t line, const QnCsvField *f)
{
    double d = NAN;
    if (qn_csv_lexer_is_missing(f) && !s->allow_missing)
        return missing_fail(t, c, line, true);
    if (!qn_csv_lexer_is_missing(f) && !qn_csv_lexer_number(f, &d))
        return qn_fail(QN_EFORMAT, "%s:%" PRId64 ": %s: '%.*s' is not a number", t->path, line,
                       c->name, (int)QN_MIN(f->size, 40U), f->text);
    s->x[at] = (float)d;
    return QN_OK;
}

QnStatus qn_csv_table_fill(const QnCsvTable *t, const QnCsvSink *s)
{
    QnCsvLexer l = { .t = t, .pos = t->data_pos, .line = t->data_line };
    QnStatus st = QN_OK;
    for (int64_t row = 0; qn_csv_lexer_row(&l); row++) {
        int64_t line = l.line, feature = 0;
        if (s->lines)
            s->lines[row] = line;
        for (int64_t i = 0; i < t->column_count; i++) {
            QnCsvField f;
            QN_TRY_DONE(qn_csv_lexer_field(&l, &f));
            const QnCsvColumn *c = &t->columns[i];
            if (c->role >= 0)
                QN_TRY_DONE(put_target(t, s, c, row, line, &f));
            else if (c->role == QN_CSV_FEATURE && s->x)
                QN_TRY_DONE(put_feature(t, s, c, row * s->feature_count + feature++, line, &f));
        }
    }
done:
    qn_free(l.scratch);
    return st;
}
