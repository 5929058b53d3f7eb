/* labels: io */
#include "temp.h"

#include <math.h>

#include "base/str.h"
#include "io/csv.h"

static QnStatus parse(QnCsvOptions o, const char *text, QnDataset **train, QnDataset **test)
{
    o.path = o.path ? o.path : "t.csv";
    return qn_csv_parse(&o, text, strlen(text), NULL, 0, train, test);
}

/* Opens all of it as training data; x must hold every feature. */
static QnDataset *open_all(QnCsvOptions o, const char *text)
{
    QnDataset *a = NULL, *b = NULL;
    assert_ok(parse(o, text, &a, &b));
    assert_null(b);
    return a;
}

static void test_names_quotes_and_line_ends(void **state)
{
    QnDataset *ds =
        open_all((QnCsvOptions){ .target = "kind" }, "\xef\xbb\xbf\"size, cm\",kind,\"w\"\"t\"\r\n"
                                                     "1.5,\"a, b\",-2e1\r\n\r\n"
                                                     "\"2\" , c ,+.5");
    float x[2];
    int64_t y;
    assert_int_equal(qn_dataset_count(ds), 2);
    assert_string_equal(qn_csv_feature_name(ds, 0), "size, cm");
    assert_string_equal(qn_csv_feature_name(ds, 1), "w\"t");
    assert_null(qn_csv_feature_name(ds, 2));
    assert_ok(qn_dataset_get(ds, 0, 0, 0, x, &y));
    assert_true(x[0] == 1.5f && x[1] == -20.0f && y == 0);
    assert_ok(qn_dataset_get(ds, 1, 0, 0, x, &y));
    assert_true(x[0] == 2.0f && x[1] == 0.5f && y == 1);
    assert_string_equal(qn_dataset_class_name(ds, 0), "a, b");
    char place[64];
    qn_dataset_place(ds, 1, place, sizeof place);
    assert_string_equal(place, "t.csv:4");
    qn_dataset_free(ds);
}

static void test_header_of_counts(void **state)
{
    QnDataset *ds = open_all((QnCsvOptions){ 0 }, "3,2,bad,good\n1,2,1\n3,4,0\n5,6,1\n");
    float x[2];
    int64_t y;
    assert_int_equal(qn_dataset_count(ds), 3);
    assert_int_equal(qn_dataset_spec(ds)->class_count, 2);
    assert_string_equal(qn_dataset_class_name(ds, 1), "good");
    assert_ok(qn_dataset_get(ds, 1, 0, 0, x, &y));
    assert_true(x[0] == 3 && x[1] == 4 && y == 0);
    qn_dataset_free(ds);
    QnDataset *a, *b;
    assert_fails(parse((QnCsvOptions){ 0 }, "4,2,bad,good\n1,2,1\n3,4,0\n", &a, &b), QN_EFORMAT,
                 "promises 4 rows, the file has 2");
    assert_fails(parse((QnCsvOptions){ 0 }, "2,2,bad,good\n1,2,1\n3,4,2\n", &a, &b), QN_EFORMAT,
                 "t.csv:3: class 2");
    ds =
        open_all((QnCsvOptions){ .regression = true }, "2,2,\n\"A\",\"B\",\"C\"\n1,2,3\n4,5,6.5\n");
    assert_string_equal(qn_csv_feature_name(ds, 1), "B"); /* counts, then names */
    float t;
    assert_ok(qn_dataset_get_label(ds, 1, &t));
    assert_true(t == 6.5f);
    qn_dataset_free(ds);
}

