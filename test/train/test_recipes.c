/* The recipes that come with Quern: all are sound, and the small ones learn what they should.
 * labels: train */
#include "toy.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>

#define SKLEARN "/usr/lib/python3/dist-packages/sklearn/datasets/data/"

static QnStatus train_recipe(const char *path, const char *const *settings, int n_settings, Toy *t,
                             QnTrainResult *result)
{
    QnMetrics m = { 0 };
    const QnTrainEvents events = { 0 };
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s && mkdir %s", temp_path("run"), temp_path("run"));
    assert_int_equal(system(command), 0);
    QN_TRY(toy_open(t, path, settings, n_settings, &(QnSessionOptions){ .training = true }));
    QnStatus st =
        qn_train(t->session, &t->data, temp_path("run"), false, qn_clock_ns(), &events, &m, result);
    qn_metrics_close(&m);
    qn_evaluation_fini(&result->last);
    return st;
}

static void test_all_are_sound(void **state)
{
#ifndef QN_HAVE_YAML
    skip_because("built without libyaml");
#else
    int n = 0;
    DIR *d = opendir("recipes");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[300];
        QnRecipe *r;
        if (!strstr(e->d_name, ".yaml"))
            continue;
        snprintf(path, sizeof path, "recipes/%s", e->d_name);
        assert_ok(qn_recipe_open(path, NULL, 0, &r));
        /* the file is named as the run will be */
        assert_int_equal(strncmp(r->name, e->d_name, strlen(r->name)), 0);
        assert_string_equal(e->d_name + strlen(r->name), ".yaml");
        qn_recipe_free(r);
        n++;
    }
    closedir(d);
    assert_true(n >= 6);
#endif
}

static void test_breast_cancer(void **state)
{
    static const char *const seeds[] = { "train.seed=0", "train.seed=1", "train.seed=2" };
#ifndef QN_HAVE_YAML
    skip_because("built without libyaml");
#endif
    if (access(SKLEARN "breast_cancer.csv", R_OK) < 0)
        skip_because("no breast_cancer.csv (Debian's python3-sklearn)");
    double mean = 0;
    for (int i = 0; i < QN_COUNT(seeds); i++) {
        Toy t;
        QnTrainResult r;
        assert_ok(train_recipe("recipes/breast-cancer.yaml", &seeds[i], 1, &t, &r));
        mean += r.last.accuracy / QN_COUNT(seeds);
        if (i == 0)
            assert_true(r.last.accuracy >= 0.95);
        toy_close(&t);
    }
    assert_true(mean >= 0.95);
}

/* Least squares by the normal equations: (n+1) weights of n features, the last one the constant. */
static void solve(const QnDataset *ds, int n, double *w)
{
    double a[16][17] = { { 0 } };
    for (int64_t i = 0; i < ds->count; i++) {
        float x[16], y;
        assert_ok(qn_dataset_get(ds, i, 0, 0, x, &y));
        x[n] = 1;
        for (int r = 0; r <= n; r++) {
            for (int c = 0; c <= n; c++)
                a[r][c] += (double)x[r] * (double)x[c];
            a[r][n + 1] += (double)x[r] * (double)y;
        }
    }
    for (int p = 0; p <= n; p++) {
        for (int r = 0; r <= n; r++) {
            double f = r == p ? 0 : a[r][p] / a[p][p];
            for (int c = p; c <= n + 1; c++)
                a[r][c] -= f * a[p][c];
        }
    }
    for (int p = 0; p <= n; p++)
        w[p] = a[p][n + 1] / a[p][p];
}

static double r_squared(const QnDataset *ds, int n, const double *w)
{
    double sum = 0, squares = 0, error = 0;
    for (int64_t i = 0; i < ds->count; i++) {
        float x[16], y;
        assert_ok(qn_dataset_get(ds, i, 0, 0, x, &y));
        double out = w[n];
        for (int k = 0; k < n; k++)
            out += w[k] * (double)x[k];
        sum += (double)y;
        squares += (double)y * (double)y;
        error += (out - (double)y) * (out - (double)y);
    }
    return 1 - error / (squares - sum * sum / (double)ds->count);
}

/* Descent comes to where least squares lies. */
static void test_diabetes(void **state)
{
    Toy t;
    QnTrainResult r;
#ifndef QN_HAVE_YAML
    skip_because("built without libyaml");
#endif
#ifndef QN_HAVE_ZLIB
    skip_because("built without zlib");
#endif
    if (access(SKLEARN "diabetes_data_raw.csv.gz", R_OK) < 0)
        skip_because("no diabetes_data_raw.csv.gz (Debian's python3-sklearn)");
    assert_ok(train_recipe("recipes/diabetes.yaml", NULL, 0, &t, &r));
    double w[16];
    assert_int_equal(t.data.train->spec.x_dims[0], 10);
    assert_int_equal(t.data.train->count + t.data.test->count, 442);
    solve(t.data.train, 10, w);
    double best = r_squared(t.data.test, 10, w);
    print_message("diabetes: R2 %.4f, least squares %.4f\n", r.last.r2, best);
    assert_true(best > 0.3 && fabs(r.last.r2 - best) < 0.02);
    toy_close(&t);
}
