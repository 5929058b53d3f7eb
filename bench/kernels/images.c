/* What convolutional networks have beside convolutions. */
#include "kernels.h"

#define NORM(x, c)                                                                                 \
    "batch_norm *f32" x " f32" c " f32" c " *", "batch_norm_stats *f32" x " f32" c,                \
        "batch_norm_grad *f32" x " *f32" x " f32" c " f32" c "+ f32" c " *"

/* What is left of a batch norm beside its statistics, with a residual sum and a ReLU. */
#define AFFINE(x, c)                                                                               \
    "!fused *f32" x " f32" c " f32" c " f32" c " *f32" x " {body={in 5; $5 = sub($0, $1) : f32; "  \
    "$6 = mul($5, $2) : f32; $7 = add($6, $3) : f32; $8 = add($7, $4) : f32; $9 = relu($8) : "     \
    "f32; out $9}} *"

#define MAX_POOL(x, y, attr)                                                                       \
    "max_pool *f32" x " {" attr "} *", "max_pool_grad *f32" y " *f32" x " {" attr "} *"

/* A batch norm, its ReLU and a max pool, or the ReLU alone, backwards. */
#define NORM_RELU(x, c)                                                                            \
    "batch_norm_relu_grad *f32" x " *f32" x " f32" c " f32" c "+ f32" c " f32" c " *"

#define NORM_RELU_POOL(x, y, c, attr)                                                              \
    "batch_norm_relu_pool *f32" x " f32" c " f32" c " f32" c " {" attr "} *",                      \
        "batch_norm_relu_pool_grad *f32" y " *f32" x " f32" c " f32" c "+ f32" c " f32" c          \
        " {" attr "} *"

#define AVG_POOL(x, y, attr)                                                                       \
    "avg_pool *f32" x " {" attr "} *", "avg_pool_grad *f32" y " {" attr ", dims=" x "} *"

static const char *const cases[] = {
    NORM("[128,32,28,28]", "[32]"),
    NORM("[128,16,28,28]", "[16]"),
    NORM("[16,256,56,56]", "[256]"),
    AFFINE("[16,256,56,56]", "[1,256,1,1]"),
    AFFINE("[16,1024,14,14]", "[1,1024,1,1]"),
    MAX_POOL("[128,32,28,28]", "[128,32,14,14]", "kernel=[2,2]"),
    MAX_POOL("[16,64,112,112]", "[16,64,56,56]", "kernel=[3,3], strides=[2,2], pads=[1,1,1,1]"),
    NORM_RELU("[16,256,56,56]", "[256]"),
    NORM_RELU_POOL("[128,16,28,28]", "[128,16,14,14]", "[16]", "kernel=[2,2]"),
    NORM_RELU_POOL("[16,64,112,112]", "[16,64,56,56]", "[64]",
                   "kernel=[3,3], strides=[2,2], pads=[1,1,1,1]"),
    AVG_POOL("[128,64,8,8]", "[128,64,1,1]", "kernel=[8,8]"),
    AVG_POOL("[16,192,28,28]", "[16,192,28,28]", "kernel=[3,3], strides=[1,1], pads=[1,1,1,1]"),
    "lrn *f32[16,96,55,55] {size=5, alpha=0.0001, beta=0.75} *",
    "resize f32[8,64,32,32] {size=[64,64], mode=linear}",
    "resize f32[8,64,32,32] {size=[64,64], mode=nearest}",
    "resize f32[8,3,256,256] {size=[224,224], mode=cubic}",
    "!relayout f32[16,64,56,56] {to=channels_last} *",
    "!relayout *f32[16,64,56,56] {to=plain}",
};

CASE_LIST(cases_of_images);
