/* An OpenCL device without shared virtual memory (PoCL, told to go without): memory of buffer
 * objects gives the bits of shared memory, a step makes no objects, and what fails leaves none.
 * timeout: 1200 pocl: -cl-opt-disable */
#include "backend/device_convs.h"
#include "backend/device_folds.h"
#include "backend/small_net.h"
#include "backend/staged.h"
#include "backend/opencl/opencl.h"
#include "base/fault.h"
#include "io/temp.h"

#ifdef QN_HAVE_OPENCL
static QnDevice *open_device(bool buffers)
{
    QnDevice *d = NULL;
    if (qn_opencl_count() == 0)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    setenv("QUERN_OPENCL_SVM", buffers ? "0" : "1", 1);
    assert_ok(qn_device_open_named("opencl:0", NULL, &d));
    assert_true(qn_opencl_has_svm(d->impl) == !buffers);
    return d;
}

static const QnOpencl *impl(const QnDevice *d)
{
    return d->impl;
}

static void close_device(QnDevice *d)
{
    assert_int_equal(d->now_bytes, 0);
    assert_int_equal(impl(d)->n_regions, 0);
    assert_int_equal(impl(d)->n_parts, 0);
    qn_device_close(d);
}

static void with_buffers(void (*check)(QnDevice *d))
{
    QnDevice *d = open_device(true);
    check(d);
    close_device(d);
}

/* ---- the same results ------------------------------------------------------------------------ */

static void compare_with_shared(const SmallNet *net)
{
    QnDevice *buffers = open_device(true), *shared = open_device(false), *cpu;
    int64_t n, m;
    int on_host = 0;
    float *got = train(net, buffers, &n, &on_host), *want = train(net, shared, &m, &on_host);
    assert_int_equal(on_host, 0);
    assert_int_equal(n, m);
    assert_true(n > 300);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
    free(got);
    free(want);
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    compare_devices(net, buffers, cpu, &on_host);
    qn_device_close(cpu);
    close_device(shared);
    close_device(buffers);
}

static void on_training_gives_the_bits_of_shared_memory(void)
{
    compare_with_shared(&conv_net);
    compare_with_shared(&gpt_net);
}

static void on_two_launches_share_work_memory(void)
{
    with_buffers(check_folds);
    with_buffers(check_batch_norm);
}

static void on_scatter_add(void)
{
    with_buffers(check_scatter_add);
}

static void on_convolutions(void)
{
    with_buffers(check_conv_maps);
    with_buffers(check_conv_dw);
}

/* With small work groups most of a step is copied to the host and back. */
static void on_steps_on_the_host(void)
{
    QnDevice *d = open_device(true), *cpu;
    int on_host = 0;
    QnOpencl *cl = d->impl;
    cl->max_group = 1;
    assert_ok(qn_device_open_named("cpu", NULL, &cpu));
    compare_devices(&conv_net, d, cpu, &on_host);
    assert_true(on_host > 3);
    qn_device_close(cpu);
    close_device(d);
}

static const char *prepare_recipe(char out[512])
{
    toy_images("a", 40);
    toy_images("b", 21);
    snprintf(out, 512, "%s", toy_recipe("r.json", STAGED_RECIPE));
    return out;
}

static void on_batches_that_travel_ahead(void)
{
    char recipe[512];
    QnDevice *d = open_device(true);
    check_staged(d, prepare_recipe(recipe), "train.accumulate=2");
    close_device(d);
    check_apart(open_device(true));
}

static void on_far_memory(void)
{
    char recipe[512];
    check_far(open_device(true), prepare_recipe(recipe));
}

