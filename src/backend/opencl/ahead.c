/* Copies from pinned memory on a queue of their own, ordered with what computes by events. Pinned
 * is what drivers allocate for CL_MEM_ALLOC_HOST_PTR: a buffer that stays mapped for as long as it
 * lives, whose address copies read from. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL

typedef struct QnOpenclPinned {
    struct QnOpenclPinned *next;
    cl_mem buffer;
    void *p;
} QnOpenclPinned;

static cl_int map(QnOpencl *cl, size_t bytes, QnOpenclPinned *out)
{
    cl_int err;
    out->buffer =
        clCreateBuffer(cl->context, CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &err);
    if (err != CL_SUCCESS)
        return err;
    out->p = clEnqueueMapBuffer(cl->copies, out->buffer, CL_TRUE, CL_MAP_WRITE, 0, bytes, 0, NULL,
                                NULL, &err);
    if (err != CL_SUCCESS)
        clReleaseMemObject(out->buffer);
    return err;
}

void *qn_opencl_host_alloc(QnDevice *d, size_t bytes)
{
    QnOpencl *cl = d->impl;
    QnOpenclPinned *m = qn_alloc(sizeof *m);
    if (!m)
        return NULL;
    cl_int err = map(cl, bytes ? bytes : 1, m);
    if (err != CL_SUCCESS) {
        qn_opencl_fail(err, "mapping host memory");
        qn_fail_prefix("%zu bytes", bytes);
        qn_free(m);
        return NULL;
    }
    m->next = cl->pinned;
    cl->pinned = m;
    return m->p;
}

void qn_opencl_host_free(QnDevice *d, void *p, size_t bytes)
{
    QnOpencl *cl = d->impl;
    (void)bytes;
    for (QnOpenclPinned **at = &cl->pinned; *at; at = &(*at)->next) {
        QnOpenclPinned *m = *at;
        if (m->p != p)
            continue;
        *at = m->next;
        clEnqueueUnmapMemObject(cl->copies, m->buffer, p, 0, NULL, NULL);
        clFinish(cl->copies); /* even after a failure nothing may still read from it */
        clReleaseMemObject(m->buffer);
        qn_free(m);
        return;
    }
}

QnStatus qn_opencl_copy_ahead(QnDevice *d, void *dst, const void *src, size_t bytes)
{
    QnOpencl *cl = d->impl;
    if (bytes == 0)
        return QN_OK;
    cl_int err = clFlush(cl->queue); /* what computes meanwhile must have begun */
    return err == CL_SUCCESS ? qn_opencl_move(cl, cl->copies, dst, src, bytes, CL_FALSE)
                             : qn_opencl_fail(err, "a copy");
}

/* OpenCL makes events when something is enqueued: here is a place for the last one. */
typedef struct Event {
    cl_event e; /* NULL: never recorded */
} Event;

QnStatus qn_opencl_event_new(QnDevice *d, void **event)
{
    (void)d;
    Event *e = qn_alloc(sizeof *e);
    if (!e)
        return QN_ENOMEM;
    *event = e;
    return QN_OK;
}

void qn_opencl_event_free(QnDevice *d, void *event)
{
    Event *e = event;
    (void)d;
    if (e->e)
        clReleaseEvent(e->e);
    qn_free(e);
}

static cl_command_queue queue_of(const QnOpencl *cl, QnQueue q)
{
    return q == QN_QUEUE_COPY ? cl->copies : cl->queue;
}

/* Flushed, or another queue could wait for what nobody has begun. */
QnStatus qn_opencl_event_record(QnDevice *d, QnQueue q, void *event)
{
    QnOpencl *cl = d->impl;
    Event *e = event;
    cl_event now;
    cl_int err = clEnqueueMarkerWithWaitList(queue_of(cl, q), 0, NULL, &now);
    if (err != CL_SUCCESS)
        return qn_opencl_fail(err, "marking a queue");
    if (e->e)
        clReleaseEvent(e->e);
    e->e = now;
    err = clFlush(queue_of(cl, q));
    return err == CL_SUCCESS ? QN_OK : qn_opencl_fail(err, "flushing a queue");
}

QnStatus qn_opencl_event_order(QnDevice *d, QnQueue q, void *event)
{
    QnOpencl *cl = d->impl;
    const Event *e = event;
    if (!e->e)
        return QN_OK;
    cl_int err = clEnqueueBarrierWithWaitList(queue_of(cl, q), 1, &e->e, NULL);
    return err == CL_SUCCESS ? QN_OK : qn_opencl_fail(err, "ordering two queues");
}

QnStatus qn_opencl_event_wait(QnDevice *d, void *event)
{
    const Event *e = event;
    (void)d;
    if (!e->e)
        return QN_OK;
    cl_int err = clWaitForEvents(1, &e->e);
    return err == CL_SUCCESS ? QN_OK : qn_opencl_fail(err, "waiting for an event");
}
#else
typedef int qn_no_opencl_ahead;
#endif
