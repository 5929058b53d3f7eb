/* The products by libxsmm's generated code, which is told by name that it ran: edges of vectors,
 * transposed a, every form of bias, batches that are broadcast; and what it refuses. */
#include "backend/kernel_check.h"
#include "ops/matmul.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

extern const QnKernel qn_kernel_matmul_xsmm;
static const QnKernel *const kernel = &qn_kernel_matmul_xsmm;

typedef struct Product {
    QnShape a, b, bias; /* bias of rank 8: none */
    bool ta, tb;
    QnDtype dtype;
} Product;

#define NONE                                                                                       \
    (QnShape)                                                                                      \
    {                                                                                              \
        .rank = QN_MAX_RANK                                                                        \
    }
#define F32 QN_DTYPE_F32

#ifdef QN_HAVE_XSMM
enum { HAS_XSMM = 1 };
#else
enum { HAS_XSMM = 0 };
#endif

/* By its operator: the builder makes other nodes of some shapes. */
static QnNode *product_node(QnGraph *g, const Product *p)
{
    QnMatmulAttr attr = { .trans_a = p->ta, .trans_b = p->tb };
    QnValue *in[] = { qn_input(g, "a", p->dtype, &p->a), qn_input(g, "b", p->dtype, &p->b), NULL };
    if (p->bias.rank != QN_MAX_RANK)
        in[2] = qn_input(g, "bias", p->dtype, &p->bias);
    QnNode *n = qn_emit(g, &qn_op_matmul, &attr, in, in[2] ? 3 : 2);
    assert_ok(qn_graph_check(g));
    return n;
}

static const char *refusal(const Product *p, const char *isa)
{
    QnGraph *g = qn_graph_new();
    QnKernelEnv env = { .n_threads = 1, .isa = isa };
    const char *why = kernel->accepts(product_node(g, p), &env);
    qn_graph_free(g);
    return why ? why : "";
}

