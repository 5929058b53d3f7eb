/* Tables of text with a header, read strictly: the planner's data. */
#ifndef QN_PLAN_TABLE_H
#define QN_PLAN_TABLE_H

#include "base/mem.h"

typedef struct QnTable {
    const char *path; /* for messages */
    int n_columns;
    int64_t n_rows, cap_rows;
    const char **name; /* of columns */
    const char ***row; /* cells, "" where empty */
    int64_t *line;     /* of rows, for messages */
    int64_t cap_lines;
} QnTable;

/* Bytes of the mark of UTF-8 that spreadsheets put at the beginning: 3 or 0. */
size_t qn_table_mark(const char *text, size_t bytes);
/* The text is borrowed during the call; cells live in the arena. Every row must have as many cells
 * as the header. rows and lines are freed by qn_table_fini. */
QnStatus qn_table_parse(QnTable *t, QnArena *arena, const char *path, const char *text,
                        size_t bytes);
void qn_table_fini(QnTable *t);
/* The column of that name, or an error that lists what there is. */
QnStatus qn_table_column(const QnTable *t, const char *name, int *column);
/* A number of at least 0; empty gives `otherwise`. An error names file, line and column. */
QnStatus qn_table_number(const QnTable *t, int64_t row, int column, double otherwise, double *out);

/* What a named number of a table may be. */
typedef struct QnTableRange {
    char name[64];
    double start, min, max; /* start: where its cell is empty */
} QnTableRange;
/* Numbers by name, from a table with columns coefficient and value, into x[0..n); what it does not
 * name is left as it is. An error names file and line of an unknown name or what is out of range.
 */
QnStatus qn_table_values(const char *path, const char *text, size_t bytes, int n,
                         QnTableRange (*range)(int i), double *x);

#endif
