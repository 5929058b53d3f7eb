/* Reader under csv.c: text to rows and columns of numbers, each error with file, line and byte. */
#ifndef QN_IO_CSV_TABLE_H
#define QN_IO_CSV_TABLE_H

#include "base/mem.h"
#include "io/csv.h"

/* What becomes of a column. */
enum { QN_CSV_DROP = -1, QN_CSV_FEATURE = -2 }; /* else: number of the target, from 0 */

typedef struct QnCsvColumn {
    const char *name;
    int role;
    int64_t text_line;     /* first line with something that is no number; 0: none */
    const char *text_cell; /* what stood there */
} QnCsvColumn;

typedef struct QnCsvTable {
    const char *path;
    const char *text;
    size_t size;
    char delimiter;
    QnArena *arena; /* names live here; borrowed */
    QnCsvColumn *columns;
    int64_t column_count, row_count;
    const char **classes; /* named by a header of counts */
    int64_t class_count;
    size_t data_pos; /* where the first row of data starts */
    int64_t data_line;
} QnCsvTable;

/* Finds delimiter, header, columns and rows; keeps `text` borrowed. */
QnStatus qn_csv_table_scan(QnCsvTable *t, QnArena *arena, const char *path, const char *text,
                           size_t size, char delimiter, QnCsvHeader header);
/* Column by name or number (negative from the end). */
QnStatus qn_csv_table_find(const QnCsvTable *t, const char *what, int64_t *column);

/* Where the second pass puts the cells. */
typedef struct QnCsvSink {
    float *x; /* rows × features, or NULL */
    int64_t feature_count;
    float *y; /* rows × targets, or NULL */
    int64_t target_count;
    const char **labels; /* rows: target 0 as text, whole numbers in canonical form; or NULL */
    int64_t *lines;      /* rows, or NULL */
    bool allow_missing;  /* NaN in x, else an error */
} QnCsvSink;

QnStatus qn_csv_table_fill(const QnCsvTable *t, const QnCsvSink *sink);

#endif
