/* Fails the n-th allocation, open, read … of opening and reading each kind of dataset, for all n:
 * an error or a sound dataset, never a crash or (under ASan) a leak. labels: io */
#include "pack.h"
#include "temp.h"

#include "base/fault.h"
#include "base/mem.h"
#include "io/csv.h"
#include "io/folder.h"
#include "io/idx.h"
#include "io/npy.h"
#include "io/npy_set.h"
#include "io/text.h"
#include "io/yaml.h"

/* Opens, reads one sample, closes. */
typedef QnStatus (*Trial)(const char *path);

static QnStatus read_one(QnDataset *ds)
{
    char x[4096], y[512];
    QnStatus st = qn_dataset_get(ds, 0, 0, 0, x, y);
    qn_dataset_free(ds);
    return st;
}

static QnStatus try_idx(const char *path)
{
    QnDataset *ds;
    QN_TRY(qn_idx_open(&(QnIdxOptions){ .images_path = path }, &ds));
    return read_one(ds);
}

static QnStatus try_csv(const char *path)
{
    QnDataset *train, *test;
    QnCsvOptions o = { .path = path, .standardize = true, .train_fraction = 0.5 };
    QN_TRY(qn_csv_open(&o, &train, &test));
    qn_dataset_free(test);
    return read_one(train);
}

static QnStatus try_text(const char *path)
{
    QnDataset *train, *valid;
    QnVocab *vocab;
    QnTextOptions o = { .path = path, .kind = QN_VOCAB_CHARS, .window = 2, .train_fraction = 0.5 };
    QN_TRY(qn_text_open(&o, &train, &valid, &vocab));
    qn_dataset_free(valid);
    qn_vocab_free(vocab);
    return read_one(train);
}

static QnStatus try_npy(const char *path)
{
    QnDataset *ds;
    QN_TRY(qn_npy_set_open(&(QnNpySetOptions){ .x_path = path, .y_path = path }, &ds));
    return read_one(ds);
}

QN_UNUSED static QnStatus try_folder(const char *path)
{
    QnDataset *ds;
    QN_TRY(qn_folder_open(&(QnFolderOptions){ .path = path, .cache = true }, &ds));
    return read_one(ds);
}

static QnStatus try_split(const char *path)
{
    QnDataset *ds, *a, *b;
    QN_TRY(qn_idx_open(&(QnIdxOptions){ .images_path = path }, &ds));
    QnStatus st = qn_dataset_split(ds, 0.5, 1, &a, &b);
    if (st == QN_OK) {
        qn_dataset_free(a);
        st = read_one(b);
    }
    qn_dataset_free(ds);
    return st;
}

static QnStatus try_yaml(const char *path)
{
    QnYamlDoc *doc;
    char *text = NULL;
    QN_TRY(qn_yaml_open(path, &doc));
    QnStatus st = qn_yaml_set(doc, "a.b.c=3");
    if (st == QN_OK)
        st = qn_yaml_print(qn_yaml_root(doc), &text);
    qn_free(text);
    qn_yaml_free(doc);
    return st;
}

static void fail_each(Trial trial, const char *path, int64_t least)
{
    int64_t failures = 0;
    assert_ok(trial(path));
    for (int64_t n = 1;; n++) {
        qn_error_clear();
        qn_fault_arm(n);
        QnStatus st = trial(path);
        bool over = qn_fault_events() < n;
        qn_fault_arm(0);
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
        if (st == QN_OK)
            continue; /* what failed was only a convenience */
        failures++;
        assert_true(st == QN_ENOMEM || st == QN_EIO);
        assert_int_equal(qn_error_last()->code, st);
    }
    assert_true(failures >= least);
}

static const uint8_t images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4 };

static void test_idx(void **state)
{
    fail_each(try_idx, temp_file("i", images, sizeof images), 6);
    fail_each(try_split, temp_file("i", images, sizeof images), 12);
}

static void test_csv(void **state)
{
    static const char text[] = "\"a\",b,c\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n";
    fail_each(try_csv, temp_file("c", text, sizeof text - 1), 20);
}

static void test_text(void **state)
{
    fail_each(try_text, temp_file("t", "na\xc3\xafve words", 12), 10);
}

static void test_npy(void **state)
{
    const char *path = temp_path("n");
    assert_ok(qn_npy_write(path, QN_DTYPE_I64, 1, (int64_t[]){ 2 }, (int64_t[]){ 0, 1 }));
    fail_each(try_npy, path, 10);
}

static void test_folder(void **state)
{
#ifndef QN_HAVE_PNG
    skip_because("built without libpng");
#else
    uint8_t png[512], pixels[12] = { 0 };
    size_t n = png_pack(pixels, 2, 2, PNG_FORMAT_RGB, png, sizeof png);
    QnStr tar = { 0 };
    tar_add(&tar, "cat/a.png", '0', png, n);
    tar_end(&tar);
    fail_each(try_folder, temp_file("f.tar", tar.s, tar.n), 10);
    qn_str_fini(&tar);
    const char *root = temp_path("f");
    mkdir(root, 0777);
    mkdir(temp_path("f/cat"), 0777);
    temp_file("f/cat/a.png", png, n);
    fail_each(try_folder, root, 15);
#endif
}

static void test_yaml(void **state)
{
    static const char text[] = "{\"a\": {\"x\": [1, 2]}, \"d\": \"e\"}";
    fail_each(try_yaml, temp_file("y", text, sizeof text - 1), 6);
}
