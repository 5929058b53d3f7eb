/* What an architecture can do that the driver cannot be asked: the arithmetic of its tensor cores.
 * Sizes (shared memory, threads, processors) come from the driver. */
#ifndef QN_BACKEND_CUDA_ARCH_H
#define QN_BACKEND_CUDA_ARCH_H

#include "base/compiler.h"

typedef enum QnCudaMath { /* products that tensor cores make, sums in f32 */
                          QN_CUDA_F16 = 1 << 0,
                          QN_CUDA_BF16 =
                              1 << 1, /* where it is missing, bf16 is storage and computes in f32 */
                          QN_CUDA_TF32 = 1 << 2,
                          QN_CUDA_INT8 = 1 << 3,
                          QN_CUDA_FP8 = 1 << 4,
                          QN_CUDA_FP4 = 1 << 5,
} QnCudaMath;

typedef struct QnCudaArch {
    int sm;           /* 90: compute capability 9.0 */
    const char *name; /* "Hopper" */
    unsigned math;    /* QnCudaMath */
} QnCudaArch;

/* That of the newest known that is not newer; NULL: older than all, which are not supported. */
const QnCudaArch *qn_cuda_arch_find(int sm);
const QnCudaArch *qn_cuda_arch_all(int *n); /* oldest first */
/* "f16 bf16 tf32"; returns out */
char *qn_cuda_arch_math(const QnCudaArch *a, char out[64]);

#endif
