/* Kernels beyond 2^31 elements and bytes, each looked at where it ends. labels: slow
 * timeout: 300 */
#include "test.h"
#include "backend/cpu/cpu.h"
#include "ops/ops.h"
#include "ops/util.h"
#include "rt/select.h"

#include <sys/mman.h>

#define FAR         (((int64_t)1 << 31) + 5003)
#define NEED_KBYTES (6L << 20)

static QnGraph *g;
static QnDevice *device;

static int setup(void **state)
{
    g = qn_graph_new();
    return qn_device_open(&qn_backend_cpu, &(QnDeviceOptions){ .n_threads = 2 }, &device);
}

static int teardown(void **state)
{
    qn_graph_free(g);
    qn_device_close(device);
    return 0;
}

static void need_memory(void)
{
    char line[256];
    long kbytes = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %ld", &kbytes) == 1)
            break;
    }
    if (f)
        fclose(f);
    if (kbytes < NEED_KBYTES)
        skip_because("needs 6 GiB of free memory");
}

/* Zeros that take no memory until they are written. */
static void *zeros(const QnType *t)
{
    void *p = mmap(NULL, (size_t)qn_type_bytes(t), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void drop(void *p, const QnType *t)
{
    munmap(p, (size_t)qn_type_bytes(t));
}

/* Runs the node by the kernel that is selected, which must not be the reference: that would take
 * eight bytes an element. */
static void run(const QnNode *n, const void *const *in, void *out)
{
    QnPrepared p = { .node = n, .env = &device->env };
    assert_ok(qn_graph_check(g));
    assert_ok(qn_select(device, n, NULL, &p.kernel));
    assert_string_not_equal(p.kernel->name, "reference");
    if (p.kernel->prepare)
        assert_ok(p.kernel->prepare(&p));
    void *space = qn_alloc_aligned(p.workspace_bytes + 1);
    assert_ok(p.kernel->run(&p, in, &out, space));
    qn_free_aligned(space, p.workspace_bytes + 1);
    if (p.kernel->fini)
        p.kernel->fini(&p);
}

static void test_map(void **state)
{
    need_memory();
    QnValue *x = qn_input(g, "x", QN_DTYPE_BOOL, &QN_SHAPE(FAR));
    QnNode *n = qn_logical_not(g, x)->node;
    unsigned char *a = zeros(&x->type), *y = zeros(&x->type);
    a[FAR - 2] = 1;
    run(n, (const void *[]){ a }, y);
    assert_int_equal(y[FAR - 1], 1);
    assert_int_equal(y[FAR - 2], 0);
    assert_int_equal(y[FAR - 5003 - 1], 1); /* on both sides of 2^31 */
    assert_int_equal(y[FAR - 5003], 1);
    drop(a, &x->type);
    drop(y, &x->type);
}

static void test_moves(void **state)
{
    need_memory();
    QnValue *x = qn_input(g, "x", QN_DTYPE_U8, &QN_SHAPE(FAR));
    QnValue *z = qn_input(g, "z", QN_DTYPE_U8, &QN_SHAPE(300));
    QnSliceAttr end = { QN_AXES(0), QN_AXES(FAR - 100), QN_AXES(FAR), QN_AXES(1) };
    QnNode *slice = qn_slice(g, x, &end)->node;
    QnNode *concat = qn_concat(g, (QnValue *[]){ x, z }, 2, 0)->node;
    unsigned char *a = zeros(&x->type), last[100] = { 0 }, b[300] = { 0 };
    a[FAR - 1] = 7;
    a[FAR - 100] = 9;
    b[299] = 5;
    run(slice, (const void *[]){ a }, last);
    assert_int_equal(last[0], 9);
    assert_int_equal(last[99], 7);
    assert_int_equal(last[50], 0);
    unsigned char *y = zeros(&concat->out[0].type);
    run(concat, (const void *[]){ a, b }, y);
    assert_int_equal(y[FAR - 1], 7);
    assert_int_equal(y[FAR + 299], 5);
    assert_int_equal(y[FAR + 298], 0);
    drop(a, &x->type);
    drop(y, &concat->out[0].type);
}

static void test_reductions(void **state)
{
    need_memory();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F16, &QN_SHAPE(FAR));
    uint16_t *a = zeros(&x->type), y[1];
    a[FAR - 1] = 0x4200; /* 3 */
    a[5] = 0x3c00;       /* 1 */
    run(qn_reduce_max(g, x, QN_AXES(0), false)->node, (const void *[]){ a }, y);
    assert_int_equal(y[0], 0x4200);
    run(qn_sum(g, x, QN_AXES(0), false)->node, (const void *[]){ a }, y);
    assert_int_equal(y[0], 0x4400); /* 4 */
    drop(a, &x->type);
}
