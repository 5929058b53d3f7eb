/* NumPy's files of the types that Quern has: .npy, versions 1 to 3, and .npz archives of them. */
#ifndef QUERN_NPY_H
#define QUERN_NPY_H

#include <quern/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { QN_NPY_MAX_RANK = 8 };

typedef struct QnNpy {
    QnDtype dtype;
    int rank;
    int64_t dims[QN_NPY_MAX_RANK];
    int64_t count; /* product of dims, 1 for rank 0 */
    void *data;    /* row-major, this machine's byte order */
} QnNpy;

/* Reads into memory of its own: Fortran order and big-endian files are turned around. bf16 is what
 * NumPy writes for ml_dtypes' ("<V2", read as bf16). The size must be what the header says. */
QN_API QnStatus qn_npy_parse(const char *name, const void *bytes, size_t size, QnNpy *out);
QN_API QnStatus qn_npy_read(const char *path, QnNpy *out);
QN_API void qn_npy_fini(QnNpy *npy); /* for what parse and read made */

/* Writes version 1.0, C order; replaces the file in one step. */
QN_API QnStatus qn_npy_write(const char *path, QnDtype dtype, int rank, const int64_t *dims,
                             const void *data);

/* ---- .npz: several arrays by name, stored or deflated ---- */

typedef struct QnNpz QnNpz;

/* Opens the archive and reads all headers, not the arrays. Refused: an entry that is no array of
 * numbers (objects would be programs), sizes that lie, names that come twice. */
QN_API QnStatus qn_npz_open(const char *path, QnNpz **out);
QN_API void qn_npz_close(QnNpz *z); /* NULL is fine */
QN_API int64_t qn_npz_count(const QnNpz *z);
QN_API const char *qn_npz_name(const QnNpz *z, int64_t i);          /* without ".npy" */
QN_API int64_t qn_npz_find(const QnNpz *z, const char *name);       /* -1: none of that name */
QN_API const QnNpy *qn_npz_type(const QnNpz *z, int64_t i);         /* its data are NULL */
QN_API QnStatus qn_npz_read(const QnNpz *z, int64_t i, QnNpy *out); /* freed by qn_npy_fini */

/* Replaces the file in one step. compress: deflated, as np.savez_compressed does. */
QN_API QnStatus qn_npz_write(const char *path, const char *const *names, const QnNpy *arrays,
                             int64_t n, bool compress);

#ifdef __cplusplus
}
#endif

#endif