static void check_copies(QnDevice *d, bool with_far)
{
    enum { N = 1000, FROM = 37 };
    char x[N], y[N] = { 0 };
    const QnBackend *b = d->backend;
    if (with_far)
        d->limit_bytes = 1;
    char *p = qn_device_alloc(d, N);
    d->limit_bytes = 0;
    char *q = qn_device_alloc(d, N);
    assert_true(qn_device_is_far(d, p) == with_far);
    for (int i = 0; i < N; i++)
        x[i] = (char)(i * 7);
    assert_ok(b->write(d, p, x, N));
    assert_ok(b->copy(d, q + FROM, p, N - FROM));
    assert_ok(b->copy(d, q, q + N / 2, 0));
    assert_ok(b->write(d, q, x, FROM));
    assert_ok(b->copy(d, p + N / 2, q, N / 2)); /* x's begin, then the same moved by FROM */
    assert_ok(b->read(d, y, p, N));
    for (int i = 0; i < N; i++) {
        int at = i < N / 2 ? i : i - N / 2 < FROM ? i - N / 2 : i - N / 2 - FROM;
        assert_int_equal(y[i], x[at]);
    }
    assert_fails(b->read(d, y, x, N), QN_EDEVICE, "a copy fails");
    assert_fails(b->read(d, y, p + 1, N), QN_EDEVICE, "a copy fails");
    qn_device_free(d, p, N);
    qn_device_free(d, q, N);
}

static void on_copies(void)
{
    QnDevice *d = open_device(true);
    check_copies(d, false);
    check_copies(d, true);
    close_device(d);
}

/* ---- objects --------------------------------------------------------------------------------- */

typedef struct Made {
    QnGraph *g;
    QnStore *s;
    QnPlan *p;
} Made;

/* The update of a net, ready to run. */
static QnStatus make(QnDevice *d, const SmallNet *net, Made *m)
{
    QnPipelineOptions o = qn_device_passes(d);
    m->g = net->build();
    m->s = qn_store_new(d);
    assert_non_null(m->s);
    assert_ok(qn_pipeline_run(m->g, &o));
    assert_ok(qn_store_add(m->s, m->g));
    QN_TRY(qn_store_alloc(m->s));
    return qn_plan_new(m->g, d, m->s, NULL, &m->p);
}

static void made_fini(Made *m)
{
    qn_plan_free(m->p);
    qn_store_free(m->s);
    qn_graph_free(m->g);
    *m = (Made){ 0 };
}

static void on_a_step_makes_nothing(void)
{
    QnDevice *d = open_device(true);
    Made m = { 0 };
    assert_ok(make(d, &gpt_net, &m));
    fill(m.s);
    gpt_net.feed(d, m.p, 1);
    assert_ok(qn_plan_run(m.p));
    int64_t parts = impl(d)->n_parts;
    uint64_t allocations = qn_alloc_count();
    assert_true(parts > 50);
    for (int i = 0; i < 3; i++)
        assert_ok(qn_plan_run(m.p));
    assert_int_equal(impl(d)->n_parts, parts);
    assert_int_equal(qn_alloc_count(), allocations);
    for (int64_t i = 0; i < qn_plan_n_steps(m.p); i++)
        assert_int_equal(qn_plan_step(m.p, i).n_launched, 1);
    made_fini(&m);
    close_device(d);
}

