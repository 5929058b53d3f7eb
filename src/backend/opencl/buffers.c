/* Shared memory as buffer objects, for libraries that take no pointers: one object an allocation,
 * made when first asked for, with the allocation as its storage (OpenCL 2.0, clCreateBuffer). What
 * lies within is an offset. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL

QnStatus qn_opencl_region_add(QnOpencl *cl, void *p, size_t bytes)
{
    QN_TRY(QN_GROW(cl->regions, cl->cap_regions, cl->n_regions));
    cl->regions[cl->n_regions++] = (QnOpenclRegion){ p, bytes, NULL };
    return QN_OK;
}

void qn_opencl_region_remove(QnOpencl *cl, const void *p)
{
    for (int64_t i = 0; i < cl->n_regions; i++) {
        if (cl->regions[i].base != p)
            continue;
        if (cl->regions[i].buffer)
            clReleaseMemObject(cl->regions[i].buffer);
        cl->regions[i] = cl->regions[--cl->n_regions];
        return;
    }
}

static QnOpenclRegion *find(QnOpencl *cl, const char *p)
{
    for (int64_t i = 0; i < cl->n_regions; i++) {
        QnOpenclRegion *r = &cl->regions[i];
        if (p >= r->base && p < r->base + r->bytes)
            return r;
    }
    return NULL;
}

bool qn_opencl_has_buffer(QnOpencl *cl, const void *p)
{
    return find(cl, p) != NULL;
}

QnStatus qn_opencl_buffer(QnOpencl *cl, const void *p, cl_mem *out, size_t *offset)
{
    QnOpenclRegion *r = find(cl, p);
    cl_int err = CL_SUCCESS;
    if (!r)
        return qn_fail(QN_EINTERNAL, "opencl: an address that the device did not allocate");
    if (!r->buffer)
        r->buffer = clCreateBuffer(cl->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, r->bytes,
                                   r->base, &err);
    if (err != CL_SUCCESS) {
        r->buffer = NULL;
        return qn_opencl_fail(err, "a buffer of shared memory");
    }
    *out = r->buffer;
    *offset = (size_t)((const char *)p - r->base);
    return QN_OK;
}
#else
typedef int qn_no_opencl_buffers;
#endif
