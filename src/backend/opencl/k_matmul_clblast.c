/* matmul by CLBlast: one product in f32, with a bias that is one row. Its rank is below that of
 * device text, as nobody has measured it on a GPU yet: it runs where a recorded choice says so. In
 * f16 CLBlast adds in f16, which matmul's sums must not. */
#include "backend/opencl/opencl.h"

#if defined(QN_HAVE_OPENCL) && defined(QN_HAVE_CLBLAST)
#include <clblast_c.h>

#include "backend/opencl/kernels_list.h"
#include "ops/matmul.h"
#include "ops/ops.h"

typedef struct Product {
    size_t m, n, k;
    CLBlastTranspose trans_a, trans_b;
    bool bias;
} Product;

static int64_t batch_of(const QnShape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank - 2; i++)
        n *= s->dim[i];
    return n;
}

static bool is_row(const QnShape *s, int64_t n)
{
    return s->rank > 0 && s->dim[s->rank - 1] == n && qn_shape_count(s) == n;
}

static const char *find_product(const QnNode *n, Product *p)
{
    const QnMatmulAttr *attr = n->attr;
    const QnShape *a = &n->in[0]->type.shape, *y = &n->out[0].type.shape;
    int64_t rows = y->dim[y->rank - 2], cols = y->dim[y->rank - 1], batch = batch_of(y);
    int64_t k = qn_matmul_length(n, attr->trans_a);
    if (rows == 0 || cols == 0 || k == 0 || batch == 0)
        return "clblast takes no empty matrices";
    if (batch_of(&n->in[1]->type.shape) != 1 || batch_of(a) != batch ||
        (batch > 1 && attr->trans_a))
        return "clblast is asked for one product only";
    p->bias = n->n_in > 2 && n->in[2];
    if (p->bias && !is_row(&n->in[2]->type.shape, cols))
        return "clblast adds to what a bias of one row was spread to";
    p->m = (size_t)(rows * batch);
    p->n = (size_t)cols;
    p->k = (size_t)k;
    p->trans_a = attr->trans_a ? CLBlastTransposeYes : CLBlastTransposeNo;
    p->trans_b = attr->trans_b ? CLBlastTransposeYes : CLBlastTransposeNo;
    return NULL;
}

static const char *clblast_accepts(const QnNode *n, const QnKernelEnv *env)
{
    Product p;
    (void)env;
    if (n->out[0].type.dtype != QN_DTYPE_F32)
        return "clblast's sums are in the type of its operands: f32 only";
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] && n->in[i]->type.layout != QN_LAYOUT_PLAIN)
            return "reads only the plain layout";
    }
    return find_product(n, &p);
}

typedef struct State {
    Product p;
    cl_kernel spread; /* of the bias over the rows; NULL: there is none */
    QnPrepared text;  /* runs where a tensor lies in memory that is no buffer: rt's alloc_far */
    cl_mem temp;      /* what the library needs for operands at these places */
    const void *places[3];
} State;

static void state_free(State *s)
{
    if (s->temp)
        clReleaseMemObject(s->temp);
    if (s->spread)
        clReleaseKernel(s->spread);
    if (s->text.state)
        qn_kernel_opencl_text.fini(&s->text);
    qn_free(s);
}

static QnStatus clblast_prepare(QnPrepared *p)
{
    State *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    find_product(p->node, &s->p);
    s->text = (QnPrepared){ .kernel = &qn_kernel_opencl_text, .node = p->node, .env = p->env };
    QnStatus st = QN_OK;
    if (s->p.bias)
        st = qn_opencl_kernel(p->env->impl, p->node->op->device, "matmul_spread", QN_DTYPE_F32,
                              &s->spread);
    if (st == QN_OK)
        st = qn_kernel_opencl_text.prepare(&s->text);
    if (st != QN_OK) {
        state_free(s);
        return st;
    }
    p->workspace_bytes = s->text.workspace_bytes;
    p->state = s;
    return QN_OK;
}

static void clblast_fini(QnPrepared *p)
{
    if (p->state)
        state_free(p->state);
}

static QnStatus check(CLBlastStatusCode code, const char *what)
{
    return code == CLBlastSuccess
               ? QN_OK
               : qn_fail(QN_EDEVICE, "clblast: %s fails with code %d", what, code);
}

