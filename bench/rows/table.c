/* The rows. Shapes of convolutions are those of ResNet-50 on images of 224 pixels. */
#include "rows.h"

#include <string.h>

#define GEMM(text, m, n, k)                                                                        \
    {                                                                                              \
        "sgemm-" text, UNIT_GFLOPS, HOW_PLAN, build_matmul, { m, n, k }, 2.0 * (m) * (n) * (k),    \
            false                                                                                  \
    }
#define GEMM_BF16(text, m, n, k)                                                                   \
    {                                                                                              \
        "bf16gemm-" text, UNIT_GFLOPS, HOW_PLAN, build_matmul_bf16, { m, n, k },                   \
            2.0 * (m) * (n) * (k), false                                                           \
    }
/* channels, side, filters, kernel, stride, side of the output */
#define CONV_ROW(name, build, c, h, m, k, s, o)                                                    \
    {                                                                                              \
        name, UNIT_GFLOPS, HOW_LAYOUTS, build, { 16, c, h, m, k, s },                              \
            2.0 * 16 * (m) * (o) * (o) * (c) * (k) * (k), false                                    \
    }
#define CONV(c, h, m, k, s, o)                                                                     \
    CONV_ROW("conv-" #c "x" #h "-" #m "-k" #k "s" #s, build_conv, c, h, m, k, s, o),               \
        CONV_ROW("conv-dx-" #c "x" #h "-" #m "-k" #k "s" #s, build_conv_dx, c, h, m, k, s, o),     \
        CONV_ROW("conv-dw-" #c "x" #h "-" #m "-k" #k "s" #s, build_conv_dw, c, h, m, k, s, o)
#define STREAM(name, build)                                                                        \
    {                                                                                              \
        name, UNIT_GBPS, HOW_PLAN, build, { 16384, 1024 }, 2.0 * 4 * 16384 * 1024, true            \
    }

static const Row rows[] = {
    GEMM("1024", 1024, 1024, 1024),
    GEMM("2048", 2048, 2048, 2048),
    GEMM("1x4096x1024", 1, 4096, 1024),
    GEMM("16x1024x1024", 16, 1024, 1024),
    GEMM("64x512x784", 64, 512, 784),
    GEMM("1024x16x1024", 1024, 16, 1024),
    GEMM("8192x64x64", 8192, 64, 64),
    GEMM("64x64x8192", 64, 64, 8192),
    GEMM_BF16("1024", 1024, 1024, 1024),
    GEMM_BF16("2048", 2048, 2048, 2048),
    GEMM_BF16("16x1024x1024", 16, 1024, 1024),
    { "resnet50-train-16", UNIT_IMAGES, HOW_PLAN, build_resnet_train, { 16 }, 16, false, false },
    { .name = "resnet50-train-16-bf16",
      .unit = UNIT_IMAGES,
      .build = build_resnet_train,
      .dim = { 16 },
      .work = 16,
      .bf16 = true },
    { .name = "gpt2-step-4x64-bf16",
      .unit = UNIT_MS,
      .build = build_gpt2,
      .dim = { 4, 64 },
      .bf16 = true },
    { "resnet50-infer-1", UNIT_IMAGES, HOW_PLAN, build_resnet_infer, { 1 }, 1, true, false },
    { "resnet50-infer-16", UNIT_IMAGES, HOW_PLAN, build_resnet_infer, { 16 }, 16, true, false },
    { "fmnist-epoch", UNIT_S, HOW_EPOCH, NULL, { 0 }, 0, false, false },
    { "fmnist-step-128", UNIT_US, HOW_STEP, NULL, { 0 }, 0, false, false },
    { "mlp-step-64", UNIT_US, HOW_PLAN, build_mlp, { 64 }, 0, false, false },
    { "block-8x256x512", UNIT_MS, HOW_PLAN, build_block, { 8, 256, 512, 8 }, 0, false, false },
    { "gpt2-step-4x64", UNIT_MS, HOW_PLAN, build_gpt2, { 4, 64 }, 0, false, false },
    { "adamw-100m", UNIT_MS, HOW_PLAN, build_adamw, { 24, 2048, 2048 }, 0, false, false },
    STREAM("softmax-16384x1024", build_softmax),
    STREAM("layernorm-16384x1024", build_layer_norm),
    STREAM("gelu-16384x1024", build_gelu),
    { "first-step-fmnist", UNIT_S, HOW_FIRST_STEP, NULL, { 0 }, 0, false, false },
    { "first-step-resnet50", UNIT_S, HOW_FIRST_STEP, build_resnet_train, { 16 }, 0, false, false },
    { "memory-resnet50-train-16",
      UNIT_MB,
      HOW_MEMORY,
      build_resnet_train,
      { 16 },
      0,
      false,
      false },
    CONV(3, 224, 64, 7, 2, 112),
    CONV(64, 56, 64, 1, 1, 56),
    CONV(64, 56, 64, 3, 1, 56),
    CONV(64, 56, 256, 1, 1, 56),
    CONV(256, 56, 64, 1, 1, 56),
    CONV(256, 56, 128, 1, 1, 56),
    CONV(128, 56, 128, 3, 2, 28),
    CONV(128, 28, 512, 1, 1, 28),
    CONV(256, 56, 512, 1, 2, 28),
    CONV(512, 28, 128, 1, 1, 28),
    CONV(128, 28, 128, 3, 1, 28),
    CONV(512, 28, 256, 1, 1, 28),
    CONV(256, 28, 256, 3, 2, 14),
    CONV(256, 14, 1024, 1, 1, 14),
    CONV(512, 28, 1024, 1, 2, 14),
    CONV(1024, 14, 256, 1, 1, 14),
    CONV(256, 14, 256, 3, 1, 14),
    CONV(1024, 14, 512, 1, 1, 14),
    CONV(512, 14, 512, 3, 2, 7),
    CONV(512, 7, 2048, 1, 1, 7),
    CONV(1024, 14, 2048, 1, 2, 7),
    CONV(2048, 7, 512, 1, 1, 7),
    CONV(512, 7, 512, 3, 1, 7),
};

const Row *row_at(int i)
{
    return i >= 0 && i < QN_COUNT(rows) ? &rows[i] : NULL;
}

const Row *row_find(const char *name)
{
    for (int i = 0; i < QN_COUNT(rows); i++) {
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    }
    return NULL;
}
