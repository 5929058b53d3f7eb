/* Convolutions, maps behind them and their gradients in blocks, through OpenCL.
 * timeout: 900 pocl: -cl-opt-disable labels: device */
#include "ops/blocks.h"

#define CONV(...)                                                                                  \
    .attr = &(QnConvAttr)                                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const Block conv_blocks[] = {
    { "conv_tile_bias",
      { .in = { { 4, { 2, 10, 9, 13 } }, { 4, { 20, 10, 3, 3 } }, { 1, { 20 } } },
        .n_in = 3,
        CONV(.pads = { 4, { 1, 1, 1, 1 } }, .groups = 1) } },
    { "conv_tile", /* one channel: fewer taps than a slice is deep */
      { .in = { { 4, { 3, 1, 11, 7 } }, { 4, { 64, 1, 3, 2 } } },
        .n_in = 2,
        CONV({ 2, { 2, 1 } }, { 4, { 0, 1, 2, 0 } }, { 2, { 1, 2 } }, 1) } },
    { "conv_tile",
      { .in = { { 4, { 2, 12, 8, 8 } }, { 4, { 16, 6, 1, 1 } } }, .n_in = 2, CONV(.groups = 2) } },
    { "conv_wide_bias",
      { .in = { { 5, { 1, 6, 4, 5, 6 } }, { 5, { 300, 3, 2, 3, 2 } }, { 1, { 300 } } },
        .n_in = 3,
        CONV(.pads = { 6, { 1, 0, 0, 0, 0, 1 } }, .groups = 2) } },
    { "conv_direct",
      { .in = { { 4, { 2, 6, 20, 17 } }, { 4, { 6, 1, 3, 3 } } },
        .n_in = 2,
        CONV(.strides = { 2, { 2, 2 } }, .pads = { 4, { 1, 1, 1, 1 } }, .groups = 6) } },
};

static void test_conv(void **state)
{
    check_blocks(&qn_op_conv, conv_blocks, QN_COUNT(conv_blocks));
}

typedef struct ConvMapAttr { /* as ops/conv_map.c has it */
    QnConvAttr conv;
    bool bias;
    const QnBody *body;
} ConvMapAttr;

/* A gate, a residual sum, a ReLU. */
static const QnBody conv_map_body = {
    .n_in = 3,
    .n_instr = 3,
    .n_out = 1,
    .instr = (const QnBodyInstr[]){ { .op = &qn_op_mul, .arg = { 0, 1 } },
                                    { .op = &qn_op_add, .arg = { 3, 2 } },
                                    { .op = &qn_op_relu, .arg = { 4 } } },
    .out = (const int[]){ 2 },
};

#define CONV_MAP(...)                                                                              \
    .attr = &(ConvMapAttr)                                                                         \
    {                                                                                              \
        { __VA_ARGS__ }, true, &conv_map_body                                                      \
    }

/* All of one program: a gate for each channel of each image, a sum of whole images. */
static const Block conv_map_blocks[] = {
    { "conv_tile_map",
      { .in = { { 4, { 2, 10, 9, 13 } },
                { 4, { 20, 10, 3, 3 } },
                { 1, { 20 } },
                { 4, { 2, 20, 1, 1 } },
                { 4, { 2, 20, 9, 13 } } },
        .n_in = 5,
        CONV_MAP(.pads = { 4, { 1, 1, 1, 1 } }, .groups = 1) } },
    { "conv_wide_map",
      { .in = { { 4, { 3, 6, 9, 8 } },
                { 4, { 150, 3, 2, 3 } },
                { 1, { 150 } },
                { 4, { 3, 150, 1, 1 } },
                { 4, { 3, 150, 8, 3 } } },
        .n_in = 5,
        CONV_MAP(.strides = { 2, { 1, 2 } }, .groups = 2) } },
    { "conv_direct_map",
      { .in = { { 4, { 2, 6, 20, 17 } },
                { 4, { 6, 1, 3, 3 } },
                { 1, { 6 } },
                { 4, { 2, 6, 1, 1 } },
                { 4, { 2, 6, 20, 17 } } },
        .n_in = 5,
        CONV_MAP(.pads = { 4, { 1, 1, 1, 1 } }, .groups = 6) } },
};

static void test_conv_map(void **state)
{
    check_blocks(&qn_op_conv_map, conv_map_blocks, QN_COUNT(conv_map_blocks));
}

