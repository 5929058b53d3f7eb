/* Many launches of one text as one: rt/batch.h. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "rt/batch.h"

typedef struct Batch {
    cl_kernel kernel;
    size_t n_groups;
} Batch;

/* The table is an argument; what it points to must be told, as no argument shows it. */
static QnStatus set_args(cl_kernel k, const QnBatchLaunch *l)
{
    cl_long rows = l->n_rows;
    cl_int err = clSetKernelArgSVMPointer(k, 0, l->table);
    if (!err)
        err = clSetKernelArg(k, 1, sizeof rows, &rows);
    if (!err)
        err = clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS,
                                  (size_t)l->n_pointers * sizeof *l->pointers, l->pointers);
    return err ? qn_opencl_fail(err, "setting an argument") : QN_OK;
}

static QnStatus check_group(const QnOpencl *cl, cl_kernel k)
{
    size_t most = 0;
    if (clGetKernelWorkGroupInfo(k, cl->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL) !=
            CL_SUCCESS ||
        !most)
        most = cl->max_group;
    if (QN_MIN(most, cl->max_group) >= QN_BATCH_ITEMS)
        return QN_OK;
    return qn_fail(QN_EUNSUPPORTED, "opencl: launches of many steps need groups of %d items",
                   QN_BATCH_ITEMS);
}

QnStatus qn_opencl_batch_new(QnDevice *d, const QnBatchLaunch *l, void **out)
{
    if (!qn_opencl_has_svm(d->impl)) /* buffers have no addresses that a table could hold */
        return qn_fail(QN_EUNSUPPORTED, "opencl: launches of many steps need shared memory");
    Batch *b = qn_alloc(sizeof *b);
    if (!b)
        return QN_ENOMEM;
    b->n_groups = (size_t)l->n_groups;
    QnStatus st = qn_opencl_kernel(d->impl, l->text, "qn_batch", l->storage, &b->kernel);
    if (st == QN_OK)
        st = check_group(d->impl, b->kernel);
    if (st == QN_OK)
        st = set_args(b->kernel, l);
    if (st == QN_OK)
        *out = b;
    else
        qn_opencl_batch_free(d, b);
    return st;
}

QnStatus qn_opencl_batch_run(QnDevice *d, void *batch)
{
    QnOpencl *cl = d->impl;
    const Batch *b = batch;
    size_t local = QN_BATCH_ITEMS, global = b->n_groups * local;
    cl_int err =
        clEnqueueNDRangeKernel(cl->queue, b->kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    return err ? qn_opencl_fail(err, "a launch of many steps") : QN_OK;
}

void qn_opencl_batch_free(QnDevice *d, void *batch)
{
    Batch *b = batch;
    (void)d;
    if (b->kernel)
        clReleaseKernel(b->kernel);
    qn_free(b);
}
#else
typedef int qn_no_opencl_batches;
#endif
