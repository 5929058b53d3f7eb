/* Elementwise passes: activations, casts, updates of parameters, random numbers. */
#include "kernels.h"

#define P    "f32[4194304]"
#define MANY "dims=[4194304]"

static const char *const cases[] = {
    "gelu_tanh f32[1048576]",
    "gelu_tanh_grad f32[1048576] f32[1048576]",
    "relu f32[1048576]",
    "relu bf16[1048576]",
    "relu f32[16777216]",
    "gelu f32[1048576]",
    "silu f32[1048576]",
    "tanh f32[1048576]",
    "sigmoid f32[1048576]",
    "exp f32[1048576]",
    "add " P " " P,
    "add f32[8192,512] f32[512]",
    "cast f32[4194304] {dtype=bf16}",
    "fused f32[4194304] f32[4194304] {body={in 2; $2 = silu($0) : f32; $3 = mul($2, $1) : f32; out "
    "$3}}",
    "cast f32[4194304] {dtype=f8e4m3fn}",
    "cast f8e4m3fn[4194304] {dtype=f32}",
    "cast bf16[4194304] {dtype=f8e5m2}",
    "cast_random f32[4194304] i64[] {dtype=bf16}",
    "sgd " P " " P " " P " f32[]+ {momentum=0.9}",
    "sgd " P " " P " f32[]+",
    "adam " P " " P " " P "+ " P " f32[]+ i64[]",
    "adamw " P " " P " " P "+ " P " f32[]+ i64[]",
    "adamw f32[10240] f32[10240] f32[10240]+ f32[10240] f32[]+ i64[]",
    "adagrad " P " " P "+ " P " f32[]+ i64[]",
    "rmsprop " P " " P "+ " P " f32[]+",
    "dropout " P " i64[] {p=0.1}",
    "dropout bf16[4194304] i64[] {p=0.1}",
    "bernoulli i64[] {" MANY ", p=0.5}",
    "random_normal i64[] {" MANY "}",
    "random_uniform i64[] {" MANY "}",
};

CASE_LIST(cases_of_elements);
