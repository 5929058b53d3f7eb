/* Batches that travel through the CUDA plugin while it computes, on the stub driver, whose streams
 * do what they hold as late as the events allow. labels: slow timeout: 300 */
#include "cuda/device.h"

#include "backend/staged.h"

static bool have;
static char recipe[512];

static int group_setup(void **state)
{
    have = cuda_setup();
    toy_images("a", 40);
    toy_images("b", 21);
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", STAGED_RECIPE));
    return 0;
}

#define NEEDS_PLUGIN()                                                                             \
    if (!have)                                                                                     \
    skip_because("built without CUDA's headers")

enum { ROUNDS = 5, N = 1000 };

/* Each batch to a place of its own, by way of one block, as the inputs of a plan are. */
static QnStatus rounds(QnDevice *d, unsigned char *out)
{
    QnStaging *s = NULL;
    size_t bytes = N;
    unsigned char x[N];
    char *block = NULL, *all = NULL;
    QnStatus st = qn_staging_new(d, &bytes, 1, &s);
    if (st == QN_OK)
        st = (block = qn_device_alloc(d, N)) && (all = qn_device_alloc(d, ROUNDS * N)) ? QN_OK
                                                                                       : QN_ENOMEM;
    for (int r = 0; st == QN_OK && r < ROUNDS; r++) {
        memset(x, r + 1, N);
        st = qn_staging_send(s, (const void *[]){ x });
        if (st == QN_OK)
            st = qn_staging_take(s, (void *[]){ block });
        if (st == QN_OK)
            st = d->backend->copy(d, all + r * N, block, N);
    }
    if (st == QN_OK)
        st = d->backend->read(d, out, all, ROUNDS * N);
    qn_staging_free(s);
    qn_device_free(d, block, N);
    qn_device_free(d, all, ROUNDS * N);
    return st;
}

static void test_batches_arrive_whatever_is_late(void **state)
{
    unsigned char got[ROUNDS * N];
    QnDevice *d;
    NEEDS_PLUGIN();
    for (unsigned lazy = 0; lazy < 4; lazy++) {
        stub_set(&(StubOptions){ .lazy = lazy });
        assert_ok(qn_device_open_named("cuda:0", NULL, &d));
        assert_ok(rounds(d, got));
        for (int i = 0; i < ROUNDS * N; i++)
            if (got[i] != i / N + 1)
                fail_msg("streams %u are late: byte %d of batch %d is of batch %d", lazy, i % N,
                         i / N, got[i] - 1);
        qn_device_close(d);
        assert_nothing_left("after the rounds");
    }
}

/* The copy that sends a batch is ordered after the one that took the last, and no wait of the host
 * is among them. */
static void test_order_of_calls(void **state)
{
    unsigned char got[ROUNDS * N];
    QnDevice *d;
    NEEDS_PLUGIN();
    stub_set(&(StubOptions){ 0 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    stub_set(&(StubOptions){ 0 });
    assert_ok(rounds(d, got));
    static const char round[] = "1 wait, 1 HtoD, 1 record, 0 wait, 0 DtoD, 0 record, 0 DtoD";
    const char *at = stub_trace();
    assert_true(!strncmp(at, "0 record, ", 10)); /* the block is there */
    at += 10;
    for (int r = 0; r < ROUNDS; r++) {
        if (strncmp(at, round, strlen(round)))
            fail_msg("round %d begins with %.70s", r, at);
        at += strlen(round) + 2;
    }
    assert_string_equal(at, "0 DtoH, 0 record");
    qn_device_close(d);
}

static void test_every_call_may_fail(void **state)
{
    unsigned char got[ROUNDS * N];
    bool done = false;
    int failed = 0;
    NEEDS_PLUGIN();
    for (int n = 1; !done; n++) {
        char when[64];
        QnDevice *d = NULL;
        snprintf(when, sizeof when, "call %d failed", n);
        stub_set(&(StubOptions){ .fail_at = n, .fail_error = 700 });
        QnStatus st = qn_device_open_named("cuda:0", NULL, &d);
        if (st == QN_OK)
            st = rounds(d, got);
        failed += st != QN_OK;
        if (st != QN_OK)
            assert_contains(qn_error_last()->text, "fails");
        if (d)
            assert_int_equal(d->now_bytes, 0);
        qn_device_close(d);
        done = counts().calls < n;
        assert_true(!done || st == QN_OK);
        assert_nothing_left(when);
    }
    print_message("%d calls fail\n", failed);
    assert_true(failed > 60);
}

/* ---- whole runs ---- */

static void test_training_gives_the_same_bits(void **state)
{
    QnDevice *d;
    NEEDS_PLUGIN();
    for (unsigned lazy = 1; lazy < 3;
         lazy++) { /* the one or the other; a compiler runs each time */
        stub_set(&(StubOptions){ .runs_kernels = true, .lazy = lazy });
        assert_ok(qn_device_open_named("cuda:0", NULL, &d));
        check_staged(d, recipe, lazy == 1 ? "train.accumulate=1" : "train.accumulate=2");
        assert_true(counts().replays > 8); /* runs were captured all the same */
        qn_device_close(d);
        assert_nothing_left("after training");
    }
}

/* Pinned memory that the driver does not give is done without. */
static void test_training_without_pinned_memory(void **state)
{
    QnDevice *d;
    bool sends = true;
    const char *none[] = { "train.accumulate=1" };
    NEEDS_PLUGIN();
    stub_set(&(StubOptions){ 0 });
    assert_ok(qn_device_open_named("cuda:0", NULL, &d));
    stub_set(&(StubOptions){ .fail_call = "cuMemHostAlloc", .fail_at = 2, .fail_error = 2 });
    assert_ok(qn_file_make_dirs(temp_path("plain")));
    assert_ok(staged_train(d, recipe, none, 1, "plain", NULL, NULL, &sends));
    assert_false(sends);
    qn_device_close(d);
    assert_nothing_left("after training");
}

/* Of a run of training, with kernels that are only counted. */
static void test_every_call_of_a_run_may_fail(void **state)
{
    const char *short_run[] = { "train.steps=3", "train.eval.every=3" };
    int64_t calls = 1;
    int failed = 0;
    NEEDS_PLUGIN();
    assert_ok(qn_file_make_dirs(temp_path("faults")));
    for (int64_t n = 0; n <= calls; n++) { /* 0: none, to count them */
        char when[64];
        QnDevice *d = NULL;
        bool sends;
        snprintf(when, sizeof when, "call %d failed", (int)n);
        stub_set(&(StubOptions){ .fail_at = n, .fail_error = 700 });
        QnStatus st = qn_device_open_named("cuda:0", NULL, &d);
        if (st == QN_OK)
            st = staged_train(d, recipe, short_run, 2, "faults", NULL, NULL, &sends);
        failed += st != QN_OK;
        if (st != QN_OK && strlen(qn_error_last()->text) < 10)
            fail_msg("%s: %s", when, qn_error_last()->text);
        if (d)
            assert_int_equal(d->now_bytes, 0);
        qn_device_close(d);
        calls = QN_MAX(calls, counts().calls);
        assert_nothing_left(when);
    }
    print_message("%d of %lld calls fail the run\n", failed, (long long)calls);
    assert_true(failed > 100);
}
