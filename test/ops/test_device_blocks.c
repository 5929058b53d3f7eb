/* Products and attention in blocks, through OpenCL.
 * timeout: 900 pocl: -cl-opt-disable labels: device */
#include "ops/blocks.h"
#include "ops/heads.h"

typedef struct MatmulAttr { /* as ops/matmul.c has it */
    bool trans_a, trans_b;
} MatmulAttr;

#define SIDES(a, b)                                                                                \
    .attr = &(MatmulAttr)                                                                          \
    {                                                                                              \
        a, b                                                                                       \
    }

static const Block matmul_blocks[] = {
    { "matmul_tile", { .in = { { 2, { 70, 50 } }, { 2, { 50, 130 } } }, .n_in = 2 } },
    { "matmul_tile_bias",
      { .in = { { 3, { 3, 40, 65 } }, { 3, { 3, 40, 72 } }, { 2, { 65, 1 } } },
        .n_in = 3,
        SIDES(true, false) } },
    { "matmul_tile",
      { .in = { { 2, { 33, 129 } }, { 2, { 60, 33 } } }, .n_in = 2, SIDES(true, true) } },
    { "matmul_tile_bias",
      { .in = { { 4, { 2, 1, 20, 48 } }, { 3, { 3, 64, 48 } }, { 1, { 64 } } },
        .n_in = 3,
        SIDES(false, true) } },
    { "matmul_wide", { .in = { { 3, { 64, 129, 18 } }, { 3, { 64, 18, 132 } } }, .n_in = 2 } },
    { "matmul_wide_bias",
      { .in = { { 3, { 128, 3, 130 } }, { 3, { 128, 65, 3 } }, { 1, { 65 } } },
        .n_in = 3,
        SIDES(true, true) } },
    { "matmul_thin", { .in = { { 2, { 1, 200 } }, { 2, { 200, 70 } } }, .n_in = 2 } },
    { "matmul_thin_bias",
      { .in = { { 2, { 3, 200 } }, { 2, { 19, 200 } }, { 1, { 19 } } },
        .n_in = 3,
        SIDES(false, true) } },
    { "matmul_thin_bias",
      { .in = { { 3, { 2, 41, 131 } }, { 3, { 2, 131, 4 } }, { 2, { 41, 4 } } }, .n_in = 3 } },
    { "matmul_thin",
      { .in = { { 3, { 2, 64, 35 } }, { 3, { 1, 2, 64 } } }, .n_in = 2, SIDES(true, true) } },
    { "matmul_small_bias",
      { .in = { { 2, { 7, 20 } }, { 2, { 20, 50 } }, { 1, { 50 } } }, .n_in = 3 } },
};

static void test_matmul(void **state)
{
    check_blocks(&qn_op_matmul, matmul_blocks, QN_COUNT(matmul_blocks));
}

/* Several blocks of queries and keys, a mask along each axis, heads that share keys. */
static const Block attention_blocks[] = {
    { "attention_tile",
      { .in = { { 4, { 1, 2, 100, 20 } }, { 4, { 1, 2, 100, 20 } }, { 4, { 1, 2, 100, 20 } } },
        .n_in = 3,
        .attr = &(QnHeadsAttr){ true, 0 } } },
    { "attention_tile_mask",
      { .in = { { 4, { 2, 4, 20, 17 }, .lo = -3, .hi = 3 },
                { 4, { 2, 2, 150, 17 }, .lo = -3, .hi = 3 },
                { 4, { 2, 2, 150, 33 } },
                { 4, { 2, 4, 20, 150 } } },
        .n_in = 4,
        .attr = &(QnHeadsAttr){ true, 0.5 } } },
    { "attention_tile", /* queries before the first key see nothing */
      { .in = { { 4, { 1, 1, 130, 8 } }, { 4, { 1, 1, 40, 8 } }, { 4, { 1, 1, 40, 1 } } },
        .n_in = 3,
        .attr = &(QnHeadsAttr){ true, 0 } } },
    { "attention_wide",
      { .in = { { 4, { 1, 1, 70, 96 } }, { 4, { 1, 1, 65, 96 } }, { 4, { 1, 1, 65, 96 } } },
        .n_in = 3,
        .attr = &(QnHeadsAttr){ false, 0 } } },
    { "attention_wide_mask",
      { .in = { { 4, { 1, 2, 9, 4 } },
                { 4, { 1, 1, 70, 4 } },
                { 4, { 1, 1, 70, 300 } },
                { 2, { 1, 70 } } },
        .n_in = 4,
        .attr = &(QnHeadsAttr){ true, 0 } } },
    { "attention_row",
      { .in = { { 4, { 2, 4, 1, 64 } }, { 4, { 2, 2, 300, 64 } }, { 4, { 2, 2, 300, 64 } } },
        .n_in = 3,
        .attr = &(QnHeadsAttr){ true, 0 } } },
};

