/* Tables of numbers as text: comma, semicolon, tab or blank separated, quoted fields, CRLF or LF,
 * with or without a header, plain or gzip; cut into training and test part by a seeded shuffle. */
#ifndef QN_IO_CSV_H
#define QN_IO_CSV_H

#include "io/dataset.h"

typedef enum QnCsvHeader {
    QN_CSV_HEADER_AUTO,
    QN_CSV_HEADER_NONE,
    QN_CSV_HEADER_NAMES,  /* the first row names the columns */
    QN_CSV_HEADER_COUNTS, /* scikit-learn's: samples, features, class names…; a row of names may
                           * follow */
} QnCsvHeader;

/* All zero, with a path: everything found out from the file, the last column is the class. */
typedef struct QnCsvOptions {
    const char *path;
    const char
        *target_path; /* NULL: targets are columns of `path`; else all columns of this file */
    char delimiter;   /* 0: found out from the first line; ' ': any run of blanks */
    QnCsvHeader header;
    const char *target; /* names or numbers (from 0, negative from the end) separated by commas;
                         * NULL: the last column. A class target is one column */
    const char *drop;   /* columns left out, written likewise; NULL: none */
    bool regression;    /* targets are numbers, else classes */
    bool standardize;   /* features to mean 0, deviation 1, by the training part's figures */
    bool standardize_target;
    bool fill_missing;     /* empty, NA, NaN or ? become the training part's mean; else an error */
    double train_fraction; /* 0 or 1: everything is training */
    uint64_t split_seed;
    /* For prediction: the file may lack its target columns (they are left out if they are there),
     * and features are scaled by the figures of the training, not their own. */
    bool no_target;
    int64_t given_count; /* features that the model takes; 0: whatever is there */
    const double *given_mean, *given_deviation; /* given_count each, or NULL */
} QnCsvOptions;

/* *test is NULL where everything is training. */
QnStatus qn_csv_open(const QnCsvOptions *options, QnDataset **train, QnDataset **test);
/* The same from memory; target_text is NULL without target_path. Paths are for messages. */
QnStatus qn_csv_parse(const QnCsvOptions *options, const char *text, size_t size,
                      const char *target_text, size_t target_size, QnDataset **train,
                      QnDataset **test);

/* Name of feature i ("column 3" where the file names none); NULL if out of range, or if
 * qn_csv_open did not make the dataset. */
const char *qn_csv_feature_name(const QnDataset *ds, int64_t i);
/* Subtracted from and divided into feature i (0 and 1 without standardize), of a dataset that
 * qn_csv_open made. */
void qn_csv_feature_scale(const QnDataset *ds, int64_t i, double *mean, double *deviation);
void qn_csv_target_scale(const QnDataset *ds, int64_t i, double *mean, double *deviation);

#endif