/* In a process of its own: the library reads its variables once, and begins once. */
static int exit_code_of(int (*fn)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(fn());
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int ask_without_code(void)
{
    const Product good = { QN_SHAPE(9, 8), QN_SHAPE(8, 7), NONE, false, false, F32 };
    setenv("LIBXSMM_TARGET", "generic", 1);
    return strstr(refusal(&good, qn_cpu_isa_best()), "no code") ? 0 : 1;
}

static void *ask_for_sizes(void *failed)
{
    for (int64_t m = 1; m <= 40; m++) {
        const Product p = { QN_SHAPE(m, 8), QN_SHAPE(8, 7), NONE, false, false, F32 };
        if (*refusal(&p, qn_cpu_isa_best()))
            *(bool *)failed = true;
    }
    return NULL;
}

static int ask_at_once(void)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    bool failed[THREADS] = { false }, any = false;
    for (int i = 0; i < THREADS; i++)
        any |= pthread_create(&thread[i], NULL, ask_for_sizes, &failed[i]) != 0;
    for (int i = 0; i < THREADS && !any; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        any |= failed[i];
    return any;
}

/* Where the library generates no code, as its variable asks here and as a system may that forbids
 * it, other kernels run the node. */
static void test_no_code(void **state)
{
    if (!HAS_XSMM)
        skip();
    assert_int_equal(exit_code_of(ask_without_code), 0);
}

/* Several threads are the first to ask, for the same sizes. */
static void test_threads_begin_at_once(void **state)
{
    if (!HAS_XSMM)
        skip();
    for (int i = 0; i < 10; i++)
        assert_int_equal(exit_code_of(ask_at_once), 0);
}

static void check(const Product *p)
{
    if (!HAS_XSMM)
        skip();
    QnGraph *g = qn_graph_new();
    uint64_t seed = 3;
    Check c = { .n = product_node(g, p), .tol = 2e-5, .only = kernel->name };
    for (int i = 0; i < c.n->n_in; i++) {
        if (c.n->in[i])
            c.in[i] = check_fill(&c.n->in[i]->type, -1, 1, false, &seed);
    }
    check_run(&c);
    assert_int_equal(c.n_run, 1); /* at the best instruction set */
    qn_graph_free(g);
}

static void test_edges(void **state)
{
    static const int64_t edge[] = { 1, 3, 8, 15, 16, 17, 33, 65 };
    for (int i = 0; i < QN_COUNT(edge) * QN_COUNT(edge); i++) {
        int64_t m = edge[i % QN_COUNT(edge)], n = edge[i / QN_COUNT(edge)];
        int64_t k = edge[i * 5 % QN_COUNT(edge)];
        bool ta = i % 3 == 0;
        check(&(Product){ ta ? QN_SHAPE(4, k, m) : QN_SHAPE(4, m, k), QN_SHAPE(4, k, n),
                          i % 2 ? QN_SHAPE(n) : NONE, ta, false, F32 });
    }
    check(&(Product){ QN_SHAPE(2, 1024), QN_SHAPE(1024, 1000), NONE, false, false, F32 });
    check(&(Product){ QN_SHAPE(1024, 2), QN_SHAPE(1024, 1000), NONE, true, false, F32 });
    check(&(Product){ QN_SHAPE(3, 128, 128), QN_SHAPE(3, 128, 128), NONE, false, false, F32 });
}

static void test_bias(void **state)
{
    const QnShape forms[] = { (QnShape){ 0 },       QN_SHAPE(1),          QN_SHAPE(11),
                              QN_SHAPE(7, 1),       QN_SHAPE(7, 11),      QN_SHAPE(3, 1, 11),
                              QN_SHAPE(2, 1, 7, 1), QN_SHAPE(2, 3, 7, 11) };
    for (int i = 0; i < QN_COUNT(forms); i++)
        check(
            &(Product){ QN_SHAPE(2, 3, 7, 5), QN_SHAPE(2, 3, 5, 11), forms[i], false, false, F32 });
}

/* Steps that are even over all axes of the batch, over its last alone, and over none. */
static void test_batches(void **state)
{
    const QnShape b = QN_SHAPE(6, 9);
    const Product all[] = {
        { QN_SHAPE(2, 3, 4, 5, 6), QN_SHAPE(2, 3, 4, 6, 9), NONE, false, false, F32 },
        { QN_SHAPE(2, 3, 4, 5, 6), b, NONE, false, false, F32 },
        { QN_SHAPE(2, 3, 4, 5, 6), QN_SHAPE(4, 6, 9), QN_SHAPE(3, 1, 5, 9), false, false, F32 },
        { QN_SHAPE(2, 1, 4, 6, 5), QN_SHAPE(3, 1, 6, 9), QN_SHAPE(9), true, false, F32 },
        { QN_SHAPE(3, 1, 5, 6), QN_SHAPE(1, 7, 6, 9), NONE, false, false, F32 },
        { QN_SHAPE(1, 5, 1, 5, 6), QN_SHAPE(5, 1, 6, 9), NONE, false, false, F32 },
        { QN_SHAPE(300, 8, 8), QN_SHAPE(300, 8, 8), NONE, false, false, F32 },
    };
    for (int i = 0; i < QN_COUNT(all); i++)
        check(&all[i]);
}

static void test_refusals(void **state)
{
    const char *best = qn_cpu_isa_best();
    const Product good = { QN_SHAPE(9, 8), QN_SHAPE(8, 7), NONE, false, false, F32 };
    const struct {
        Product p;
        const char *why;
    } bad[] = {
        { { QN_SHAPE(9, 8), QN_SHAPE(7, 8), NONE, false, true, F32 }, "transposed" },
        { { QN_SHAPE(9, 8), QN_SHAPE(8, 7), NONE, false, false, QN_DTYPE_BF16 }, "f32" },
        { { QN_SHAPE(0, 8), QN_SHAPE(8, 7), NONE, false, false, F32 }, "empty" },
        { { QN_SHAPE(9, 0), QN_SHAPE(0, 7), NONE, false, false, F32 }, "empty" },
        { { QN_SHAPE(0, 9, 8), QN_SHAPE(8, 7), NONE, false, false, F32 }, "empty" },
        { { QN_SHAPE(129, 128), QN_SHAPE(128, 128), NONE, false, false, F32 }, "at most" },
        { { QN_SHAPE(1, 1025), QN_SHAPE(1025, 1), NONE, false, false, F32 }, "at most" },
    };
    for (int i = 0; i < QN_COUNT(bad); i++)
        assert_non_null(
            strstr(refusal(&bad[i].p, best), HAS_XSMM ? bad[i].why : "without libxsmm"));
    assert_string_equal(refusal(&good, best), HAS_XSMM ? "" : "Quern was built without libxsmm");
    assert_true(!HAS_XSMM || strstr(refusal(&good, "none"), "instruction set"));
}
