/* The numbers of a table, before it is cut into parts; between csv_table.c and csv.c. */
#ifndef QN_IO_CSV_CELLS_H
#define QN_IO_CSV_CELLS_H

#include "io/csv_table.h"

typedef struct QnCsvCells {
    QnArena *arena;
    QnCsvTable features, targets; /* targets.path is NULL: the same file */
    int64_t rows, feature_count, target_count;
    float *x, *y;
    const char **label_texts;
    int64_t *labels, *lines;
    const char **classes;
    int64_t class_count;
} QnCsvCells;

/* Gives every column its role, by the options. */
QnStatus qn_csv_cells_choose(QnCsvCells *t, const QnCsvOptions *o);
/* Reads the cells, and finds the classes. */
QnStatus qn_csv_cells_load(QnCsvCells *t, const QnCsvOptions *o);
void qn_csv_cells_fini(QnCsvCells *t);

#endif
