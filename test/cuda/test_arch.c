/* The table of architectures. */
#include "test.h"

#include "backend/cuda/arch.c"

static void test_rows_rise_and_math_only_grows_within_a_line(void **state)
{
    int n;
    const QnCudaArch *a = qn_cuda_arch_all(&n);
    assert_int_equal(a[0].sm, 75);
    assert_int_equal(a[n - 1].sm, 121);
    for (int i = 0; i < n; i++) {
        assert_true(a[i].math & QN_CUDA_F16);
        assert_true(i == 0 || a[i].sm > a[i - 1].sm);
        assert_true(i == 0 || (a[i].math & a[i - 1].math) == a[i - 1].math);
    }
}

static void test_unknown_ones_are_as_the_newest_before(void **state)
{
    char math[64];
    assert_null(qn_cuda_arch_find(70));
    assert_int_equal(qn_cuda_arch_find(75)->sm, 75);
    assert_int_equal(qn_cuda_arch_find(91)->sm, 90);
    assert_int_equal(qn_cuda_arch_find(200)->sm, 121);
    assert_string_equal(qn_cuda_arch_math(qn_cuda_arch_find(75), math), "f16 int8");
    assert_string_equal(qn_cuda_arch_math(qn_cuda_arch_find(80), math), "f16 bf16 tf32 int8");
    assert_string_equal(qn_cuda_arch_math(qn_cuda_arch_find(90), math), "f16 bf16 tf32 int8 fp8");
}

/* Every architecture that device text is compiled for in the tests of NVRTC has a row. */
static void test_what_is_compiled_for_is_known(void **state)
{
    static const int sms[] = { 75, 80, 86, 89, 90, 100, 120 };
    for (int i = 0; i < QN_COUNT(sms); i++)
        assert_int_equal(qn_cuda_arch_find(sms[i])->sm, sms[i]);
}