static QnStatus spread_bias(QnOpencl *cl, const State *s, const QnNode *node, const void *bias,
                            void *y)
{
    enum { ITEMS = 64 };
    cl_long count = (cl_long)(s->p.m * s->p.n), n = (cl_long)s->p.n;
    size_t local = ITEMS, global = ((size_t)count + ITEMS - 1) / ITEMS * ITEMS;
    cl_int err = qn_opencl_set_pointer(cl, s->spread, 0, y, qn_type_bytes(&node->out[0].type));
    err = err ? err
              : qn_opencl_set_pointer(cl, s->spread, 1, bias, qn_type_bytes(&node->in[2]->type));
    err = err ? err : clSetKernelArg(s->spread, 2, sizeof count, &count);
    err = err ? err : clSetKernelArg(s->spread, 3, sizeof n, &n);
    err =
        err ? err
            : clEnqueueNDRangeKernel(cl->queue, s->spread, 1, NULL, &global, &local, 0, NULL, NULL);
    return err ? qn_opencl_fail(err, "spreading a bias") : QN_OK;
}

typedef struct Operand {
    cl_mem buffer;
    size_t at, ld; /* in elements */
} Operand;

static QnStatus operand(QnOpencl *cl, const void *p, size_t ld, Operand *out)
{
    out->ld = ld;
    QN_TRY(qn_opencl_buffer(cl, p, &out->buffer, &out->at));
    out->at /= sizeof(float);
    return QN_OK;
}

/* Once for a plan: its tensors stay where they are. */
static QnStatus find_temp(QnOpencl *cl, State *s, const Operand *o, const void *const places[3])
{
    const Product *p = &s->p;
    size_t bytes = 0;
    cl_int err = CL_SUCCESS;
    bool same = true;
    for (int i = 0; i < 3; i++)
        same = same && s->places[i] == places[i];
    if (same)
        return QN_OK;
    if (s->temp)
        clReleaseMemObject(s->temp);
    s->temp = NULL;
    QN_TRY(check(CLBlastSGemmTempBufferSize(CLBlastLayoutRowMajor, p->trans_a, p->trans_b, p->m,
                                            p->n, p->k, o[0].at, o[0].ld, o[1].at, o[1].ld, o[2].at,
                                            o[2].ld, &cl->queue, &bytes),
                 "asking for the size of its memory"));
    if (bytes)
        s->temp = clCreateBuffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, &err);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, "clblast's memory");
    for (int i = 0; i < 3; i++)
        s->places[i] = places[i];
    return QN_OK;
}

static QnStatus multiply(QnOpencl *cl, State *s, const void *const places[3])
{
    const Product *p = &s->p;
    Operand o[3];
    QN_TRY(operand(cl, places[0], p->trans_a == CLBlastTransposeYes ? p->m : p->k, &o[0]));
    QN_TRY(operand(cl, places[1], p->trans_b == CLBlastTransposeYes ? p->k : p->n, &o[1]));
    QN_TRY(operand(cl, places[2], p->n, &o[2]));
    QN_TRY(find_temp(cl, s, o, places));
    return check(CLBlastSgemmWithTempBuffer(
                     CLBlastLayoutRowMajor, p->trans_a, p->trans_b, p->m, p->n, p->k, 1,
                     o[0].buffer, o[0].at, o[0].ld, o[1].buffer, o[1].at, o[1].ld, p->bias ? 1 : 0,
                     o[2].buffer, o[2].at, o[2].ld, &cl->queue, NULL, s->temp),
                 "a product");
}

static QnStatus clblast_run(const QnPrepared *p, const void *const *in, void *const *out,
                            void *workspace)
{
    QnOpencl *cl = p->env->impl;
    State *s = p->state;
    const void *places[3] = { in[0], in[1], out[0] };
    for (int i = 0; i < 3; i++) {
        if (!qn_opencl_region(cl, places[i]))
            return qn_kernel_opencl_text.run(&s->text, in, out, workspace);
    }
    if (s->p.bias)
        QN_TRY(spread_bias(cl, s, p->node, in[2], out[0]));
    return multiply(cl, s, places);
}

const QnKernel qn_kernel_opencl_matmul_clblast = {
    .name = "clblast.matmul",
    .backend = "opencl",
    .op = &qn_op_matmul,
    .rank = 9,
    .flags = QN_KERNEL_ANY_THREADS | QN_KERNEL_LIBRARY,
    .accepts = clblast_accepts,
    .prepare = clblast_prepare,
    .run = clblast_run,
    .fini = clblast_fini,
};
#else
typedef int qn_no_clblast;
#endif
