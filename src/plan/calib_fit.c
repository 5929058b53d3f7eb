/* Groups of kernels and their coefficients from samples: least squares of the relative error with
 * coefficients of at least 0, large errors weighing as much as their size and not its square. */
#include "plan/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_SAMPLES = 8, ROUNDS = 5, TURNS = 2000 };

#define FLOOR_S 2e-6 /* shorter times are mostly those of the clock */

typedef struct Fit {
    double (*row)[QN_CALIB_FEATURES]; /* features by the measured time, scaled to about 1 */
    double *weight;
    double scale[QN_CALIB_FEATURES];
    int64_t n;
} Fit;

static double residual(const Fit *f, int64_t i, const double *c)
{
    double sum = -1;
    for (int k = 0; k < QN_CALIB_FEATURES; k++)
        sum += c[k] * f->row[i][k];
    return sum;
}

/* Coordinate descent with c >= 0 on the normal equations; each coordinate's best is exact. */
static void descend(const Fit *f, double *c)
{
    double gram[QN_CALIB_FEATURES][QN_CALIB_FEATURES] = { { 0 } }, right[QN_CALIB_FEATURES] = { 0 };
    for (int64_t i = 0; i < f->n; i++) {
        for (int k = 0; k < QN_CALIB_FEATURES; k++) {
            right[k] += f->weight[i] * f->row[i][k];
            for (int j = 0; j < QN_CALIB_FEATURES; j++)
                gram[k][j] += f->weight[i] * f->row[i][k] * f->row[i][j];
        }
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (int k = 0; k < QN_CALIB_FEATURES; k++) {
            double rest = right[k];
            for (int j = 0; j < QN_CALIB_FEATURES; j++)
                rest -= j == k ? 0 : gram[k][j] * c[j];
            c[k] = gram[k][k] > 0 ? QN_MAX(0, rest / gram[k][k]) : 0;
        }
    }
}

static void solve(Fit *f, double *c)
{
    for (int k = 0; k < QN_CALIB_FEATURES; k++)
        c[k] = 0.2;
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t i = 0; i < f->n; i++)
            f->weight[i] = round ? 1 / fmax(0.05, fabs(residual(f, i, c))) : 1;
        descend(f, c);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_error(Fit *f, const double *c)
{
    for (int64_t i = 0; i < f->n; i++)
        f->weight[i] = fabs(log(fmax(0.01, 1 + residual(f, i, c))));
    qsort(f->weight, (size_t)f->n, sizeof *f->weight, by_value);
    return f->n ? f->weight[f->n / 2] : 0;
}

static void set_rows(Fit *f)
{
    for (int k = 0; k < QN_CALIB_FEATURES; k++) {
        double most = 0;
        for (int64_t i = 0; i < f->n; i++)
            most = fmax(most, f->row[i][k]);
        f->scale[k] = most > 0 ? most : 1;
        for (int64_t i = 0; i < f->n; i++)
            f->row[i][k] /= f->scale[k];
    }
}

static bool is_of(const QnWork *w, const char *name)
{
    char names[QN_CALIB_NAMES][QN_CALIB_NAME];
    qn_calib_group_names(w, names);
    for (int i = 0; i < QN_CALIB_NAMES; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Of the samples of that name, unless they are too few. */
static void add_group(QnCalib *c, Fit *f, const QnCalibSample *s, int64_t n, int without,
                      const char *name)
{
    QnCalibGroup *g = &c->groups[c->n_groups];
    f->n = 0;
    for (int64_t i = 0; i < n; i++) {
        if (s[i].net == without || !is_of(&s[i].work, name))
            continue;
        double seconds = fmax(s[i].seconds, FLOOR_S);
        qn_calib_features(c, &s[i].work, f->row[f->n]);
        for (int k = 0; k < QN_CALIB_FEATURES; k++)
            f->row[f->n][k] /= seconds;
        f->n++;
    }
    if (f->n < LEAST_SAMPLES || c->n_groups == QN_CALIB_GROUPS)
        return;
    *g = (QnCalibGroup){ .samples = f->n };
    snprintf(g->name, sizeof g->name, "%.39s", name);
    set_rows(f);
    solve(f, g->c);
    g->error = median_error(f, g->c);
    for (int k = 0; k < QN_CALIB_FEATURES; k++)
        g->c[k] /= f->scale[k];
    c->n_groups++;
}

static bool is_known(const QnCalib *c, const char *name)
{
    for (int i = 0; i < c->n_groups; i++)
        if (!strcmp(c->groups[i].name, name))
            return true;
    return false;
}

QnStatus qn_calib_fit(QnCalib *c, const QnCalibSample *s, int64_t n, int without)
{
    Fit f = { 0 };
    char names[QN_CALIB_NAMES][QN_CALIB_NAME];
    c->n_groups = 0;
    f.row = qn_alloc_array((size_t)n + 1, sizeof *f.row);
    f.weight = qn_alloc_array((size_t)n + 1, sizeof *f.weight);
    QnStatus st = f.row && f.weight ? QN_OK : QN_ENOMEM;
    for (int64_t i = 0; st == QN_OK && i < n; i++) {
        qn_calib_group_names(&s[i].work, names);
        for (int k = 0; k < QN_CALIB_NAMES; k++)
            if (!is_known(c, names[k]))
                add_group(c, &f, s, n, without, names[k]);
    }
    qn_free(f.row);
    qn_free(f.weight);
    return st;
}