typedef struct ConvDxAttr { /* as ops/conv_dx.c and ops/conv_dw.c have it */
    QnConvAttr conv;
    QnDims dims;
} ConvDxAttr;

#define CONV_OF(dims_, ...)                                                                        \
    .attr = &(ConvDxAttr)                                                                          \
    {                                                                                              \
        { __VA_ARGS__ }, UNPAREN dims_                                                             \
    }
#define UNPAREN(...) __VA_ARGS__

static const Block conv_dx_blocks[] = {
    { "conv_dx_tile",
      { .in = { { 4, { 2, 20, 9, 13 } }, { 4, { 20, 10, 3, 3 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 2, 10, 9, 13 } }), .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1) } },
    { "conv_dx_tile", /* strides: places of one remainder meet no tap */
      { .in = { { 4, { 2, 12, 5, 3 } }, { 4, { 12, 8, 1, 3 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 2, 8, 9, 9 } }), .strides = { 2, { 2, 3 } }, .pads = { 4, { 0, 1, 0, 1 } },
                .groups = 1) } },
    { "conv_dx_tile", /* those of remainder 0 meet none: the first group reads nothing */
      { .in = { { 3, { 1, 9, 6 } }, { 3, { 9, 16, 1 } } },
        .n_in = 2,
        CONV_OF(({ 3, { 1, 16, 10 } }), .strides = { 1, { 2 } }, .pads = { 2, { 1, 1 } },
                .groups = 1) } },
    { "conv_dx_tile", /* a dilation that shares a factor with the stride */
      { .in = { { 4, { 1, 18, 4, 3 } }, { 4, { 18, 8, 3, 3 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 1, 16, 16, 9 } }), { 2, { 4, 3 } }, { 4, { 1, 1, 0, 0 } }, { 2, { 2, 1 } },
                2) } },
    { "conv_dx_wide",
      { .in = { { 3, { 2, 5, 70 } }, { 3, { 5, 150, 3 } } },
        .n_in = 2,
        CONV_OF(({ 3, { 2, 150, 72 } }), .groups = 1) } },
    { "conv_dx_direct",
      { .in = { { 4, { 2, 6, 10, 9 } }, { 4, { 6, 1, 3, 3 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 2, 6, 20, 17 } }), .strides = { 2, { 2, 2 } },
                .pads = { 4, { 1, 1, 1, 1 } }, .groups = 6) } },
};

static void test_conv_dx(void **state)
{
    check_blocks(&qn_op_conv_dx, conv_dx_blocks, QN_COUNT(conv_dx_blocks));
}

/* Sums in several parts, and one; images of which four do not divide the windows. */
static const Block conv_dw_blocks[] = {
    { "conv_dw_tile",
      { .in = { { 4, { 3, 20, 16, 14 } }, { 4, { 3, 10, 16, 14 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 20, 10, 3, 3 } }), .pads = { 4, { 1, 1, 1, 1 } }, .groups = 1) } },
    { "conv_dw_tile",
      { .in = { { 4, { 30, 30, 7, 5 } }, { 4, { 30, 30, 14, 11 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 30, 15, 3, 2 } }), { 2, { 2, 2 } }, { 4, { 1, 0, 0, 1 } }, { 2, { 1, 2 } },
                2) } },
    { "conv_dw_wide",
      { .in = { { 5, { 2, 150, 3, 5, 5 } }, { 5, { 2, 5, 4, 6, 5 } } },
        .n_in = 2,
        CONV_OF(({ 5, { 150, 5, 2, 2, 3 } }), .pads = { 6, { 0, 0, 1, 0, 0, 1 } }, .groups = 1) } },
    { "conv_dw_direct", /* more taps than a group takes */
      { .in = { { 4, { 13, 6, 19, 18 } }, { 4, { 13, 6, 19, 18 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 6, 1, 5, 3 } }), .pads = { 4, { 2, 1, 2, 1 } }, .groups = 6) } },
    { "conv_dw_direct",
      { .in = { { 4, { 2, 8, 10, 9 } }, { 4, { 2, 6, 20, 17 } } },
        .n_in = 2,
        CONV_OF(({ 4, { 8, 3, 3, 3 } }), .strides = { 2, { 2, 2 } }, .pads = { 4, { 1, 1, 1, 1 } },
                .groups = 2) } },
};

static void test_conv_dw(void **state)
{
    check_blocks(&qn_op_conv_dw, conv_dw_blocks, QN_COUNT(conv_dw_blocks));
}
