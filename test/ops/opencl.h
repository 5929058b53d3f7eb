/* The first OpenCL device of the machine (PoCL in CI) for tests of device text: programs of the
 * dialect and an operator's text, launches as QnDeviceCall describes them. */
#ifndef QN_TEST_OPS_OPENCL_H
#define QN_TEST_OPS_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "ops/harness.h"

typedef struct Opencl {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_kernel litter; /* of opencl_litter */
} Opencl;

static inline cl_kernel opencl_litter_kernel(Opencl *cl)
{
    const char *text = "kernel void litter(volatile local uint *p, uint n)"
                       "{ for (uint i = get_local_id(0); i < n; i += get_local_size(0))"
                       " p[i] = 0x7fc0deadu; }";
    cl_int err;
    cl_program p = clCreateProgramWithSource(cl->context, 1, &text, NULL, &err);
    assert_int_equal(err, CL_SUCCESS);
    assert_int_equal(clBuildProgram(p, 1, &cl->device, "", NULL, NULL), CL_SUCCESS);
    cl_kernel k = clCreateKernel(p, "litter", &err);
    assert_int_equal(err, CL_SUCCESS);
    clReleaseProgram(p); /* the kernel holds it */
    return k;
}

/* Shared memory is what earlier groups left there, and what a kernel reads of it before it has
 * written it hangs on which core ran which group: this leaves NaNs that are wild indices too. */
static inline void opencl_litter(Opencl *cl)
{
    enum { WORDS = 48 * 1024 / 4, GROUPS = 16, ITEMS = 64 };
    size_t global = GROUPS * ITEMS, local = ITEMS;
    cl_uint n = WORDS;
    assert_int_equal(clSetKernelArg(cl->litter, 0, WORDS * sizeof n, NULL), CL_SUCCESS);
    assert_int_equal(clSetKernelArg(cl->litter, 1, sizeof n, &n), CL_SUCCESS);
    assert_int_equal(
        clEnqueueNDRangeKernel(cl->queue, cl->litter, 1, NULL, &global, &local, 0, NULL, NULL),
        CL_SUCCESS);
}

/* false: no platform or device. */
static inline bool opencl_open(Opencl *cl)
{
    cl_platform_id platform;
    cl_uint n = 0;
    cl_int err = CL_SUCCESS;
    if (clGetPlatformIDs(1, &platform, &n) || !n ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl->device, &n) || !n)
        return false;
    cl->context = clCreateContext(NULL, 1, &cl->device, NULL, NULL, &err);
    cl->queue = err ? NULL : clCreateCommandQueue(cl->context, cl->device, 0, &err);
    cl->litter = err ? NULL : opencl_litter_kernel(cl);
    return err == CL_SUCCESS;
}

static inline void opencl_close(Opencl *cl)
{
    clReleaseKernel(cl->litter);
    clReleaseCommandQueue(cl->queue);
    clReleaseContext(cl->context);
}

