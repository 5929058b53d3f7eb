/* Tiles of maps: as long as there is room, aligned, and of lengths that spare broadcast operands
 * the gathering. What they compute, the tests of operators see. */
#include "test.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/tape.h"
#include "ops/body.h"
#include "ops/ops.h"

/* The tape of x + b, x of `shape` in channels-last order where it has images. */
static QnTape tape_of(const QnShape *shape, const QnShape *b)
{
    QnGraph *g = qn_graph_new();
    QnKernelEnv env = { .n_threads = 1, .isa = qn_cpu_isa_best() };
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, shape), *y = qn_input(g, "b", QN_DTYPE_F32, b);
    QnNode *n = qn_add(g, x, y)->node;
    const QnType *in[] = { &x->type, &y->type };
    QnBodyOne one;
    QnTape t;
    assert_ok(qn_graph_check(g));
    if (shape->rank == 4)
        x->type.layout = n->out[0].type.layout = QN_LAYOUT_CHANNELS_LAST;
    qn_tape_init(&t, &env, qn_body_of_maps(n, &one), in, &n->out[0].type, 0);
    qn_graph_free(g);
    return t;
}

static void check(QnShape x, QnShape b, int64_t step, QnTapeAccess access)
{
    QnTape t = tape_of(&x, &b);
    assert_int_equal(t.step, step);
    assert_int_equal(t.in[0].access, QN_TAPE_CONTIGUOUS);
    assert_int_equal(t.in[1].access, access);
}

static void test_without_broadcast_tiles_are_whole(void **state)
{
    static const int64_t counts[] = { 1, 7, 512, 1000, 10007, 1000000 };
    for (int i = 0; i < QN_COUNT(counts); i++) {
        QnShape s = QN_SHAPE(counts[i]);
        check(s, s, QN_TAPE_TILE, QN_TAPE_CONTIGUOUS);
    }
    check(QN_SHAPE(1000, 1000), (QnShape){ 0 }, QN_TAPE_TILE, QN_TAPE_SCALAR);
}

static void test_tiles_are_whole_periods(void **state)
{
    check(QN_SHAPE(2, 64, 8, 8), QN_SHAPE(1, 64, 1, 1), 512, QN_TAPE_PERIODIC);
    check(QN_SHAPE(2, 20, 8, 8), QN_SHAPE(1, 20, 1, 1), 480, QN_TAPE_PERIODIC);
    check(QN_SHAPE(2, 3, 8, 8), QN_SHAPE(1, 3, 1, 1), 480, QN_TAPE_PERIODIC);
    check(QN_SHAPE(2, 300, 8, 8), QN_SHAPE(1, 300, 1, 1), 300, QN_TAPE_PERIODIC);
    check(QN_SHAPE(64, 96), QN_SHAPE(96), 480, QN_TAPE_PERIODIC);
}

static void test_long_rows_are_read_where_they_lie(void **state)
{
    check(QN_SHAPE(2, 1024, 8, 8), QN_SHAPE(1, 1024, 1, 1), 512, QN_TAPE_ROW);
    check(QN_SHAPE(64, 768), QN_SHAPE(768), 384, QN_TAPE_ROW);
    check(QN_SHAPE(64, 1031), QN_SHAPE(1031), 512, QN_TAPE_STRIDED); /* a prime */
    check(QN_SHAPE(64, 768), QN_SHAPE(64, 1), 512, QN_TAPE_STRIDED);
}
