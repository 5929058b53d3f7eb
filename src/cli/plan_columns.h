/* Tables for people: columns that line up, and give way where the terminal is narrow. */
#ifndef QN_CLI_PLAN_COLUMNS_H
#define QN_CLI_PLAN_COLUMNS_H

#include "base/str.h"

#include <stdio.h>

typedef struct QnColumn {
    const char *title;
    char align; /* l or r */
    int give;   /* where it is narrow, the largest go first; 0: stays */
} QnColumn;

typedef enum QnRowStyle { QN_ROW_PLAIN, QN_ROW_BEST, QN_ROW_FAINT } QnRowStyle;

enum { QN_COLUMNS_MOST = 16 };

typedef struct QnColumnsRow {
    QnStr cell[QN_COLUMNS_MOST];
    QnRowStyle style;
    const char *note; /* stands in place of all cells but the first; or NULL */
    int last;         /* this cell is the row's last, and may be wider than its column; 0: none */
} QnColumnsRow;

typedef struct QnColumns {
    const QnColumn *column;
    int n;
    int least; /* where it is narrow, the first column is shortened to so much; 0: it stays */
    QnColumnsRow *row;
    int64_t rows, cap;
} QnColumns;

/* The cells of a new row, empty; NULL: no memory. */
QnStr *qn_columns_row(QnColumns *t, QnRowStyle style, const char *note);
/* Colours on terminals alone. Elsewhere all columns are printed unless COLUMNS is set. */
QnStatus qn_columns_print(const QnColumns *t, FILE *out);
void qn_columns_fini(QnColumns *t);
/* Text of whole lines: where a line is wider than the terminal it goes on below, unless it names a
 * command of quern, which is to be copied. Elsewhere as it is, unless COLUMNS is set. */
void qn_columns_fold(const char *text, FILE *out);

#endif