static void test_no_header_and_other_delimiters(void **state)
{
    float x[3];
    int64_t y;
    QnDataset *ds = open_all((QnCsvOptions){ 0 }, "1;2;7\n3;4;9\n5;6;7\n");
    assert_int_equal(qn_dataset_count(ds), 3);
    assert_string_equal(qn_dataset_class_name(ds, 1), "9"); /* whole numbers become 0, 1, … */
    assert_ok(qn_dataset_get(ds, 1, 0, 0, x, &y));
    assert_int_equal(y, 1);
    qn_dataset_free(ds);
    ds = open_all((QnCsvOptions){ .target = "0" }, " 1  2   3.5\n2\t5 6 \n");
    assert_ok(qn_dataset_get(ds, 0, 0, 0, x, &y));
    assert_true(x[0] == 2 && x[1] == 3.5f && y == 0);
    qn_dataset_free(ds);
    ds = open_all((QnCsvOptions){ .target = "b,c", .regression = true, .drop = "a" },
                  "a\tb\tc\td\nx\t1\t2\t3\n");
    float t[2];
    assert_ok(qn_dataset_get(ds, 0, 0, 0, x, t));
    assert_true(x[0] == 3 && t[0] == 1 && t[1] == 2);
    assert_int_equal(qn_dataset_spec(ds)->x_dims[0], 1);
    qn_dataset_free(ds);
}

static void test_targets_in_their_own_file(void **state)
{
    const char *x_text = "1 2\n3 4\n5 6\n", *y_text = "1.5e+02\n7.5e+01\n1.0e+02\n";
    QnCsvOptions o = { .path = "x.csv", .target_path = "y.csv", .regression = true };
    QnDataset *a, *b;
    float x[2], t;
    assert_ok(qn_csv_parse(&o, x_text, strlen(x_text), y_text, strlen(y_text), &a, &b));
    assert_ok(qn_dataset_get(a, 1, 0, 0, x, &t));
    assert_true(x[0] == 3 && x[1] == 4 && t == 75);
    qn_dataset_free(a);
    assert_fails(qn_csv_parse(&o, x_text, strlen(x_text), y_text, 16, &a, &b), QN_EFORMAT,
                 "y.csv: 2 targets, but x.csv has 3 rows");
}

static void test_standardise_by_the_training_part(void **state)
{
    QnStr text = { 0 };
    for (int i = 0; i < 100; i++)
        qn_str_printf(&text, "%d,%d,%d\n", 1000000 + i, 5, i * 3);
    QnCsvOptions o = { .regression = true,
                       .standardize = true,
                       .standardize_target = true,
                       .train_fraction = 0.75,
                       .split_seed = 3 };
    QnDataset *train, *test, *again, *again_test;
    assert_ok(parse(o, qn_str_text(&text), &train, &test));
    assert_int_equal(qn_dataset_count(train), 75);
    assert_int_equal(qn_dataset_count(test), 25);
    double sum = 0, square = 0, mean, deviation, t_mean, t_deviation;
    float x[2], t;
    for (int i = 0; i < 75; i++) {
        assert_ok(qn_dataset_get(train, i, 0, 0, x, &t));
        sum += (double)x[0];
        square += (double)(x[0] * x[0]);
        assert_true(x[1] == 0); /* a constant column */
    }
    assert_true(fabs(sum / 75) < 1e-6);
    assert_true(fabs(square / 75 - 1) < 1e-5);
    qn_csv_feature_scale(test, 0, &mean, &deviation); /* the test part uses the same figures */
    qn_csv_target_scale(test, 0, &t_mean, &t_deviation);
    assert_true(fabs((mean - 1000000) * 3 - t_mean) < 1e-6);
    for (int i = 0; i < 25; i++) {
        assert_ok(qn_dataset_get(test, i, 0, 0, x, &t));
        double raw = (double)x[0] * deviation + mean - 1000000;
        assert_true(fabs(raw - round(raw)) < 1e-4);
        assert_true(fabs((double)t * t_deviation + t_mean - 3 * raw) < 1e-3);
    }
    assert_ok(parse(o, qn_str_text(&text), &again, &again_test)); /* the same seed cuts alike */
    float z[2];
    for (int i = 0; i < 25; i++) {
        assert_ok(qn_dataset_get(test, i, 0, 0, x, &t));
        assert_ok(qn_dataset_get(again_test, i, 0, 0, z, &t));
        assert_true(x[0] == z[0]);
    }
    qn_dataset_free(train);
    qn_dataset_free(test);
    qn_dataset_free(again);
    qn_dataset_free(again_test);
    qn_str_fini(&text);
}

