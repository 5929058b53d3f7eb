/* Exact 8-bit products on shapes beyond the operators' samples: several tiles and their edges,
 * broadcast batches, zero points, groups. */
#include "backend/kernel_check.h"

typedef struct Product {
    QnShape a, b, a_zero, b_zero; /* zero points of rank 8: none */
    QnDtype a_type, b_type;
} Product;

#define NONE                                                                                       \
    (QnShape)                                                                                      \
    {                                                                                              \
        .rank = QN_MAX_RANK                                                                        \
    }

static QnValue *zero_of(QnGraph *g, const char *name, QnDtype d, const QnShape *s)
{
    return s->rank == QN_MAX_RANK ? NULL : qn_input(g, name, d, s);
}

static void test_matmul_integer(void **state)
{
    const QnDtype i8 = QN_DTYPE_I8, u8 = QN_DTYPE_U8;
    const Product all[] = {
        { QN_SHAPE(67, 129), QN_SHAPE(129, 131), NONE, NONE, u8, i8 },
        { QN_SHAPE(33, 64), QN_SHAPE(64, 65), QN_SHAPE(33), QN_SHAPE(65), i8, u8 },
        { QN_SHAPE(2, 1, 35, 17), QN_SHAPE(3, 17, 70), QN_SHAPE(2, 1, 35, 1), QN_SHAPE(3, 1, 70),
          u8, u8 },
        { QN_SHAPE(3, 1, 40), QN_SHAPE(40, 200), (QnShape){ 0 }, (QnShape){ 0 }, i8, i8 },
        { QN_SHAPE(5, 0), QN_SHAPE(0, 7), NONE, NONE, i8, i8 },
        { QN_SHAPE(0, 5), QN_SHAPE(5, 7), NONE, NONE, i8, i8 },
        { QN_SHAPE(2, 32768), QN_SHAPE(32768, 3), (QnShape){ 0 }, (QnShape){ 0 }, u8, u8 },
    };
    for (int i = 0; i < QN_COUNT(all); i++) {
        const Product *p = &all[i];
        QnGraph *g = qn_graph_new();
        QnValue *y = qn_matmul_integer(
            g, qn_input(g, "a", p->a_type, &p->a), qn_input(g, "b", p->b_type, &p->b),
            zero_of(g, "p", p->a_type, &p->a_zero), zero_of(g, "q", p->b_type, &p->b_zero));
        double low = p->a_type == u8 && p->b_type == u8 ? 0 : -100;
        assert_true(check_node(g, y, low, low < 0 ? 100 : 255, 0) > 0);
        qn_graph_free(g);
    }
}

typedef struct ConvCase {
    QnShape x, w;
    bool several; /* zero points of w */
    QnConvAttr attr;
} ConvCase;

static void test_conv_integer(void **state)
{
    const ConvCase all[] = {
        { QN_SHAPE(2, 3, 19, 17), QN_SHAPE(5, 3, 3, 3), true, { .pads = { 4, { 1, 1, 1, 1 } } } },
        { QN_SHAPE(1, 24, 12, 10),
          QN_SHAPE(36, 6, 5, 3),
          false,
          { { 2, { 2, 1 } }, { 4, { 2, 0, 1, 3 } }, { 2, { 1, 2 } }, 4 } },
        { QN_SHAPE(2, 33, 200), QN_SHAPE(7, 33, 1), true, { { .n = 0 } } },
        { QN_SHAPE(1, 6, 4, 5, 6),
          QN_SHAPE(6, 1, 2, 3, 2),
          false,
          { .pads = { 6, { 0, 1, 0, 1, 0, 1 } }, .groups = 6 } },
    };
    for (int i = 0; i < QN_COUNT(all); i++) {
        const ConvCase *k = &all[i];
        QnGraph *g = qn_graph_new();
        QnShape zeros = k->several ? QN_SHAPE(k->w.dim[0]) : (QnShape){ 0 };
        QnValue *y = qn_conv_integer(g, qn_input(g, "x", QN_DTYPE_U8, &k->x),
                                     qn_input(g, "w", QN_DTYPE_I8, &k->w),
                                     qn_input(g, "p", QN_DTYPE_U8, &(QnShape){ 0 }),
                                     qn_input(g, "q", QN_DTYPE_I8, &zeros), &k->attr);
        assert_true(check_node(g, y, 0, 127, 0) > 0);
        qn_graph_free(g);
    }
}