/* NULL: does not compile; the log is printed. */
static inline cl_program opencl_build(Opencl *cl, const char *name, const char *text, QnDtype f)
{
    const char *options = f == QN_DTYPE_F16    ? "-DQN_DEVICE -DQN_F16"
                          : f == QN_DTYPE_BF16 ? "-DQN_DEVICE -DQN_BF16"
                                               : "-DQN_DEVICE";
    const char *parts[] = { qn_text_dialect, text };
    cl_int err;
    cl_program p = clCreateProgramWithSource(cl->context, 2, parts, NULL, &err);
    assert_int_equal(err, CL_SUCCESS);
    if (clBuildProgram(p, 1, &cl->device, options, NULL, NULL) == CL_SUCCESS)
        return p;
    static char log[8192];
    clGetProgramBuildInfo(p, cl->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    print_message("%s does not compile:\n%.2000s\n", name, log);
    clReleaseProgram(p);
    return NULL;
}

/* Between row-major order and the order in memory. */
static inline void permute(const QnType *t, const double *src, double *dst, bool to_memory)
{
    int64_t stride[QN_MAX_RANK], index[QN_MAX_RANK] = { 0 };
    qn_type_strides(t, stride);
    for (int64_t i = 0; i < qn_shape_count(&t->shape); i++) {
        int64_t at = qn_util_offset(t->shape.rank, index, stride);
        dst[to_memory ? at : i] = src[to_memory ? i : at];
        qn_util_next(&t->shape, index);
    }
}

/* A buffer of the value's type with these elements (NULL: bytes of 0xff, which must not stay). */
static inline cl_mem opencl_buffer(Opencl *cl, const QnValue *v, const double *x)
{
    size_t bytes = (size_t)qn_type_bytes(&v->type);
    char *host = malloc(bytes + 8);
    cl_int err;
    assert_non_null(host);
    memset(host, 0xff, bytes + 8);
    if (x) {
        double *moved = new_doubles(value_count(v));
        permute(&v->type, x, moved, true);
        qn_dtype_from_f64(v->type.dtype, moved, host, value_count(v));
        qn_free(moved);
    }
    cl_mem m = clCreateBuffer(cl->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes + 8,
                              host, &err);
    assert_int_equal(err, CL_SUCCESS);
    free(host);
    return m;
}

static inline void opencl_read(Opencl *cl, const QnValue *v, cl_mem m, double *y)
{
    size_t bytes = (size_t)qn_type_bytes(&v->type);
    char *host = malloc(bytes + 8);
    assert_non_null(host);
    assert_int_equal(clEnqueueReadBuffer(cl->queue, m, CL_TRUE, 0, bytes + 8, host, 0, NULL, NULL),
                     CL_SUCCESS);
    for (int i = 0; i < 8; i++)
        assert_int_equal((unsigned char)host[bytes + (size_t)i], 0xff); /* written beside it */
    double *moved = new_doubles(value_count(v));
    qn_dtype_to_f64(v->type.dtype, host, moved, value_count(v));
    permute(&v->type, moved, y, false);
    qn_free(moved);
    free(host);
}

static inline void opencl_args(cl_kernel k, const cl_mem *m, int n_mem, const QnDeviceCall *call)
{
    cl_uint at = 0;
    for (int i = 0; i < n_mem; i++)
        assert_int_equal(clSetKernelArg(k, at++, sizeof *m, &m[i]), CL_SUCCESS);
    for (int i = 0; i < call->n_arg; i++) {
        cl_long n = call->arg[i].i;
        float f = (float)call->arg[i].f;
        if (clSetKernelArg(k, at++, call->arg[i].is_float ? sizeof f : sizeof n,
                           call->arg[i].is_float ? (void *)&f : (void *)&n))
            fail_msg("%s: scalar argument %d does not fit", call->kernel, i);
    }
}

static inline void opencl_launch(Opencl *cl, cl_program p, const char *kernel, int64_t n_groups,
                                 const cl_mem *m, int n_mem, const QnDeviceCall *call)
{
    cl_int err;
    cl_kernel k = clCreateKernel(p, kernel, &err);
    if (err)
        fail_msg("no kernel %s", kernel);
    if (n_groups == 0) {
        clReleaseKernel(k);
        return;
    }
    opencl_args(k, m, n_mem, call);
    size_t group = (size_t)call->group_size, items = (size_t)n_groups;
    size_t global = group ? items * group : (items + 63) / 64 * 64, local = group ? group : 64;
    err = clEnqueueNDRangeKernel(cl->queue, k, 1, NULL, &global, &local, 0, NULL, NULL);
    if (err)
        fail_msg("launch of %s fails with %d", kernel, err);
    clReleaseKernel(k);
}

/* Runs the node as `call` says; out[i] gets its outputs. */
static inline void opencl_run(Opencl *cl, cl_program p, const QnDeviceCall *call, const Case *c,
                              double *out[QN_MAX_OUT])
{
    cl_mem m[QN_MAX_OUT + QN_SAMPLE_IN + 1];
    cl_int err = CL_SUCCESS;
    int n_mem = 0;
    for (int i = 0; i < c->node->n_out; i++)
        m[n_mem++] = opencl_buffer(cl, &c->node->out[i], NULL);
    for (int i = 0; i < c->node->n_in; i++)
        m[n_mem++] = c->in[i] ? opencl_buffer(cl, c->in[i], c->x[i]) : NULL;
    if (call->has_work)
        m[n_mem++] = call->work_bytes ? clCreateBuffer(cl->context, CL_MEM_READ_WRITE,
                                                       (size_t)call->work_bytes, NULL, &err)
                                      : NULL;
    assert_int_equal(err, CL_SUCCESS);
    opencl_litter(cl);
    opencl_launch(cl, p, call->kernel, call->n_groups, m, n_mem, call);
    if (call->then)
        opencl_launch(cl, p, call->then, call->then_groups, m, n_mem, call);
    for (int i = 0; i < c->node->n_out; i++)
        opencl_read(cl, &c->node->out[i], m[i], out[i]);
    for (int i = 0; i < n_mem; i++) {
        if (m[i])
            clReleaseMemObject(m[i]);
    }
}

#endif
