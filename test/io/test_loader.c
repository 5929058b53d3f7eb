/* labels: io threads */
#include "test.h"

#include <stdatomic.h>
#include <time.h>

#include "base/fault.h"
#include "base/mem.h"
#include "io/loader.h"

/* x = (index, epoch), y = index; samples in `broken` fail. */
typedef struct Toy {
    QnDataset head;
    int64_t broken[4];
    int broken_count;
    bool slow;
} Toy;

static QnStatus toy_label(const QnDataset *ds, int64_t index, void *y)
{
    *(int64_t *)y = index;
    return QN_OK;
}

static QnStatus toy_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y)
{
    const Toy *t = (const Toy *)ds;
    for (int i = 0; i < t->broken_count; i++)
        if (t->broken[i] == index)
            return qn_fail(QN_EFORMAT, "toy %d is broken", (int)index);
    if (t->slow) /* so that workers finish in another order than they began */
        nanosleep(&(struct timespec){ .tv_nsec = (index * 7919 % 13) * 20000 }, NULL);
    ((float *)x)[0] = (float)index;
    ((float *)x)[1] = (float)epoch;
    return toy_label(ds, index, y);
}

static const QnDatasetOps toy_ops = { .kind = "toy", .get = toy_get, .label = toy_label };

static Toy *toy_new(int64_t n)
{
    Toy *t = qn_alloc(sizeof *t);
    assert_ok(qn_dataset_init(&t->head, &toy_ops, "toys"));
    t->head.count = n;
    t->head.spec = (QnSampleSpec){
        .x_rank = 1, .x_dims = { 2 }, .y_kind = QN_LABEL_CLASS, .y_count = 1, .class_count = n
    };
    return t;
}

static void test_unshuffled_with_a_short_last_batch(void **state)
{
    Toy *t = toy_new(7);
    QnLoader *l;
    QnBatch b;
    assert_ok(qn_loader_new(&t->head, &(QnLoaderOptions){ .batch = 3, .epochs = 2 }, &l));
    assert_int_equal(qn_loader_steps(l), 3);
    for (uint64_t e = 0; e < 2; e++)
        for (int64_t s = 0; s < 3; s++) {
            assert_ok(qn_loader_next(l, &b));
            assert_false(b.end);
            assert_int_equal(b.epoch, e);
            assert_int_equal(b.step, s);
            assert_int_equal(b.count, s == 2 ? 1 : 3);
            assert_int_equal(b.last, s == 2);
            const float *x = b.x;
            const int64_t *y = b.y;
            for (int64_t i = 0; i < 3; i++) { /* missing samples are zero */
                bool there = i < b.count;
                assert_true(x[2 * i] == (there ? (float)(s * 3 + i) : 0.0f));
                assert_true(x[2 * i + 1] == (there ? (float)e : 0.0f));
                assert_int_equal(y[i], there ? s * 3 + i : 0);
            }
        }
    assert_ok(qn_loader_next(l, &b));
    assert_true(b.end);
    assert_ok(qn_loader_next(l, &b));
    assert_true(b.end);
    qn_loader_free(l);
    assert_ok(qn_loader_new(&t->head, &(QnLoaderOptions){ .batch = 3, .drop_last = true }, &l));
    assert_int_equal(qn_loader_steps(l), 2);
    qn_loader_free(l);
    assert_fails(qn_loader_new(&t->head, &(QnLoaderOptions){ .batch = 8, .drop_last = true }, &l),
                 QN_EARG, "do not fill one batch of 8");
    assert_fails(qn_loader_new(&t->head, &(QnLoaderOptions){ .batch = 0 }, &l), QN_EARG, "batch");
    assert_ok(qn_loader_new(&t->head, &(QnLoaderOptions){ .batch = 8 }, &l));
    qn_loader_free(l);
    qn_dataset_free(&t->head);
}

/* Writes the sample indices of `batches` batches to out. */
static void record(QnLoader *l, int batches, int64_t *out)
{
    QnBatch b;
    for (int i = 0; i < batches; i++) {
        assert_ok(qn_loader_next(l, &b));
        const int64_t *y = b.y;
        for (int64_t k = 0; k < b.count; k++) {
            assert_int_equal(b.indices[k], y[k]);
            *out++ = y[k];
        }
    }
}

