/* Device text that works in blocks, run through OpenCL at sizes that operators' own samples do not
 * have: several blocks and partly filled ones, each kernel that .call may choose. */
#ifndef QN_TEST_OPS_BLOCKS_H
#define QN_TEST_OPS_BLOCKS_H

#include "ops/harness.h"
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

/* What others leave behind in shared memory: places far outside of every tensor. */
static const char soil_text[] = "QN_KERNEL soil(QN_GLOBAL QN_T *y)\n"
                                "{\n"
                                "    QN_SHARED int part[8192];\n"
                                "    for (int i = qn_lid(); i < 8192; i += qn_group_size())\n"
                                "        part[i] = 0x3fffffff;\n"
                                "    QN_SYNC();\n"
                                "    y[qn_lid()] = part[8191 - qn_lid()];\n"
                                "}\n";

static inline void soil_shared_memory(void)
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

static inline void program_free(Program *last)
{
    if (last->p)
        clReleaseProgram(last->p);
    qn_str_fini(&last->text);
    *last = (Program){ 0 };
}

/* The node's program, which may be the last one. */
static inline void program_for(Program *last, const QnNode *n, QnDeviceCall *call, QnDtype f)
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

static inline int check_block(const QnOp *op, Program *last, const Block *b, QnDtype f)
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

static inline void check_blocks(const QnOp *op, const Block *b, int n)
{
    static const QnDtype types[] = { QN_DTYPE_F32, QN_DTYPE_F16, QN_DTYPE_BF16 };
    int bad = 0;
    if (!opencl_open(&cl))
        skip_because("no OpenCL device (Debian: pocl-opencl-icd)");
    soil = opencl_build(&cl, "soil", soil_text, QN_DTYPE_F32);
    assert_non_null(soil);
    for (int t = 0; t < QN_COUNT(types); t++) {
        Program last = { 0 };
        for (int i = 0; i < n; i++)
            bad += check_block(op, &last, &b[i], types[t]);
        program_free(&last);
    }
    clReleaseProgram(soil);
    opencl_close(&cl);
    assert_int_equal(bad, 0);
}
#else
static inline void check_blocks(const QnOp *op, const Block *b, int n)
{
    (void)b, (void)n;
    skip_because("%s: built without OpenCL", op->name);
}
#endif

#endif