/* Operands begin where the device takes them, though the device asks for more than the arena. */
static void on_operands_are_aligned(void)
{
    QnDevice *d = open_device(true);
    Made m = { 0 };
    cl_uint bits = 0;
    clGetDeviceInfo(impl(d)->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    assert_int_equal(d->align, bits / 8);
    for (d->align = bits / 8; d->align <= 4096; d->align *= 4) {
        int64_t align = qn_device_align(d);
        assert_ok(make(d, &conv_net, &m));
        for (int64_t i = 0; i < qn_plan_n_steps(m.p); i++)
            assert_int_equal(QN_MAX(0, qn_plan_step(m.p, i).out_offset) % align, 0);
        for (int64_t i = 0; i < m.s->n; i++)
            assert_int_equal(m.s->slots[i].offset % align, 0);
        conv_net.feed(d, m.p, 1);
        assert_ok(qn_plan_run(m.p));
        made_fini(&m);
    }
    close_device(d);
}

static void on_the_device_says_what_it_has(void)
{
    QnDevice *d = open_device(true);
    QnDeviceInfo i;
    assert_ok(qn_device_info(d, &i));
    assert_string_equal(i.memory, "buffer objects");
    assert_contains(i.lacks, "QUERN_OPENCL_SVM=0");
    close_device(d);
    d = open_device(false);
    assert_ok(qn_device_info(d, &i));
    assert_string_equal(i.memory, "shared virtual memory");
    assert_null(i.lacks);
    close_device(d);
}

/* ---- what fails ------------------------------------------------------------------------------ */

static QnStatus run_once(QnDevice *d, Made *m)
{
    QN_TRY(make(d, &conv_net, m));
    return qn_plan_run(m->p);
}

/* One event after the other fails, from the first buffer of a store to the last argument. */
static void on_every_buffer_may_fail(void)
{
    QnDevice *d = open_device(true);
    Made m = { 0 };
    int n_failed = 0;
    assert_ok(run_once(d, &m)); /* compiles */
    made_fini(&m);
    for (int64_t n = 1;; n++) {
        m.g = conv_net.build();
        m.s = qn_store_new(d);
        QnPipelineOptions o = qn_device_passes(d);
        assert_ok(qn_pipeline_run(m.g, &o));
        assert_ok(qn_store_add(m.s, m.g));
        qn_fault_arm(n);
        QnStatus st = qn_store_alloc(m.s);
        if (st == QN_OK)
            st = qn_plan_new(m.g, d, m.s, NULL, &m.p);
        if (st == QN_OK)
            st = qn_plan_run(m.p);
        bool done = qn_fault_events() < n;
        qn_fault_arm(0);
        if (st != QN_OK) {
            n_failed++;
            if (st != QN_ENOMEM &&
                st != QN_EUNSUPPORTED) /* a kernel that had no memory to accept */
                fail_msg("event %lld: %s", (long long)n, qn_error_last()->text);
        }
        made_fini(&m);
        assert_int_equal(d->now_bytes, 0);
        assert_int_equal(impl(d)->n_regions, 0);
        assert_int_equal(impl(d)->n_parts, 0);
        if (done) {
            assert_ok(st);
            break;
        }
    }
    assert_true(n_failed > 50);
    close_device(d);
}

/* What the driver itself refuses: more than any buffer may have. */
static void on_a_buffer_too_large(void)
{
    QnDevice *d = open_device(true);
    QnOpencl *cl = d->impl;
    size_t bytes = (size_t)1 << 46;
    cl->memory_bytes = cl->largest_bytes = 0; /* a device that does not say */
    assert_null(qn_device_alloc(d, bytes));
    assert_int_equal(qn_error_last()->code, QN_ENOMEM);
    assert_contains(qn_error_last()->text, "a buffer fails with error");
    close_device(d);
}
#else
static void skip_without(void)
{
    skip_because("built without OpenCL");
}
#define on_training_gives_the_bits_of_shared_memory skip_without
#define on_two_launches_share_work_memory           skip_without
#define on_scatter_add                              skip_without
#define on_convolutions                             skip_without
#define on_steps_on_the_host                        skip_without
#define on_batches_that_travel_ahead                skip_without
#define on_far_memory                               skip_without
#define on_copies                                   skip_without
#define on_a_step_makes_nothing                     skip_without
#define on_operands_are_aligned                     skip_without
#define on_the_device_says_what_it_has              skip_without
#define on_every_buffer_may_fail                    skip_without
#define on_a_buffer_too_large                       skip_without
#endif

static void test_training_gives_the_bits_of_shared_memory(void **state)
{
    on_training_gives_the_bits_of_shared_memory();
}

static void test_two_launches_share_work_memory(void **state)
{
    on_two_launches_share_work_memory();
}

static void test_scatter_add(void **state)
{
    on_scatter_add();
}

static void test_convolutions(void **state)
{
    on_convolutions();
}

static void test_steps_on_the_host(void **state)
{
    on_steps_on_the_host();
}

static void test_batches_that_travel_ahead(void **state)
{
    on_batches_that_travel_ahead();
}

static void test_far_memory(void **state)
{
    on_far_memory();
}

static void test_copies(void **state)
{
    on_copies();
}

static void test_a_step_makes_nothing(void **state)
{
    on_a_step_makes_nothing();
}

static void test_operands_are_aligned(void **state)
{
    on_operands_are_aligned();
}

static void test_the_device_says_what_it_has(void **state)
{
    on_the_device_says_what_it_has();
}

static void test_every_buffer_may_fail(void **state)
{
    on_every_buffer_may_fail();
}

static void test_a_buffer_too_large(void **state)
{
    on_a_buffer_too_large();
}
