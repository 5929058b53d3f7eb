/* Rows and folds: softmax, losses, normalisation, reductions. */
#include "kernels.h"

#define ROW   "f32[8192,512]"
#define LAST  " {axes=[1]}"
#define FIRST " {axes=[0]}"

static const char *const cases[] = {
    "softmax f32[4096,1000] {axis=1}",
    "softmax bf16[4096,1000] {axis=1}",
    "log_softmax f32[4096,1000] {axis=1}",
    "cross_entropy f32[4096,1000] i64[4096]<1000",
    "cross_entropy f32[256,50257] i64[256]<50257",
    "cross_entropy_grad f32[4096] f32[4096,1000] i64[4096]<1000",
    "cross_entropy_grad f32[256] f32[256,50257] i64[256]<50257",
    "cross_entropy_both f32[4096] f32[4096,1000] i64[4096]<1000",
    "cross_entropy_both f32[256] f32[256,50257] i64[256]<50257",
    "layer_norm " ROW " f32[512] f32[512] {axis=1}",
    "layer_norm bf16[8192,512] bf16[512] bf16[512] {axis=1}",
    "add_layer_norm " ROW " " ROW " f32[512] f32[512] {axis=1, keep=true}",
    "layer_norm_grad " ROW " " ROW " f32[8192] f32[8192]+ f32[512]",
    "layer_norm_grad " ROW " " ROW " f32[8192] f32[8192]+ f32[512] " ROW,
    "rms_norm " ROW " f32[512] {axis=1}",
    "rms_norm_grad " ROW " " ROW " f32[8192]+ f32[512]",
    "argmax f32[4096,1000] {axis=1}",
    "argmax f32[128,10] {axis=1}",
    "argmin f32[4096,1000] {axis=1}",
    "logsumexp f32[4096,1000]" LAST,
    "variance " ROW LAST,
    "sum " ROW FIRST,
    "sum " ROW LAST,
    "sum bf16[8192,512]" FIRST,
    "sum *f32[128,32,28,28] {axes=[0,2,3]}",
    "mean f32[128,512,49] {axes=[2]}",
    "mean " ROW LAST,
    "prod " ROW LAST,
    "norm_l1 " ROW LAST,
    "norm_l2 f32[4194304]",
    "reduce_max " ROW LAST,
    "reduce_max " ROW FIRST,
    "reduce_min " ROW LAST,
    "fused_sum " ROW " " ROW " {axes=[1], body={in 2; $2 = mul($0, $1) : f32; out $2}}",
    "fused_sum " ROW " " ROW
    " {axes=[0], body={in 2; $2 = sub($0, $1) : f32; $3 = square($2) : f32; out $3}}",
};

CASE_LIST(cases_of_rows);