static void test_for_prediction(void **state)
{
    const double mean[] = { 1, 10 }, deviation[] = { 2, 5 };
    QnCsvOptions o = { .target = "kind",
                       .standardize = true,
                       .no_target = true,
                       .given_count = 2,
                       .given_mean = mean,
                       .given_deviation = deviation };
    static const char *const texts[] = { "a,b\n5,20\n", "a,kind,b\n5,x,20\n", "5 20\n" };
    QnDataset *a, *b;
    float x[2];
    for (int i = 0; i < 3; i++) { /* the target may be there or not */
        a = open_all(o, texts[i]);
        assert_int_equal(qn_dataset_spec(a)->y_kind, QN_LABEL_NONE);
        assert_ok(qn_dataset_get(a, 0, 0, 0, x, NULL));
        assert_true(x[0] == 2 && x[1] == 2);
        qn_dataset_free(a);
    }
    o.target = NULL; /* the last column, where there is one too many */
    a = open_all(o, "5,20\n7,20\n");
    qn_dataset_free(a);
    a = open_all(o, "5,20,1\n7,20,0\n");
    assert_ok(qn_dataset_get(a, 1, 0, 0, x, NULL));
    assert_true(x[0] == 3 && x[1] == 2);
    qn_dataset_free(a);
    assert_fails(parse(o, "5\n7\n", &a, &b), QN_ESHAPE,
                 "1 features, but the model was trained on 2");
    assert_fails(parse(o, "5,6,7,8\n", &a, &b), QN_ESHAPE, "3 features");
}

static void test_missing_values(void **state)
{
    QnDataset *a, *b;
    const char *text = "a,b,c\n1,?,0\n3,4,1\nNA,8,0\n";
    assert_fails(parse((QnCsvOptions){ 0 }, text, &a, &b), QN_EFORMAT, "t.csv:2: b is missing");
    a = open_all((QnCsvOptions){ .fill_missing = true }, text);
    float x[2];
    int64_t y;
    assert_ok(qn_dataset_get(a, 0, 0, 0, x, &y));
    assert_true(x[0] == 1 && x[1] == 6); /* the mean of 4 and 8 */
    assert_ok(qn_dataset_get(a, 2, 0, 0, x, &y));
    assert_true(x[0] == 2 && x[1] == 8);
    qn_dataset_free(a);
    assert_fails(parse((QnCsvOptions){ .fill_missing = true }, "a,b\n1,0\n2,\n", &a, &b),
                 QN_EFORMAT, "t.csv:3: b is missing: a target");
}

