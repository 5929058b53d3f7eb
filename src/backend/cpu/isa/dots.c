/* Plain loops: compilers make multiply-add instructions on pairs of 16-bit integers of them. */
#include "backend/cpu/dots.h"
#include "backend/cpu/isa/simd.h"

QnDotsFn QN_ISA_NAME(qn_dots);

static void dot_1x1(const int16_t *a, const int16_t *b, int64_t k, int32_t *y)
{
    int32_t s = 0;
    for (int64_t t = 0; t < k; t++)
        s += (int32_t)a[t] * b[t];
    *y = s;
}

/* Two rows by two columns: each load serves two products. */
static void dot_2x2(const int16_t *a, const int16_t *b, int64_t k, int32_t *y, int64_t y_step)
{
    const int16_t *a1 = a + k, *b1 = b + k;
    int32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (int64_t t = 0; t < k; t++) {
        s00 += (int32_t)a[t] * b[t];
        s01 += (int32_t)a[t] * b1[t];
        s10 += (int32_t)a1[t] * b[t];
        s11 += (int32_t)a1[t] * b1[t];
    }
    y[0] = s00;
    y[1] = s01;
    y[y_step] = s10;
    y[y_step + 1] = s11;
}

void QN_ISA_NAME(qn_dots)(const int16_t *a, int64_t rows, const int16_t *b, int64_t columns,
                          int64_t k, int32_t *y, int64_t y_step)
{
    int64_t even_rows = rows & ~INT64_C(1), even_columns = columns & ~INT64_C(1);
    for (int64_t i = 0; i < even_rows; i += 2) {
        for (int64_t j = 0; j < even_columns; j += 2)
            dot_2x2(a + i * k, b + j * k, k, y + i * y_step + j, y_step);
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = i < even_rows ? even_columns : 0; j < columns; j++)
            dot_1x1(a + i * k, b + j * k, k, y + i * y_step + j);
    }
}
