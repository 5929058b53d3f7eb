/* Memory of the device: shared virtual memory, or buffer objects behind reserved addresses; and
 * copies. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "base/fault.h"
#include "base/reserve.h"

void *qn_opencl_new_buffer(QnOpencl *cl, size_t bytes, cl_mem_flags flags)
{
    cl_int err = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    void *p = qn_reserve(bytes);
    if (!p)
        return NULL;
    cl_mem buffer = qn_fault_hit()
                        ? NULL
                        : clCreateBuffer(cl->context, CL_MEM_READ_WRITE | flags, bytes, NULL, &err);
    if (!buffer)
        qn_opencl_fail(err, "a buffer");
    else if (qn_opencl_region_add(cl, p, bytes, buffer) == QN_OK)
        return p;
    else
        clReleaseMemObject(buffer);
    qn_unreserve(p, bytes);
    return NULL;
}

void qn_opencl_free_buffer(QnOpencl *cl, void *p)
{
    size_t bytes = qn_opencl_region(cl, p)->bytes;
    qn_opencl_region_remove(cl, p);
    qn_unreserve(p, bytes);
}

static void *new_shared(QnOpencl *cl, size_t bytes)
{
    void *p = clSVMAlloc(cl->context, CL_MEM_READ_WRITE, bytes, QN_OPENCL_ALIGN);
    if (p && qn_opencl_region_add(cl, p, bytes, NULL) != QN_OK) {
        clSVMFree(cl->context, p);
        p = NULL;
    }
    return p;
}

/* Some drivers promise more than there is, and fail when it is used. */
void *qn_opencl_alloc(QnDevice *d, size_t bytes)
{
    QnOpencl *cl = d->impl;
    cl_ulong held = d->now_bytes - d->far_bytes;
    bytes = bytes ? bytes : 1;
    if (cl->memory_bytes && bytes > cl->memory_bytes - QN_MIN(held, cl->memory_bytes))
        qn_fail(QN_ENOMEM, "opencl: %s has %llu bytes", cl->name,
                (unsigned long long)cl->memory_bytes);
    else if (cl->largest_bytes && bytes > cl->largest_bytes)
        qn_fail(QN_ENOMEM, "opencl: %s gives at most %llu bytes at a time", cl->name,
                (unsigned long long)cl->largest_bytes);
    else
        return qn_opencl_has_svm(cl) ? new_shared(cl, bytes) : qn_opencl_new_buffer(cl, bytes, 0);
    return NULL;
}

void qn_opencl_free(QnDevice *d, void *p, size_t bytes)
{
    QnOpencl *cl = d->impl;
    (void)bytes;
    clFinish(cl->queue);
    if (!qn_opencl_has_svm(cl)) {
        qn_opencl_free_buffer(cl, p);
        return;
    }
    qn_opencl_region_remove(cl, p);
    clSVMFree(cl->context, p);
}

/* ---- copies ---- */

static size_t offset(const QnOpenclRegion *r, const void *p)
{
    return (size_t)((const char *)p - r->base);
}

/* Addresses that no buffer has reserved are the host's. */
static cl_int copy_buffers(QnOpencl *cl, cl_command_queue q, void *dst, const void *src,
                           size_t bytes, cl_bool waits)
{
    const QnOpenclRegion *to = qn_opencl_region(cl, dst), *from = qn_opencl_region(cl, src);
    if (to && !from)
        return clEnqueueWriteBuffer(q, to->buffer, waits, offset(to, dst), bytes, src, 0, NULL,
                                    NULL);
    if (from && !to)
        return clEnqueueReadBuffer(q, from->buffer, waits, offset(from, src), bytes, dst, 0, NULL,
                                   NULL);
    if (!from)
        return CL_INVALID_MEM_OBJECT;
    cl_int err = clEnqueueCopyBuffer(q, from->buffer, to->buffer, offset(from, src),
                                     offset(to, dst), bytes, 0, NULL, NULL);
    return err == CL_SUCCESS && waits ? clFinish(q) : err;
}

QnStatus qn_opencl_move(QnOpencl *cl, cl_command_queue q, void *dst, const void *src, size_t bytes,
                        cl_bool waits)
{
    if (bytes == 0)
        return QN_OK;
    cl_int err = qn_opencl_has_svm(cl)
                     ? clEnqueueSVMMemcpy(q, waits, dst, src, bytes, 0, NULL, NULL)
                     : copy_buffers(cl, q, dst, src, bytes, waits);
    return err == CL_SUCCESS ? QN_OK : qn_opencl_fail(err, "a copy");
}

QnStatus qn_opencl_transfer(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QnOpencl *cl = d->impl;
    return qn_opencl_move(cl, cl->queue, dst, src, bytes, CL_TRUE);
}

QnStatus qn_opencl_copy(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QnOpencl *cl = d->impl;
    return qn_opencl_move(cl, cl->queue, dst, src, bytes, CL_FALSE);
}
#else
typedef int qn_no_opencl_memory;
#endif
