/* The vectorised conversions against the general ones, over every 16-bit pattern. */
#include "test.h"
#include "backend/cpu/convert.h"
#include "backend/cpu/cpu.h"

static const char *const isas[] = {
#define QN_X(name) #name,
    QN_ISA_LIST(QN_X)
#undef QN_X
};

static void test_to_f32(void **state)
{
    static uint16_t half[65536];
    static float want[65536], got[65536];
    static const QnDtype dtypes[] = { QN_DTYPE_F16, QN_DTYPE_BF16, QN_DTYPE_BOOL, QN_DTYPE_U8,
                                      QN_DTYPE_I8 };
    for (int i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    for (int k = 0; k < QN_COUNT(isas) * QN_COUNT(dtypes); k++) {
        const char *isa = isas[k / QN_COUNT(dtypes)];
        if (!qn_cpu_isa_is_usable(isa))
            continue;
        qn_dtype_to_f32(dtypes[k % QN_COUNT(dtypes)], half, want, 65536);
        qn_convert_find(isa)->to_f32(dtypes[k % QN_COUNT(dtypes)], half, got, 65536);
        assert_memory_equal(got, want, sizeof got);
    }
}

/* All values of f16 and their neighbours, halfway points, and what overflows. */
static void test_from_f32(void **state)
{
    static float x[3 * 65536];
    static uint16_t want[3 * 65536], got[3 * 65536];
    static const QnDtype dtypes[] = { QN_DTYPE_F16, QN_DTYPE_BF16, QN_DTYPE_BOOL };
    for (int i = 0; i < 65536; i++) {
        uint32_t bits = (uint32_t)i << 16, odd = bits | 0x8000u, low = (uint32_t)i * 65537u;
        memcpy(&x[3 * i], &bits, 4);
        memcpy(&x[3 * i + 1], &odd, 4);
        memcpy(&x[3 * i + 2], &low, 4);
    }
    for (int k = 0; k < QN_COUNT(isas) * QN_COUNT(dtypes); k++) {
        const char *isa = isas[k / QN_COUNT(dtypes)];
        if (!qn_cpu_isa_is_usable(isa))
            continue;
        memset(want, 0, sizeof want);
        memset(got, 0, sizeof got);
        qn_dtype_from_f32(dtypes[k % QN_COUNT(dtypes)], x, want, 3 * 65536);
        qn_convert_find(isa)->from_f32(dtypes[k % QN_COUNT(dtypes)], x, got, 3 * 65536);
        assert_memory_equal(got, want, sizeof got);
    }
}
