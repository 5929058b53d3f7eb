#include "backend/cuda/arch.h"

#include <string.h>

enum {
    TURING = QN_CUDA_F16 | QN_CUDA_INT8,
    AMPERE = TURING | QN_CUDA_BF16 | QN_CUDA_TF32,
    ADA = AMPERE | QN_CUDA_FP8,
    BLACKWELL = ADA | QN_CUDA_FP4,
};

/* NVIDIA, CUDA C++ Programming Guide, "Compute Capabilities", and the PTX ISA's targets of mma,
 * wgmma and tcgen05. */
static const QnCudaArch archs[] = {
    { 75, "Turing", TURING },
    { 80, "Ampere", AMPERE },
    { 86, "Ampere", AMPERE },
    { 87, "Ampere (Orin)", AMPERE },
    { 88, "Ampere", AMPERE },
    { 89, "Ada", ADA },
    { 90, "Hopper", ADA },
    { 100, "Blackwell", BLACKWELL },
    { 103, "Blackwell Ultra", BLACKWELL },
    { 110, "Blackwell (Thor)", BLACKWELL },
    { 120, "Blackwell (RTX)", BLACKWELL },
    { 121, "Blackwell (Spark)", BLACKWELL },
};

const QnCudaArch *qn_cuda_arch_all(int *n)
{
    *n = QN_COUNT(archs);
    return archs;
}

const QnCudaArch *qn_cuda_arch_find(int sm)
{
    const QnCudaArch *best = NULL;
    for (int i = 0; i < QN_COUNT(archs); i++) {
        if (archs[i].sm <= sm)
            best = &archs[i];
    }
    return best;
}

char *qn_cuda_arch_math(const QnCudaArch *a, char out[64])
{
    static const char *const names[] = { "f16", "bf16", "tf32", "int8", "fp8", "fp4" };
    out[0] = '\0';
    for (int i = 0; i < QN_COUNT(names); i++) {
        if (!(a->math >> i & 1))
            continue;
        strcat(out, out[0] ? " " : "");
        strcat(out, names[i]);
    }
    return out;
}
