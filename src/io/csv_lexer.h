/* Cuts the text of a table into fields; under csv_table.c. */
#ifndef QN_IO_CSV_LEXER_H
#define QN_IO_CSV_LEXER_H

#include "io/csv_table.h"

typedef struct QnCsvLexer {
    const QnCsvTable *t;
    size_t pos;
    int64_t line;
    char *scratch; /* a quoted field without its quotes */
    int64_t cap;
} QnCsvLexer;

typedef struct QnCsvField {
    const char *text; /* not terminated */
    size_t size;
    bool quoted, last; /* last of its row */
} QnCsvField;

/* Passes empty lines; false at the end of the file. */
bool qn_csv_lexer_row(QnCsvLexer *l);
/* The next field of the row; lives until the next call. The caller frees l->scratch in the end. */
QnStatus qn_csv_lexer_field(QnCsvLexer *l, QnCsvField *f);

/* Empty, NA, NaN, null or ? */
bool qn_csv_lexer_is_missing(const QnCsvField *f);
/* A decimal number that a float can hold. */
bool qn_csv_lexer_number(const QnCsvField *f, double *value);
bool qn_csv_lexer_whole(const QnCsvField *f, int64_t *value);

#endif
