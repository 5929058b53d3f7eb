/* labels: io */
#include "test.h"

#include "base/mem.h"
#include "io/dataset.h"

/* A dataset of n samples: x is (index, epoch + 10 seed), the label what the test says. */
typedef struct Toy {
    QnDataset head;
    int64_t *labels;
} Toy;

static QnStatus toy_label(const QnDataset *ds, int64_t index, void *y)
{
    *(int64_t *)y = ((const Toy *)ds)->labels[index];
    return QN_OK;
}

static QnStatus toy_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y)
{
    ((float *)x)[0] = (float)index;
    ((float *)x)[1] = (float)(epoch + 10 * seed);
    return toy_label(ds, index, y);
}

static const QnDatasetOps toy_ops = { .kind = "toy", .get = toy_get, .label = toy_label };

static QnDataset *toy_new(int64_t *labels, int64_t n)
{
    static const char *const names[] = { "cat", "dog", "cow" };
    Toy *t = qn_alloc(sizeof *t);
    assert_ok(qn_dataset_init(&t->head, &toy_ops, "toys"));
    t->labels = labels;
    t->head.count = n;
    t->head.spec =
        (QnSampleSpec){ .x_rank = 1, .x_dims = { 2 }, .y_kind = QN_LABEL_CLASS, .y_count = 1 };
    assert_ok(qn_dataset_set_classes(&t->head, names, 3));
    return &t->head;
}

static void test_labels_out_of_range_are_named(void **state)
{
    int64_t labels[] = { 0, 2, 1, 3 };
    QnDataset *ds = toy_new(labels, 4);
    assert_fails(qn_dataset_validate_labels(ds, false), QN_EARG, "toys: sample 3: label 3");
    labels[3] = -1;
    assert_fails(qn_dataset_validate_labels(ds, false), QN_EARG, "label -1 is out of range");
    labels[3] = 1;
    assert_ok(qn_dataset_validate_labels(ds, true));
    labels[1] = 0;
    assert_ok(qn_dataset_validate_labels(ds, false));
    assert_fails(qn_dataset_validate_labels(ds, true), QN_EARG, "class 2 (cow) has no sample");
    qn_dataset_free(ds);
}

static void test_index_and_class_names_are_checked(void **state)
{
    int64_t labels[] = { 0, 1, 2 };
    float x[2];
    int64_t y;
    QnDataset *ds = toy_new(labels, 3);
    assert_fails(qn_dataset_get(ds, 3, 0, 0, x, &y), QN_EARG, "sample 3 of 3");
    assert_fails(qn_dataset_get_label(ds, -1, &y), QN_EARG, "sample -1");
    assert_string_equal(qn_dataset_class_name(ds, 1), "dog");
    assert_null(qn_dataset_class_name(ds, 3));
    assert_null(qn_dataset_class_name(ds, -1));
    qn_dataset_free(ds);
}

static void test_skips_are_listed_once_in_order(void **state)
{
    int64_t labels[] = { 0, 1, 2 };
    QnDataset *ds = toy_new(labels, 3);
    const int64_t met[] = { 2, 0, 2, 2, 0 };
    for (int i = 0; i < 5; i++) {
        qn_fail(QN_EFORMAT, "file %d is broken", (int)met[i]);
        assert_ok(qn_dataset_skip_add(ds, met[i]));
    }
    assert_int_equal(qn_dataset_skip_count(ds), 2);
    QnSkip skip;
    assert_ok(qn_dataset_skip_at(ds, 1, &skip));
    assert_int_equal(skip.index, 2);
    assert_string_equal(skip.text, "file 2 is broken");
    qn_free(skip.text);
    assert_fails(qn_dataset_skip_at(ds, 2, &skip), QN_EARG, "skip 2 of 2");
    qn_dataset_free(ds);
}

static void test_split_covers_everything_once(void **state)
{
    int64_t labels[100];
    for (int i = 0; i < 100; i++)
        labels[i] = i % 3;
    QnDataset *ds = toy_new(labels, 100), *a, *b, *c, *d;
    assert_ok(qn_dataset_split(ds, 0.8, 7, &a, &b));
    assert_int_equal(qn_dataset_count(a), 80);
    assert_int_equal(qn_dataset_count(b), 20);
    int seen[100] = { 0 }, moved = 0;
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < qn_dataset_count(part ? b : a); i++) {
            float x[2];
            int64_t y;
            assert_ok(qn_dataset_get(part ? b : a, i, 3, 2, x, &y));
            assert_true(x[1] == 23.0f); /* epoch and seed reach the base */
            assert_int_equal(y, (int64_t)x[0] % 3);
            seen[(int)x[0]]++;
            moved += !part && (int64_t)x[0] != i;
        }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    assert_true(moved > 50);
    assert_ok(qn_dataset_split(ds, 0.8, 7, &c, &d)); /* the same seed splits alike */
    for (int64_t i = 0; i < 80; i++) {
        float x[2], z[2];
        int64_t y;
        assert_ok(qn_dataset_get(a, i, 0, 0, x, &y));
        assert_ok(qn_dataset_get(c, i, 0, 0, z, &y));
        assert_true(x[0] == z[0]);
    }
    assert_fails(qn_dataset_split(ds, 1.0, 7, &c, &d), QN_EARG, "cannot split");
    const int64_t wrong[] = { 3, 100 };
    assert_fails(qn_dataset_subset(ds, wrong, 2, &c), QN_EARG, "sample 100 of 100");
    assert_string_equal(qn_dataset_class_name(b, 2), "cow");
    qn_dataset_free(a);
    qn_dataset_free(b);
    qn_dataset_free(c);
    qn_dataset_free(d);
    qn_dataset_free(ds);
}

static void test_shuffle_depends_on_seed_and_epoch(void **state)
{
    int64_t a[50], b[50];
    qn_dataset_shuffle(a, 50, 1, 0);
    qn_dataset_shuffle(b, 50, 1, 0);
    assert_memory_equal(a, b, sizeof a);
    qn_dataset_shuffle(b, 50, 1, 1);
    assert_memory_not_equal(a, b, sizeof a);
    qn_dataset_shuffle(b, 50, 2, 0);
    assert_memory_not_equal(a, b, sizeof a);
    int64_t sum = 0;
    for (int i = 0; i < 50; i++)
        sum += a[i] * a[i];
    assert_int_equal(sum, 40425); /* the squares of 0 … 49 */
}