static void test_malformed(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "", "the file is empty" },
        { "\n \r\n\n", "the file is empty" },
        { "a,b,c\n1,2,3\n4,5\n", "t.csv:3: byte 12: 2 fields, the first row of data has 3" },
        { "a,b\n1,2\n4,5,6\n", "3 fields" },
        { "a,b\n1,\"2\n4,5\n", "t.csv:2: byte 6: this quote is never closed" },
        { "a,b\n\"1\"x,2\n", "'x' after a closing quote" },
        { "a,b\n1,2\nz,3\n", "t.csv:3: a: 'z' is not a number: drop the column" },
        { "a,b\n1,1.5\n2,2\n", "t.csv:2: b: '1.5' is not a class" },
        { "a,b\n0x10,1\n2,2\n", "'0x10' is not a number" },
        { "a,b\n1e999,1\n2,2\n", "'1e999' is not a number" },
        { "a,b\ninf,1\n2,2\n", "'inf' is not a number" },
        { "7\n8\n", "no column is left as a feature" },
    };
    QnDataset *a, *b;
    for (int i = 0; i < QN_COUNT(cases); i++)
        assert_fails(parse((QnCsvOptions){ 0 }, cases[i].text, &a, &b),
                     i == 11 ? QN_EARG : QN_EFORMAT, cases[i].words);
    QnCsvOptions o = { .path = "t.csv" };
    assert_fails(qn_csv_parse(&o, "a,b\n1,\0\n", 8, NULL, 0, &a, &b), QN_EFORMAT, "byte 6: a zero");
    assert_fails(parse((QnCsvOptions){ .target = "q" }, "a,b\n1,2\n", &a, &b), QN_ENOTFOUND,
                 "there is no column 'q' (the first is 'a', the last 'b')");
    assert_fails(parse((QnCsvOptions){ .target = "2" }, "a,b\n1,2\n", &a, &b), QN_ENOTFOUND,
                 "the file has 2");
    assert_fails(parse((QnCsvOptions){ .target = "a,b" }, "a,b,c\n1,2,3\n", &a, &b), QN_EARG,
                 "2 target columns");
    assert_fails(parse((QnCsvOptions){ .target = "a", .drop = "a" }, "a,b\n1,2\n", &a, &b), QN_EARG,
                 "named twice");
    assert_fails(parse((QnCsvOptions){ .header = QN_CSV_HEADER_NAMES }, "a,b\n", &a, &b),
                 QN_EFORMAT, "no row of data");
    assert_fails(parse((QnCsvOptions){ .train_fraction = 2 }, "a,b\n1,2\n", &a, &b), QN_EARG,
                 "fraction 2");
}

/* The tables of Debian's python3-sklearn, where they are installed. */
static void test_scikit_learn_files(void **state)
{
    const char *folder = getenv("QUERN_SKLEARN_DATA");
    folder = folder ? folder : "/usr/lib/python3/dist-packages/sklearn/datasets/data";
    static const struct {
        const char *file, *target_file;
        bool regression;
        int64_t rows, features, classes;
    } sets[] = { { "breast_cancer.csv", NULL, false, 569, 30, 2 },
                 { "iris.csv", NULL, false, 150, 4, 3 },
                 { "wine_data.csv", NULL, false, 178, 13, 3 },
                 { "digits.csv.gz", NULL, false, 1797, 64, 10 },
                 { "diabetes_data_raw.csv.gz", "diabetes_target.csv.gz", true, 442, 10, 0 },
                 { "linnerud_exercise.csv", "linnerud_physiological.csv", true, 20, 3, 0 },
                 { "boston_house_prices.csv", NULL, true, 506, 13, 0 } };
    int found = 0;
    for (int i = 0; i < QN_COUNT(sets); i++) {
        char path[512], target[512];
        snprintf(path, sizeof path, "%s/%s", folder, sets[i].file);
        snprintf(target, sizeof target, "%s/%s", folder,
                 sets[i].target_file ? sets[i].target_file : "");
#ifndef QN_HAVE_ZLIB
        if (strstr(path, ".gz"))
            continue;
#endif
        if (access(path, R_OK))
            continue;
        QnCsvOptions o = { .path = path,
                           .target_path = sets[i].target_file ? target : NULL,
                           .regression = sets[i].regression };
        QnDataset *a, *b;
        assert_ok(qn_csv_open(&o, &a, &b));
        assert_int_equal(qn_dataset_count(a), sets[i].rows);
        assert_int_equal(qn_dataset_spec(a)->x_dims[0], sets[i].features);
        assert_int_equal(qn_dataset_spec(a)->class_count, sets[i].classes);
        assert_ok(qn_dataset_validate_labels(a, true));
        qn_dataset_free(a);
        found++;
    }
    if (!found)
        skip_because("no %s (Debian's python3-sklearn)", folder);
}
