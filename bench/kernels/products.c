/* Matrix products and attention. */
#include "kernels.h"

/* x (M,K) times the transpose of w (N,K), as linear layers do it. */
#define LINEAR(type, m, n, k)                                                                      \
    "matmul " type "[" #m "," #k "] " type "[" #n "," #k "] {trans_b=true}"

#define Q3(type, shape) type shape " " type shape " " type shape
#define ATTENTION(type, shape, rows)                                                               \
    "attention " Q3(type, shape) " {causal=true}",                                                 \
        "attention_grad " type shape " " Q3(type, shape) " f32" rows " f32" rows " {causal=true}"

static const char *const cases[] = {
    LINEAR("f32", 1024, 1024, 1024),
    LINEAR("f32", 2048, 2048, 2048),
    LINEAR("f32", 128, 128, 576),
    LINEAR("f32", 128, 10, 576),
    LINEAR("f32", 256, 512, 128),
    LINEAR("f32", 64, 512, 784),
    LINEAR("f32", 8, 256, 256),
    LINEAR("bf16", 1024, 1024, 1024),
    LINEAR("bf16", 16, 1024, 1024),
    LINEAR("bf16", 1, 4096, 1024),
    LINEAR("f32", 4, 4096, 1024),
    LINEAR("f32", 1, 4096, 1024),
    LINEAR("f32", 8, 4096, 1024),
    "matmul f32[96,64,32] f32[96,32,64]",
    "matmul f32[512,8,8] f32[512,8,8]",
    "matmul_integer u8[128,768] i8[768,3072]",
    "matmul_integer u8[1,1024] i8[1024,1024]",
    ATTENTION("f32", "[2,8,1024,64]", "[2,8,1024]"),
    ATTENTION("f32", "[12,4,64,32]", "[12,4,64]"),
    ATTENTION("bf16", "[2,8,1024,64]", "[2,8,1024]"),
};

CASE_LIST(cases_of_products);
