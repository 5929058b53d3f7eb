/* Allocations as buffer objects, for libraries that take no pointers and for devices without shared
 * virtual memory. With it: one object an allocation, made when first asked for, with the allocation
 * as its storage (OpenCL 2.0, clCreateBuffer); what lies within is an offset. Without it the object
 * is the allocation, and its addresses are reserved ones that only name places in it. */
#include "backend/opencl/opencl.h"

#ifdef QN_HAVE_OPENCL
#include "base/fault.h"

/* A tensor within a region. */
typedef struct QnOpenclPart {
    size_t at, bytes;
    cl_mem buffer; /* NULL: a free place of the table */
} QnOpenclPart;

QnStatus qn_opencl_region_add(QnOpencl *cl, void *p, size_t bytes, cl_mem buffer)
{
    QN_TRY(QN_GROW(cl->regions, cl->cap_regions, cl->n_regions));
    cl->regions[cl->n_regions++] = (QnOpenclRegion){ .base = p, .bytes = bytes, .buffer = buffer };
    return QN_OK;
}

static void release(QnOpencl *cl, QnOpenclRegion *r)
{
    for (size_t i = 0; i < r->cap_parts; i++)
        if (r->parts[i].buffer)
            clReleaseMemObject(r->parts[i].buffer);
    cl->n_parts -= (int64_t)r->n_parts;
    qn_free(r->parts);
    if (r->buffer)
        clReleaseMemObject(r->buffer);
}

void qn_opencl_region_remove(QnOpencl *cl, const void *p)
{
    for (int64_t i = 0; i < cl->n_regions; i++) {
        if (cl->regions[i].base != p)
            continue;
        release(cl, &cl->regions[i]);
        cl->regions[i] = cl->regions[--cl->n_regions];
        return;
    }
}

QnOpenclRegion *qn_opencl_region(QnOpencl *cl, const void *at)
{
    const char *p = at;
    for (int64_t i = 0; i < cl->n_regions; i++) {
        QnOpenclRegion *r = &cl->regions[i];
        if (p >= r->base && p < r->base + r->bytes)
            return r;
    }
    return NULL;
}

QnStatus qn_opencl_buffer(QnOpencl *cl, const void *p, cl_mem *out, size_t *offset)
{
    QnOpenclRegion *r = qn_opencl_region(cl, p);
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

/* ---- arguments of kernels ---- */

/* Where the part is in the table, or would be; there is a free place. */
static QnOpenclPart *probe(QnOpenclPart *parts, size_t cap, size_t at, size_t bytes)
{
    uint64_t hash = (at ^ (uint64_t)bytes * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    size_t i = (size_t)(hash >> 32) & (cap - 1);
    while (parts[i].buffer && (parts[i].at != at || parts[i].bytes != bytes))
        i = (i + 1) & (cap - 1);
    return &parts[i];
}

/* At most half of the places are taken. */
static cl_int grow_parts(QnOpenclRegion *r)
{
    enum { FIRST = 16 };
    size_t cap = r->cap_parts ? 2 * r->cap_parts : FIRST;
    if (2 * (r->n_parts + 1) <= r->cap_parts)
        return CL_SUCCESS;
    QnOpenclPart *parts = qn_alloc_array(cap, sizeof *parts);
    if (!parts)
        return CL_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < r->cap_parts; i++) {
        const QnOpenclPart *old = &r->parts[i];
        if (old->buffer)
            *probe(parts, cap, old->at, old->bytes) = *old;
    }
    qn_free(r->parts);
    r->parts = parts;
    r->cap_parts = cap;
    return CL_SUCCESS;
}

/* Of its own extent and no more: what parts overlap, no launch may write. */
static cl_int new_part(QnOpencl *cl, QnOpenclRegion *r, size_t at, size_t bytes, cl_mem *out)
{
    cl_buffer_region extent = { at, bytes };
    cl_int err = grow_parts(r);
    if (err != CL_SUCCESS)
        return err;
    if (qn_fault_hit())
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    cl_mem buffer =
        clCreateSubBuffer(r->buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &extent, &err); /* 0: as it */
    if (err != CL_SUCCESS)
        return err;
    *probe(r->parts, r->cap_parts, at, bytes) = (QnOpenclPart){ at, bytes, buffer };
    r->n_parts++;
    cl->n_parts++;
    *out = buffer;
    return CL_SUCCESS;
}

/* Made in the first run of a plan; later ones find it. */
static cl_int find_part(QnOpencl *cl, const void *p, size_t bytes, cl_mem *out)
{
    QnOpenclRegion *r = qn_opencl_region(cl, p);
    if (!r)
        return CL_INVALID_MEM_OBJECT;
    size_t at = (size_t)((const char *)p - r->base);
    *out = r->cap_parts ? probe(r->parts, r->cap_parts, at, bytes)->buffer : NULL;
    return *out ? CL_SUCCESS : new_part(cl, r, at, bytes, out);
}

cl_int qn_opencl_set_pointer(QnOpencl *cl, cl_kernel k, cl_uint arg, const void *p, int64_t bytes)
{
    cl_mem part = NULL; /* of what is not there, or is empty: a null pointer */
    if (qn_opencl_has_svm(cl))
        return clSetKernelArgSVMPointer(k, arg, p);
    cl_int err = p && bytes > 0 ? find_part(cl, p, (size_t)bytes, &part) : CL_SUCCESS;
    return err == CL_SUCCESS ? clSetKernelArg(k, arg, sizeof part, &part) : err;
}
#else
typedef int qn_no_opencl_buffers;
#endif