static void test_attention(void **state)
{
    check_blocks(&qn_op_attention, attention_blocks, QN_COUNT(attention_blocks));
}

#define STAT(h, t, ...)                                                                            \
    {                                                                                              \
        3, { 1, h, t }, .wide = true, __VA_ARGS__                                                  \
    }

static const Block attention_grad_blocks[] = {
    { "attention_grad_tile",
      { .in = { { 4, { 1, 2, 100, 20 } },
                { 4, { 1, 2, 100, 20 } },
                { 4, { 1, 2, 100, 20 } },
                { 4, { 1, 2, 100, 20 } },
                STAT(2, 100, .lo = 3, .hi = 4),
                STAT(2, 100) },
        .n_in = 6,
        .attr = &(QnHeadsAttr){ true, 0 } } },
    { "attention_grad_tile_mask",
      { .in = { { 4, { 1, 4, 20, 33 } },
                { 4, { 1, 4, 20, 17 } },
                { 4, { 1, 2, 150, 17 } },
                { 4, { 1, 2, 150, 33 } },
                STAT(4, 20, .lo = 4, .hi = 5),
                STAT(4, 20),
                { 4, { 1, 4, 20, 150 } } },
        .n_in = 7,
        .attr = &(QnHeadsAttr){ true, 0.5 } } },
    { "attention_grad_tile", /* queries before the first key see nothing */
      { .in = { { 4, { 1, 1, 130, 1 } },
                { 4, { 1, 1, 130, 8 } },
                { 4, { 1, 1, 40, 8 } },
                { 4, { 1, 1, 40, 1 } },
                STAT(1, 130, .lo = 3, .hi = 4),
                STAT(1, 130) },
        .n_in = 6,
        .attr = &(QnHeadsAttr){ true, 0 } } },
    { "attention_grad_wide",
      { .in = { { 4, { 1, 2, 70, 150 } },
                { 4, { 1, 2, 70, 96 } },
                { 4, { 1, 1, 65, 96 } },
                { 4, { 1, 1, 65, 150 } },
                STAT(2, 70, .lo = 4, .hi = 5),
                STAT(2, 70) },
        .n_in = 6,
        .attr = &(QnHeadsAttr){ false, 0 } } },
    { "attention_grad_wide_mask",
      { .in = { { 4, { 1, 1, 70, 16 } },
                { 4, { 1, 1, 70, 260 } },
                { 4, { 1, 1, 70, 260 } },
                { 4, { 1, 1, 70, 16 } },
                STAT(1, 70, .lo = 4, .hi = 5),
                STAT(1, 70),
                { 2, { 70, 1 } } },
        .n_in = 7,
        .attr = &(QnHeadsAttr){ true, 0.1 } } },
};

static void test_attention_grad(void **state)
{
    check_blocks(&qn_op_attention_grad, attention_grad_blocks, QN_COUNT(attention_grad_blocks));
}
