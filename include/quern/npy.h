/* NumPy's .npy files, versions 1 to 3, of the types that Quern has. */
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

#ifdef __cplusplus
}
#endif

#endif