static void test_order_does_not_depend_on_workers(void **state)
{
    Toy *t = toy_new(101);
    t->slow = true;
    int64_t one[303], other[303];
    QnLoaderOptions o = { .batch = 8, .shuffle = true, .seed = 5, .workers = -1 };
    QnLoader *l;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    record(l, 39, one); /* three epochs of 13 */
    qn_loader_free(l);
    for (int w = 1; w <= 4; w += 3) {
        o.workers = w;
        o.prefetch = w == 1 ? 1 : 9;
        memset(other, 0, sizeof other);
        assert_ok(qn_loader_new(&t->head, &o, &l));
        record(l, 39, other);
        qn_loader_free(l);
        assert_memory_equal(one, other, sizeof one);
    }
    for (int e = 0; e < 3; e++) { /* each epoch is a permutation, and another one */
        int seen[101] = { 0 };
        for (int i = 0; i < 101; i++)
            seen[one[e * 101 + i]]++;
        for (int i = 0; i < 101; i++)
            assert_int_equal(seen[i], 1);
    }
    assert_memory_not_equal(one, one + 101, 101 * sizeof *one);
    o.seed = 6;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    record(l, 39, other);
    assert_memory_not_equal(one, other, sizeof one);
    qn_loader_free(l);
    qn_dataset_free(&t->head);
}

static void test_resume_neither_replays_nor_skips(void **state)
{
    Toy *t = toy_new(50);
    int64_t whole[200], part[200];
    QnLoaderOptions o = { .batch = 7, .shuffle = true, .seed = 1, .workers = 3 };
    QnLoader *l;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    record(l, 32, whole); /* four epochs of 8 steps */
    qn_loader_free(l);
    for (int cut = 0; cut < 32; cut += 3) {
        assert_ok(qn_loader_new(&t->head, &o, &l));
        record(l, cut, part);
        QnLoaderPosition p = qn_loader_position(l);
        qn_loader_free(l);
        assert_int_equal(p.epoch, cut / 8);
        assert_int_equal(p.step, cut % 8);
        assert_ok(qn_loader_new(&t->head, &o, &l));
        assert_ok(qn_loader_seek(l, p));
        int done = cut / 8 * 50 + cut % 8 * 7;
        record(l, 32 - cut, part + done);
        assert_memory_equal(whole, part, sizeof whole);
        assert_ok(qn_loader_seek(l, (QnLoaderPosition){ 0 })); /* and back while it runs */
        record(l, 32, part);
        assert_memory_equal(whole, part, sizeof whole);
        qn_loader_free(l);
    }
    assert_ok(qn_loader_new(&t->head, &o, &l));
    assert_fails(qn_loader_seek(l, (QnLoaderPosition){ .step = 9 }), QN_EARG, "step 9 of an epoch");
    assert_ok(qn_loader_seek(l, (QnLoaderPosition){ .epoch = 2, .step = 8 })); /* the end of 2 */
    assert_int_equal(qn_loader_position(l).epoch, 3);
    qn_loader_free(l);
    qn_dataset_free(&t->head);
}

static void test_broken_samples(void **state)
{
    Toy *t = toy_new(10);
    t->broken[0] = 2;
    t->broken[1] = 3;
    t->broken[2] = 9;
    t->broken_count = 3;
    QnLoader *l;
    QnBatch b;
    int64_t got[20];
    QnLoaderOptions o = { .batch = 5 };
    assert_ok(qn_loader_new(&t->head, &o, &l));
    for (int i = 0; i < 2; i++) /* stays until a seek */
        assert_fails(qn_loader_next(l, &b), QN_EFORMAT, "toy 2 is broken");
    assert_ok(qn_loader_seek(l, (QnLoaderPosition){ 0 }));
    assert_fails(qn_loader_next(l, &b), QN_EFORMAT, "toy 2 is broken");
    qn_loader_free(l);
    o.broken = QN_BROKEN_REPLACE;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    record(l, 4, got);
    const int64_t replaced[] = { 0, 1, 4, 4, 4, 5, 6, 7, 8, 0 };
    assert_memory_equal(got, replaced, sizeof replaced);
    assert_int_equal(qn_dataset_skip_count(&t->head), 3);
    qn_loader_free(l);
    o.broken = QN_BROKEN_DROP;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    record(l, 2, got);
    const int64_t dropped[] = { 0, 1, 4, 5, 6, 7, 8 };
    assert_memory_equal(got, dropped, sizeof dropped);
    assert_ok(qn_loader_next(l, &b));
    assert_int_equal(b.count, 3);
    assert_int_equal(((const int64_t *)b.y)[3], 0);
    assert_int_equal(qn_dataset_skip_count(&t->head), 3); /* counted once each */
    qn_loader_free(l);
    qn_dataset_free(&t->head);
    t = toy_new(2);
    t->broken[1] = 1;
    t->broken_count = 2;
    o = (QnLoaderOptions){ .batch = 1, .broken = QN_BROKEN_REPLACE };
    assert_ok(qn_loader_new(&t->head, &o, &l));
    assert_fails(qn_loader_next(l, &b), QN_EFORMAT, "2 samples in a row are broken");
    qn_loader_free(l);
    qn_dataset_free(&t->head);
}

