/* Data moved, gathered, scattered and made. */
#include "kernels.h"

static const char *const cases[] = {
    "concat f32[64,128,28,28] f32[64,64,28,28] {axis=1}",
    "concat f32[8192,256] f32[8192,256] {axis=1}",
    "split f32[2048,2304] {axis=1, parts=3}",
    "slice f32[2048,2304] {axes=[1], starts=[768], ends=[1536]}",
    "slice f32[64,3,256,256] {axes=[2,3], starts=[16,16], ends=[240,240]}",
    "slice_put f32[2048,2304] f32[2048,768] {axes=[1], starts=[768], ends=[1536]}",
    "pad f32[128,32,28,28] {before=[0,0,1,1], after=[0,0,1,1]}",
    "expand f32[8192,1] {dims=[8192,512]}",
    "expand f32[512] {dims=[8192,512]}",
    "full {value=0.5, dims=[4194304]}",
    "transpose f32[8,256,8,64] {perm=[0,2,1,3]}",
    "transpose f32[2048,2048] {perm=[1,0]}",
    "transpose bf16[2048,2048] {perm=[1,0]}",
    "gather f32[50257,768] i64[2048]<50257",
    "gather f32[8192,512] i64[128]<512 {axis=1}",
    "embedding f32[50257,768] i64[8,256]<50257",
    "scatter_add f32[50257,768] i64[2048]<50257 f32[2048,768]",
    "gather_elements f32[4096,1000] i64[4096,16]<1000 {axis=1}",
    "scatter_elements f32[4096,1000] i64[4096,16]<1000 f32[4096,16] {axis=1}",
    "arange {dims=[4194304]}",
    "eye {dims=[2048,2048]}",
    "one_hot i64[4096]<1000 {depth=1000}",
    "trilu f32[64,256,256]",
    "cumsum f32[8192,512] {axis=1}",
    "cumsum f32[8192,512] {axis=0}",
    "cumprod f32[8192,512] {axis=1}",
};

CASE_LIST(cases_of_moves);
