/* Published figures beside throughput: collectives, parallel training, memory, power. Each table
 * is known by its header, and its rows by what the models of many devices predict for them. */
#ifndef QN_PLAN_FIGURES_H
#define QN_PLAN_FIGURES_H

#include "plan/counts.h"
#include "plan/fleet.h"
#include "plan/table.h"

typedef struct QnFigure {
    const char *gpu, *model, *group; /* for groups and hold-outs */
    char name[160];                  /* what it is, for people */
    int64_t line;
    double measured;
    const char *unit;
    const char *reason; /* why it cannot be predicted; NULL: it can */
    void *job;          /* what its kind predicts from */
    double weight;      /* in the fit */
    double predicted;
    double error; /* |predicted - measured| / measured; -1: not expressed */
} QnFigure;

typedef struct QnFigures QnFigures;

typedef struct QnFigureKind {
    const char *name;
    const char *columns; /* of the header, as they stand in it */
    int first, last;     /* coefficients of the fleet that are fitted to it */
    int spread;          /* the coefficient that is its interval */
    double goal;         /* mean error */
    QnStatus (*read)(QnFigures *s, int64_t row, QnFigure *out);
    double (*predict)(const QnFigures *s, const void *job, const QnFleet *f);
} QnFigureKind;

struct QnFigures {
    const QnFigureKind *kind;
    const QnCatalogue *catalogue;
    QnCounts *counts;
    QnArena *arena;
    QnTable table;
    QnFigure *rows;
    int64_t n;
};

extern const QnFigureKind qn_figures_comm, qn_figures_parallel, qn_figures_power, qn_figures_memory;

/* NULL: the text is no such table. */
const QnFigureKind *qn_figures_kind(const char *text, size_t bytes);
/* The catalogue, the counts and the text must outlive the set. */
QnStatus qn_figures_parse(QnFigures *s, const QnFigureKind *kind, const QnCatalogue *c,
                          QnCounts *counts, const char *path, const char *text, size_t bytes);
void qn_figures_fini(QnFigures *s);

/* hold_out: "gpu", "model" or "group": five folds by the hash of that name; NULL: all by f. */
QnStatus qn_figures_score(QnFigures *s, const QnFleet *f, const char *hold_out);
/* f: start values in, fitted out. use[i]: whether row i takes part; NULL: all. */
QnStatus qn_figures_fit(const QnFigures *s, const bool *use, QnFleet *f);

typedef struct QnFigureSum {
    const char *name;
    int64_t n, expressed;
    double mean, median, inside;
} QnFigureSum;
/* Of the rows whose gpu, model or group (key 0, 1, 2) is `name`; NULL: of all. */
QnStatus qn_figures_sum(const QnFigures *s, const QnFleet *f, int key, const char *name,
                        QnFigureSum *out);

/* ---- for the kinds ---- */

/* The text of a cell by its column's name; "" where there is no such column. */
const char *qn_figures_cell(const QnFigures *s, int64_t row, const char *column);
/* A number likewise; an error names the place. Empty gives `otherwise`. */
QnStatus qn_figures_number(const QnFigures *s, int64_t row, const char *column, double otherwise,
                           double *out);

#endif
