/* NumPy's .npy files: quern/npy.h. */
#ifndef QN_IO_NPY_H
#define QN_IO_NPY_H

#include "base/status.h"
#include "ir/dtype.h"
#include "base/str.h"
#include "quern/npy.h"

/* A header: the array's type (its data NULL), how its items lie in the file, and where. */
typedef struct QnNpyHead {
    QnNpy array;
    bool fortran, swapped;
    size_t shape_at, data_at;
} QnNpyHead;

enum { QN_NPY_HEAD_MIN = 12 };
/* Bytes of the header, from its first 12; 0: not an .npy file. */
size_t qn_npy_head_bytes(const uint8_t first[QN_NPY_HEAD_MIN]);
/* Reads the header at p, of which `have` bytes are there, of a file of `size`. */
QnStatus qn_npy_head_parse(const char *name, const void *p, size_t have, uint64_t size,
                           QnNpyHead *out);
/* The items after the header into dst, row-major and in this machine's byte order. */
void qn_npy_head_convert(const QnNpyHead *head, const void *items, void *dst);
/* The header that qn_npy_write writes, and how many bytes of items follow it. */
QnStatus qn_npy_head_print(const char *name, QnDtype dtype, int rank, const int64_t *dims,
                           QnStr *out, size_t *item_bytes);

#endif
