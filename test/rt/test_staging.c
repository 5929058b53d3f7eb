/* The ring that sends batches ahead, on a backend made for it: the CPU's, which notes what is asked
 * of it, in what order, and can fail at any call. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "base/fault.h"
#include "rt/staging.h"

static struct {
    char text[600];
    int calls, fail_at; /* the n-th of those that can fail, from 1 */
    int pinned, events;
} seen;

static QnStatus note(const char *fmt, int which)
{
    size_t n = strlen(seen.text);
    snprintf(seen.text + n, sizeof seen.text - n, n ? ", " : "");
    n = strlen(seen.text);
    snprintf(seen.text + n, sizeof seen.text - n, fmt, which);
    return ++seen.calls == seen.fail_at ? qn_fail(QN_EDEVICE, "call %d fails", seen.calls) : QN_OK;
}

static int *const event_names[] = { &(int){ 0 }, &(int){ 1 }, &(int){ 2 } };

static void *host_alloc(QnDevice *d, size_t bytes)
{
    if (note("pin", 0) != QN_OK)
        return NULL;
    seen.pinned++;
    return malloc(bytes);
}

static void host_free(QnDevice *d, void *p, size_t bytes)
{
    seen.pinned--;
    free(p);
}

static QnStatus copy_ahead(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QN_TRY(note("send", 0));
    memcpy(dst, src, bytes);
    return QN_OK;
}

static QnStatus copy(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QN_TRY(note("copy", 0));
    memcpy(dst, src, bytes);
    return QN_OK;
}

static QnStatus event_new(QnDevice *d, void **event)
{
    QN_TRY(note("event", 0));
    *event = event_names[seen.events++];
    return QN_OK;
}

static void event_free(QnDevice *d, void *event)
{
    seen.events--;
}

static QnStatus event_record(QnDevice *d, QnQueue q, void *event)
{
    return note(q == QN_QUEUE_COPY ? "copy records %d" : "compute records %d", *(int *)event);
}

static QnStatus event_order(QnDevice *d, QnQueue q, void *event)
{
    return note(q == QN_QUEUE_COPY ? "copy after %d" : "compute after %d", *(int *)event);
}

static QnStatus event_wait(QnDevice *d, void *event)
{
    return note("host after %d", *(int *)event);
}

static QnBackend backend;
static QnDevice *d;

static int setup(void **state)
{
    memset(&seen, 0, sizeof seen);
    backend = qn_backend_cpu;
    backend.copy = copy;
    backend.host_alloc = host_alloc;
    backend.host_free = host_free;
    backend.copy_ahead = copy_ahead;
    backend.event_new = event_new;
    backend.event_free = event_free;
    backend.event_record = event_record;
    backend.event_order = event_order;
    backend.event_wait = event_wait;
    assert_ok(qn_device_open(&backend, NULL, &d));
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(seen.pinned, 0);
    assert_int_equal(seen.events, 0);
    assert_int_equal(d->now_bytes, 0);
    qn_device_close(d);
    return 0;
}

static void expect(const char *want)
{
    assert_string_equal(seen.text, want);
    seen.text[0] = '\0';
}

static const size_t sizes[] = { 100, 7 };

static void test_order_of_calls(void **state)
{
    QnStaging *s;
    unsigned char x[100] = { 1, 2, 3 }, y[7] = { 9 }, got_x[100], got_y[7];
    const void *src[] = { x, y };
    assert_ok(qn_staging_new(d, sizes, 2, &s));
    expect("pin, event, pin, event, event, compute records 2");
    assert_int_equal(qn_staging_bytes(s), 128 + 64);
    for (int round = 0; round < 5; round++) {
        char want[200];
        int slot = round % 2;
        x[50] = y[6] = (unsigned char)round;
        assert_false(qn_staging_is_full(s));
        assert_ok(qn_staging_send(s, src));
        snprintf(want, sizeof want, "host after %d, copy after 2, send, copy records %d", slot,
                 slot);
        expect(want);
        assert_true(qn_staging_is_full(s));
        x[50] = y[6] = 255; /* may be changed by now */
        assert_ok(qn_staging_take(s, (void *[]){ got_x, got_y }));
        snprintf(want, sizeof want, "compute after %d, copy, copy, compute records 2", slot);
        expect(want);
        assert_int_equal(got_x[50], round);
        assert_int_equal(got_y[6], round);
        assert_int_equal(got_x[2], 3);
    }
    qn_staging_free(s);
}

static void test_parts_that_nobody_needs(void **state)
{
    QnStaging *s;
    char x[100] = "x", y[7] = "y", got[7];
    assert_ok(qn_staging_new(d, sizes, 2, &s));
    assert_ok(qn_staging_send(s, (const void *[]){ x, y }));
    seen.text[0] = '\0';
    assert_ok(qn_staging_take(s, (void *[]){ NULL, got }));
    expect("compute after 0, copy, compute records 2");
    assert_string_equal(got, "y");
    qn_staging_free(s);
}

static void test_misuse_is_refused(void **state)
{
    QnStaging *s;
    char x[100] = "", y[7] = "", got_x[100], got_y[7];
    const void *src[] = { x, y };
    void *dst[] = { got_x, got_y };
    assert_fails(qn_staging_new(d, sizes, 0, &s), QN_EARG, "0 arrays");
    assert_fails(qn_staging_new(d, sizes, 5, &s), QN_EARG, "5 arrays");
    assert_fails(qn_staging_new(d, (size_t[]){ SIZE_MAX - 3 }, 1, &s), QN_ENOMEM, "more bytes");
    assert_ok(qn_staging_new(d, sizes, 2, &s));
    assert_fails(qn_staging_take(s, dst), QN_EARG, "no batch");
    assert_ok(qn_staging_send(s, src));
    assert_fails(qn_staging_send(s, src), QN_EARG, "has not been taken");
    assert_ok(qn_staging_take(s, dst));
    qn_staging_free(s);
    backend.copy_ahead = NULL;
    assert_false(qn_staging_is_there(d));
    assert_fails(qn_staging_new(d, sizes, 2, &s), QN_EUNSUPPORTED, "no second queue");
}

static QnStatus two_rounds(void)
{
    QnStaging *s;
    char x[100] = "", y[7] = "", got_x[100], got_y[7];
    QN_TRY(qn_staging_new(d, sizes, 2, &s));
    QnStatus st = QN_OK;
    for (int i = 0; st == QN_OK && i < 2; i++) {
        st = qn_staging_send(s, (const void *[]){ x, y });
        if (st == QN_OK)
            st = qn_staging_take(s, (void *[]){ got_x, got_y });
    }
    qn_staging_free(s);
    return st;
}

static void test_every_call_may_fail(void **state)
{
    QnStatus st = QN_EDEVICE;
    int n = 0;
    while (st != QN_OK) {
        seen.calls = 0;
        seen.fail_at = ++n;
        st = two_rounds();
        if (seen.calls < n) /* past all */
            break;
        if (st != QN_OK)
            assert_contains(qn_error_last()->text, "fails");
        assert_int_equal(seen.pinned + seen.events, 0);
        assert_int_equal(d->now_bytes, 0);
    }
    assert_ok(st);
    assert_true(n > 6 + 2 * 8); /* the two of free cannot be helped */
}

static void test_every_allocation_may_fail(void **state)
{
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        qn_fault_arm(n);
        QnStatus st = two_rounds();
        done = qn_fault_events() < n;
        qn_fault_arm(0);
        assert_true(done || st == QN_ENOMEM);
        assert_int_equal(seen.pinned + seen.events, 0);
        assert_int_equal(d->now_bytes, 0);
    }
}
