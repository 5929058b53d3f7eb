/* Device text that works in blocks, run through OpenCL at sizes that operators' own samples do not
 * have: several blocks and partly filled ones, each kernel that .call may choose. timeout: 900 */
#include "ops/harness.h"
#include "ops/heads.h"
#include "rt/devtext.h"

/* The operator's node on these inputs, by the kernel of this name. */
typedef struct Block {
    const char *kernel;
    QnSample sample;
} Block;

#ifdef QN_HAVE_OPENCL
#include "ops/opencl.h"

static Opencl cl;
static cl_program soil;
static bool have;

/* What others leave behind in shared memory: places far outside of every tensor. */
static const char soil_text[] = "QN_KERNEL soil(QN_GLOBAL QN_T *y)\n"
                                "{\n"
                                "    QN_SHARED int part[8192];\n"
                                "    for (int i = qn_lid(); i < 8192; i += qn_group_size())\n"
                                "        part[i] = 0x3fffffff;\n"
                                "    QN_SYNC();\n"
                                "    y[qn_lid()] = part[8191 - qn_lid()];\n"
                                "}\n";

static int group_setup(void **state)
{
    have = opencl_open(&cl);
    soil = have ? opencl_build(&cl, "soil", soil_text, QN_DTYPE_F32) : NULL;
    return 0;
}

static int group_teardown(void **state)
{
    if (soil)
        clReleaseProgram(soil);
    if (have)
        opencl_close(&cl);
    return 0;
}

static void soil_shared_memory(void)
{
    enum { GROUPS = 64, SIZE = 256 };
    QnDeviceCall call = { .kernel = "soil", .n_groups = GROUPS, .group_size = SIZE };
    cl_int err;
    cl_mem y = clCreateBuffer(cl.context, CL_MEM_READ_WRITE, SIZE * sizeof(float), NULL, &err);
    assert_int_equal(err, CL_SUCCESS);
    opencl_launch(&cl, soil, call.kernel, call.n_groups, &y, 1, &call);
    clReleaseMemObject(y);
}

/* The one last built. */
typedef struct Program {
    QnStr text;
    cl_program p;
} Program;

static void program_free(Program *last)
{
    if (last->p)
        clReleaseProgram(last->p);
    qn_str_fini(&last->text);
    *last = (Program){ 0 };
}

/* The node's program, which may be the last one. */
static void program_for(Program *last, const QnNode *n, QnDeviceCall *call, QnDtype f)
{
    Program mine = { 0 };
    QnDtype storage;
    assert_ok(qn_devtext_node(n, &mine.text, call, &storage));
    assert_int_equal(storage, f);
    if (last->p && !strcmp(qn_str_text(&last->text), qn_str_text(&mine.text))) {
        qn_str_fini(&mine.text);
        return;
    }
    program_free(last);
    mine.p = opencl_build(&cl, n->op->name, qn_str_text(&mine.text), f);
    assert_non_null(mine.p);
    *last = mine;
}

static int check_block(const QnOp *op, Program *last, const Block *b, QnDtype f)
{
    QnOp mine = *op; /* with a sample of ours */
    Case c;
    QnDeviceCall call;
    double *got[QN_MAX_OUT], *want[QN_MAX_OUT];
    mine.samples = &b->sample;
    mine.n_samples = 1;
    mine.tol.f32 = QN_MAX(mine.tol.f32, 3e-5);
    case_open(&c, &mine, 0, f);
    snprintf(c.name, sizeof c.name, "%s %s", b->kernel, qn_dtype_name(f));
    program_for(last, c.node, &call, f);
    assert_string_equal(call.kernel, b->kernel);
    case_outputs(&c, got);
    case_outputs(&c, want);
    case_run(&c, want);
    soil_shared_memory();
    opencl_run(&cl, last->p, &call, &c, got);
    int bad = 0;
    for (int i = 0; i < c.node->n_out; i++) {
        int64_t n = value_count(&c.node->out[i]);
        int64_t at = first_difference(got[i], want[i], n, case_tol(&c, c.node->out[i].type.dtype));
        if (at >= 0)
            print_message("%s: output %d, element %lld: device %.9g, reference %.9g\n", c.name, i,
                          (long long)at, got[i][at], want[i][at]);
        bad += at >= 0;
    }
    free_outputs(got);
    free_outputs(want);
    case_close(&c);
    return bad;
}

static void check_blocks(const QnOp *op, const Block *b, int n)
{
    static const QnDtype types[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    int bad = 0;
    if (!have)
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    for (int t = 0; t < QN_COUNT(types); t++) {
        Program last = { 0 };
        for (int i = 0; i < n; i++)
            bad += check_block(op, &last, &b[i], types[t]);
        program_free(&last);
    }
    assert_int_equal(bad, 0);
}

#else
static int group_setup(void **state)
{
    return 0;
}

static int group_teardown(void **state)
{
    return 0;
}

static void check_blocks(const QnOp *op, const Block *b, int n)
{
    skip_because("%s: built without OpenCL", op->name);
}
#endif

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
