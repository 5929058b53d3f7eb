/* What has no device text runs on the host by its float64 reference, in memory that the device
 * shares: right, slow, and shown as such by `quern explain`. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "ir/eval.h"

#include <string.h>

static const char *host_accepts(const QnNode *n, const QnKernelEnv *env)
{
    (void)env;
    if (!n->op->ref && !n->op->map)
        return "a composite, to be lowered first";
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && v->type.layout != QN_LAYOUT_PLAIN)
            return "reads only the plain layout";
    }
    return NULL;
}

static QnStatus map_region(QnOpencl *cl, const void *p, const QnType *t, cl_map_flags flags)
{
    size_t bytes = (size_t)qn_type_bytes(t);
    if (bytes == 0)
        return QN_OK;
    cl_int err =
        clEnqueueSVMMap(cl->queue, CL_TRUE, flags, (void *)(uintptr_t)p, bytes, 0, NULL, NULL);
    return err ? qn_opencl_fail(err, "mapping memory") : QN_OK;
}

static void unmap_region(QnOpencl *cl, const void *p, const QnType *t)
{
    if (qn_type_bytes(t) > 0)
        clEnqueueSVMUnmap(cl->queue, (void *)(uintptr_t)p, 0, NULL, NULL);
}

/* An input is widened while it is mapped; the maps of two tensors may not overlap in time, since
 * they may share memory. */
static QnStatus widen(QnOpencl *cl, const QnType *t, const void *src, bool bits, double *wide)
{
    QN_TRY(map_region(cl, src, t, CL_MAP_READ));
    if (bits)
        memcpy(wide, src, (size_t)qn_type_bytes(t));
    else
        qn_dtype_to_f64(t->dtype, src, wide, qn_shape_count(&t->shape));
    unmap_region(cl, src, t);
    return QN_OK;
}

static QnStatus narrow(QnOpencl *cl, const QnType *t, const double *wide, bool bits, void *dst)
{
    QN_TRY(map_region(cl, dst, t, CL_MAP_WRITE_INVALIDATE_REGION));
    if (bits)
        memcpy(dst, wide, (size_t)qn_type_bytes(t));
    else
        qn_dtype_from_f64(t->dtype, wide, dst, qn_shape_count(&t->shape));
    unmap_region(cl, dst, t);
    return QN_OK;
}

static QnStatus host_run(const QnPrepared *p, const void *const *in, void *const *out,
                         void *workspace)
{
    QnOpencl *cl = p->env->impl;
    const QnNode *n = p->node;
    const double **x = qn_alloc_array((size_t)n->n_in + 1, sizeof *x);
    double *y[QN_MAX_OUT] = { 0 };
    QnStatus st = x ? QN_OK : QN_ENOMEM;
    (void)workspace;
    for (int i = 0; st == QN_OK && i < n->n_in; i++) {
        if (!in[i])
            continue;
        const QnType *t = &n->in[i]->type;
        double *wide = qn_alloc_array((size_t)qn_shape_count(&t->shape) + 1, sizeof *wide);
        x[i] = wide;
        st = wide ? widen(cl, t, in[i], qn_eval_is_bits(n, t, i), wide) : QN_ENOMEM;
    }
    for (int i = 0; st == QN_OK && i < n->n_out; i++) {
        y[i] = qn_alloc_array((size_t)qn_shape_count(&n->out[i].type.shape) + 1, sizeof **y);
        st = y[i] ? QN_OK : QN_ENOMEM;
    }
    if (st == QN_OK)
        st = qn_eval_node(n, x, y, true);
    for (int i = 0; st == QN_OK && i < n->n_out; i++)
        st = narrow(cl, &n->out[i].type, y[i], qn_eval_is_bits(n, &n->out[i].type, -1), out[i]);
    for (int i = 0; x && i < n->n_in; i++)
        qn_free((void *)(uintptr_t)x[i]);
    for (int i = 0; i < n->n_out; i++)
        qn_free(y[i]);
    qn_free(x);
    return st;
}

const QnKernel qn_kernel_opencl_host = {
    .name = "opencl.host",
    .backend = "opencl",
    .rank = 0,
    .flags = QN_KERNEL_ANY_THREADS,
    .accepts = host_accepts,
    .run = host_run,
};
#else
typedef int qn_no_opencl_host;
#endif
