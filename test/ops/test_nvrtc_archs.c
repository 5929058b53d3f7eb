/* All device text, in each storage type, as machine code of every architecture but that for which
 * test_nvrtc.c compiles and optimises it: no text asks for the architecture, so that what the
 * optimiser makes of all of it is seen once. Without a fast compiler some minutes each.
 * labels: slow nvrtc timeout: 3600 */
#include "ops/batch.h"
#include "ops/nvrtc.h"

static Nvrtc nv;

static int group_setup(void **state)
{
    nvrtc_open(&nv);
    return 0;
}

static void check(QnDtype f)
{
    Batch b;
    QnStr text = { 0 };
    if (!nv.lib)
        skip_because("no libnvrtc");
    batch_collect(&b, f);
    qn_str_add(&text, qn_text_dialect);
    qn_str_add(&text, qn_str_text(&b.text));
    assert_ok(text.st);
    assert_null(strstr(qn_str_text(&text), "__CUDA_ARCH__"));
    for (int a = 0; a < QN_COUNT(nvrtc_archs); a++) {
        if (nvrtc_archs[a] == nvrtc_optimised)
            continue;
        if (nvrtc_knows(&nv, nvrtc_archs[a]))
            assert_true(
                nvrtc_compile(&nv, qn_str_text(&text), f, nvrtc_archs[a], NVRTC_FAST, NULL));
        else
            print_message("this libnvrtc does not know sm_%d\n", nvrtc_archs[a]);
    }
    qn_str_fini(&text);
    batch_free(&b);
}

static void test_f32(void **state)
{
    check(QN_DTYPE_F32);
}

static void test_f16(void **state)
{
    check(QN_DTYPE_F16);
}

static void test_bf16(void **state)
{
    check(QN_DTYPE_BF16);
}
