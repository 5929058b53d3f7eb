/* Floats of 8 bits (OCP 8-bit floating point: e4m3fn, e5m2; arXiv 2206.02915: e4m3fnuz, e5m2fnuz)
 * and of 4 (OCP microscaling: e2m1, in the low bits of a byte). fn: no infinities; uz: no negative
 * zero either, whose code is the one NaN. */
#ifndef QN_BASE_FLOAT8_H
#define QN_BASE_FLOAT8_H

#include "base/compiler.h"

typedef enum QnFloat8 {
    QN_FLOAT8_E4M3FN,
    QN_FLOAT8_E4M3FNUZ,
    QN_FLOAT8_E5M2,
    QN_FLOAT8_E5M2FNUZ,
    QN_FLOAT8_E2M1,
    QN_FLOAT8_COUNT
} QnFloat8;

/* Exact. Of e2m1 the high four bits are ignored. */
double qn_float8_decode(QnFloat8 format, uint8_t code);

/* To nearest, ties to even. What is finite but too large becomes the largest number; infinities
 * stay where the format has them (e5m2), else they become the largest number too. NaN stays NaN;
 * in e2m1, which has none, it becomes -0. */
uint8_t qn_float8_encode(QnFloat8 format, double x);

/* What x becomes before it is encoded, where that shall treat overflow as ONNX's Cast does.
 * saturate: everything too large, infinities as well, becomes the largest number. Otherwise what
 * rounds to more than the largest number becomes an infinity where the format has them, else NaN;
 * e2m1 has neither and saturates. */
double qn_float8_bound(QnFloat8 format, double x, bool saturate);

double qn_float8_max(QnFloat8 format);

#endif
