/* Convolutions, forward and backward. */
#include "kernels.h"

#define CONVS(x, w, y, attr)                                                                       \
    "conv *f32" x " f32" w " {" attr "} *", "conv_dx *f32" y " f32" w " {" attr ", dims=" x "} *", \
        "conv_dw *f32" y " *f32" x " {" attr ", dims=" w "}"

#define LAST_CONVS(x, w, y, attr)                                                                  \
    "!conv *f32" x " f32" w " {" attr "} *",                                                       \
        "!conv_dx *f32" y " f32" w " {" attr ", dims=" x "} *",                                    \
        "!conv_dw *f32" y " *f32" x " {" attr ", dims=" w "}"

#define PADDED "pads=[1,1,1,1]"

static const char *const cases[] = {
    CONVS("[128,32,28,28]", "[32,32,3,3]", "[128,32,28,28]", PADDED),
    CONVS("[128,1,28,28]", "[32,1,3,3]", "[128,32,28,28]", PADDED),
    CONVS("[128,32,14,14]", "[64,32,3,3]", "[128,64,14,14]", PADDED),
    CONVS("[128,64,7,7]", "[64,64,3,3]", "[128,64,7,7]", PADDED),
    CONVS("[32,64,32,32]", "[128,64,3,3]", "[32,128,16,16]", PADDED ", strides=[2,2]"),
    CONVS("[16,256,14,14]", "[64,256,1,1]", "[16,64,14,14]", "pads=[0,0,0,0]"),
    CONVS("[16,256,56,56]", "[64,256,1,1]", "[16,64,56,56]", "pads=[0,0,0,0]"),
    CONVS("[16,512,7,7]", "[2048,512,1,1]", "[16,2048,7,7]", "pads=[0,0,0,0]"),
    CONVS("[16,3,224,224]", "[64,3,7,7]", "[16,64,112,112]", "pads=[3,3,3,3], strides=[2,2]"),
    CONVS("[16,128,28,28]", "[128,1,3,3]", "[16,128,28,28]", PADDED ", groups=128"),
    LAST_CONVS("[16,96,56,56]", "[96,1,3,3]", "[16,96,56,56]", PADDED ", groups=96"),
    LAST_CONVS("[16,96,56,56]", "[96,1,3,3]", "[16,96,28,28]", PADDED ", strides=[2,2], groups=96"),
    LAST_CONVS("[16,384,14,14]", "[384,1,3,3]", "[16,384,14,14]", PADDED ", groups=384"),
    LAST_CONVS("[16,384,14,14]", "[384,1,5,5]", "[16,384,14,14]", "pads=[2,2,2,2], groups=384"),
    "!conv_map *f32[16,96,56,56] f32[96,1,3,3] {" PADDED
    ", groups=96, body={in 1; $1 = relu($0) : f32; out $1}} *",
    "conv *bf16[16,64,56,56] bf16[64,64,3,3] {" PADDED "} *",
    "!conv_map *f32[16,64,56,56] f32[64,64,3,3] {" PADDED
    ", body={in 1; $1 = relu($0) : f32; out $1}} *",
    "!conv_map *f32[16,128,28,28] f32[128,128,3,3] *f32[16,128,28,28] {" PADDED
    ", body={in 2; $2 = add($0, $1) : f32; $3 = relu($2) : f32; out $3}} *",
    "conv_integer u8[8,64,28,28] i8[64,64,3,3] {" PADDED "}",
    "conv_integer u8[8,256,14,14] i8[64,256,1,1]",
};

CASE_LIST(cases_of_convolutions);