static void test_ranks_share_each_batch(void **state)
{
    Toy *t = toy_new(26);
    int64_t alone[26], shared[26];
    QnLoaderOptions o = { .batch = 12, .shuffle = true };
    QnLoader *l, *r[3];
    QnBatch b;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    record(l, 3, alone);
    qn_loader_free(l);
    o.batch = 4;
    o.world = 3;
    int at = 0;
    for (o.rank = 0; o.rank < 3; o.rank++)
        assert_ok(qn_loader_new(&t->head, &o, &r[o.rank]));
    for (int step = 0; step < 3; step++)
        for (int i = 0; i < 3; i++) {
            assert_ok(qn_loader_next(r[i], &b));
            assert_false(b.end);
            for (int64_t k = 0; k < b.count; k++)
                shared[at++] = b.indices[k];
        }
    assert_int_equal(at, 26);
    assert_memory_equal(alone, shared, sizeof alone);
    for (int i = 0; i < 3; i++)
        qn_loader_free(r[i]);
    qn_dataset_free(&t->head);
}

static void test_steady_state_allocates_nothing(void **state)
{
    Toy *t = toy_new(100);
    int64_t got[1000];
    QnLoaderOptions o = { .batch = 10, .shuffle = true, .workers = 3 };
    QnLoader *l;
    assert_ok(qn_loader_new(&t->head, &o, &l));
    uint64_t before = qn_alloc_count();
    record(l, 100, got);
    assert_ok(qn_loader_seek(l, (QnLoaderPosition){ .epoch = 1 }));
    record(l, 10, got);
    assert_int_equal(qn_alloc_count(), before);
    qn_loader_free(l);
    qn_dataset_free(&t->head);
}

static void test_waiting_is_measured(void **state)
{
    Toy *t = toy_new(16);
    t->slow = true;
    int64_t got[32];
    QnLoader *l;
    assert_ok(qn_loader_new(&t->head, &(QnLoaderOptions){ .batch = 8, .workers = -1 }, &l));
    assert_int_equal(qn_loader_wait_ns(l), 0);
    record(l, 4, got);
    assert_true(qn_loader_wait_ns(l) > 3000000); /* 32 samples of 0.12 ms on average */
    qn_loader_free(l);
    qn_dataset_free(&t->head);
}

static void test_may_be_freed_at_any_time(void **state)
{
    Toy *t = toy_new(64);
    t->slow = true;
    QnLoader *l;
    QnBatch b;
    for (int i = 0; i < 30; i++) {
        QnLoaderOptions o = { .batch = 4, .workers = 1 + i % 4, .epochs = (uint64_t)i % 2 };
        assert_ok(qn_loader_new(&t->head, &o, &l));
        for (int k = 0; k < i; k++)
            assert_ok(qn_loader_next(l, &b));
        qn_loader_free(l);
    }
    qn_dataset_free(&t->head);
}

static void test_every_allocation_may_fail(void **state)
{
    Toy *t = toy_new(8);
    QnLoader *l;
    int failures = 0;
    for (int64_t n = 1;; n++) {
        QnLoaderOptions o = { .batch = 2, .shuffle = true, .workers = 2 };
        qn_fault_arm(n);
        QnStatus st = qn_loader_new(&t->head, &o, &l);
        qn_fault_arm(0);
        if (st == QN_OK)
            break;
        assert_int_equal(st, QN_ENOMEM);
        failures++;
    }
    qn_loader_free(l);
    assert_true(failures > 10);
    qn_dataset_free(&t->head);
}
