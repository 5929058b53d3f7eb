/* Every dtype: names, conversions, casts between all pairs, what is refused. */
#include "ops/dtypes.h"

#include "ir/dtype.h"

static void test_names_and_kinds(void **state)
{
    for (int d = 0; d < QN_DTYPE_COUNT; d++) {
        QnDtype back, dtype = (QnDtype)d;
        const char *name = qn_dtype_name(dtype);
        bool f = name[0] == 'f' || !strcmp(name, "bf16"), u = name[0] == 'u';
        int bits = dtype == QN_DTYPE_BOOL ? 8 : atoi(name + (strcspn(name, "0123456789")));
        assert_true(qn_dtype_find(name, &back) && back == dtype);
        assert_int_equal(qn_dtype_is_float(dtype), f);
        assert_int_equal(qn_dtype_is_int(dtype), u || name[0] == 'i');
        assert_int_equal(qn_dtype_is_unsigned(dtype), u);
        assert_int_equal(qn_dtype_bytes(dtype), QN_MAX(bits, 8) / 8);
        assert_int_equal(qn_dtype_is_storage(dtype), bits == 4 || (f && bits == 8));
    }
}

/* The least and largest number of each type, as doubles. */
static void range_of(QnDtype d, double *lo, double *hi)
{
    int bits = d == QN_DTYPE_I4 || d == QN_DTYPE_U4 ? 4 : (int)qn_dtype_bytes(d) * 8;
    bool u = qn_dtype_is_unsigned(d);
    *lo = u ? 0 : -ldexp(1, bits - 1);
    *hi = ldexp(1, u ? bits : bits - 1) - 1; /* of 64 bits: rounded up, and then cut */
}

static void test_integers_saturate_and_keep_every_number(void **state)
{
    for (int d = 0; d < QN_DTYPE_COUNT; d++) {
        QnDtype dtype = (QnDtype)d;
        double lo, hi, back;
        uint64_t cell = 0;
        if (!qn_dtype_is_int(dtype))
            continue;
        range_of(dtype, &lo, &hi);
        const double x[] = { lo, hi, lo - 1e20, hi + 1e20, -INFINITY, INFINITY, NAN, 2.9, -0.9 };
        const double y[] = { lo, hi, lo, hi, lo, hi, 0, 2, 0 };
        for (int i = 0; i < QN_COUNT(x); i++) {
            qn_dtype_from_f64(dtype, &x[i], &cell, 1);
            qn_dtype_to_f64(dtype, &cell, &back, 1);
            assert_true(back == y[i]);
            float narrow = (float)x[i], again;
            qn_dtype_from_f32(dtype, &narrow, &cell, 1);
            qn_dtype_to_f32(dtype, &cell, &again, 1);
            if (fabs(x[i]) < 0x1p24 || !isfinite(x[i]))
                assert_true(again == (float)y[i]);
        }
        for (double v = QN_MAX(lo, -70000); v <= QN_MIN(hi, 70000); v++) {
            int64_t whole;
            qn_dtype_from_f64(dtype, &v, &cell, 1);
            qn_dtype_to_f64(dtype, &cell, &back, 1);
            qn_dtype_to_i64(dtype, &cell, &whole, 1);
            assert_true(back == v && (double)whole == v);
        }
    }
}

/* 4-bit elements take a byte, whose high bits do not matter. */
static void test_four_bits(void **state)
{
    static const double e2m1[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    for (int code = 0; code < 256; code++) {
        uint8_t c = (uint8_t)code;
        double i4, u4, f4;
        qn_dtype_to_f64(QN_DTYPE_I4, &c, &i4, 1);
        qn_dtype_to_f64(QN_DTYPE_U4, &c, &u4, 1);
        qn_dtype_to_f64(QN_DTYPE_F4E2M1, &c, &f4, 1);
        assert_true(u4 == code % 16 && i4 == (code % 16 < 8 ? code % 16 : code % 16 - 16));
        assert_true(f4 == (code & 8 ? -e2m1[code & 7] : e2m1[code & 7]));
    }
}

/* What a cast of the integer v, which both hold or wrap to, should be. */
static void check_cast(QnDtype from, QnDtype to, int v)
{
    QnGraph *g = qn_graph_new();
    uint64_t x = 0, y = 0;
    double wide = v, taken, want;
    qn_dtype_from_f64(from, &wide, &x, 1);
    qn_dtype_to_f64(from, &x, &taken, 1);
    if (!qn_dtype_is_float(from) && qn_dtype_is_int(to))
        want = (double)qn_dtype_wrap(to, (int64_t)taken);
    else
        want = taken;
    if (to == QN_DTYPE_U64 && !qn_dtype_is_float(from) && taken < 0)
        y = (uint64_t)(int64_t)taken;
    else
        qn_dtype_from_f64(to, &want, &y, 1);
    QnValue *in = give(g, from, QN_SHAPE(1)), *out = qn_cast(g, in, to);
    if (from == to)
        assert_ptr_equal(in, out);
    else
        want_bytes(g, out->node, (const void *[]){ &x }, (const void *[]){ &y });
    qn_graph_free(g);
}

static void test_casts_between_all_pairs(void **state)
{
    for (int from = 0; from < QN_DTYPE_COUNT; from++)
        for (int to = 0; to < QN_DTYPE_COUNT; to++)
            for (int v = -300; v <= 300; v += 25)
                check_cast((QnDtype)from, (QnDtype)to, v);
}

static void test_casts_of_64_bits_are_exact(void **state)
{
    const uint64_t u[] = { UINT64_MAX, (UINT64_C(1) << 63) + 1, (UINT64_C(1) << 53) + 1 };
    const int64_t i[] = { -1, INT64_MIN + 1, (INT64_C(1) << 53) + 1 };
    const int32_t low[] = { -1, 1, 1 };
    const float f[] = { 0x1p64f, 0x1p63f, 0x1p53f };
    const uint8_t yes[] = { 1, 1, 1 };
    QnGraph *g = qn_graph_new();
    QnValue *x = give(g, QN_DTYPE_U64, QN_SHAPE(3)), *y = give(g, QN_DTYPE_I64, QN_SHAPE(3));
    want_bytes(g, qn_cast(g, x, QN_DTYPE_I64)->node, (const void *[]){ u }, (const void *[]){ i });
    want_bytes(g, qn_cast(g, y, QN_DTYPE_U64)->node, (const void *[]){ i }, (const void *[]){ u });
    want_bytes(g, qn_cast(g, x, QN_DTYPE_I32)->node, (const void *[]){ u },
               (const void *[]){ low });
    want_bytes(g, qn_cast(g, x, QN_DTYPE_F32)->node, (const void *[]){ u }, (const void *[]){ f });
    want_bytes(g, qn_cast(g, x, QN_DTYPE_BOOL)->node, (const void *[]){ u },
               (const void *[]){ yes });
    qn_graph_free(g);
}

static void test_saturation_of_casts(void **state)
{
    static const struct {
        QnDtype dtype;
        uint8_t cut[4], rest[4]; /* of 1e6, -1e6, inf, NaN, with and without saturation */
    } cases[] = {
        { QN_DTYPE_F8E4M3FN, { 0x7e, 0xfe, 0x7e, 0x7f }, { 0x7f, 0x7f, 0x7f, 0x7f } },
        { QN_DTYPE_F8E4M3FNUZ, { 0x7f, 0xff, 0x7f, 0x80 }, { 0x80, 0x80, 0x80, 0x80 } },
        { QN_DTYPE_F8E5M2, { 0x7b, 0xfb, 0x7b, 0x7f }, { 0x7c, 0xfc, 0x7c, 0x7f } },
        { QN_DTYPE_F8E5M2FNUZ, { 0x7f, 0xff, 0x7f, 0x80 }, { 0x80, 0x80, 0x80, 0x80 } },
        { QN_DTYPE_F4E2M1, { 0x7, 0xf, 0x7, 0x8 }, { 0x7, 0xf, 0x7, 0x8 } },
    };
    const float x[] = { 1e6f, -1e6f, INFINITY, NAN };
    const int64_t big[] = { 1000000, -1000000 };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnGraph *g = qn_graph_new();
        QnValue *a = give(g, QN_DTYPE_F32, QN_SHAPE(4)), *b = give(g, QN_DTYPE_I64, QN_SHAPE(2));
        for (int saturate = 0; saturate < 2; saturate++) {
            const void *want[] = { saturate ? cases[i].cut : cases[i].rest };
            want_bytes(g, qn_cast_as(g, a, cases[i].dtype, saturate)->node, (const void *[]){ x },
                       want);
            want_bytes(g, qn_cast_as(g, b, cases[i].dtype, saturate)->node, (const void *[]){ big },
                       want);
        }
        qn_graph_free(g);
    }
}

static void test_arithmetic_on_storage_types_is_refused(void **state)
{
    for (int d = 0; d < QN_DTYPE_COUNT; d++) {
        if (!qn_dtype_is_storage((QnDtype)d))
            continue;
        for (int i = 0; i < 5; i++) {
            QnGraph *g = qn_graph_new();
            QnValue *x = give(g, (QnDtype)d, QN_SHAPE(4, 4)), *y[] = { x, x, x, x, x };
            y[i] = i == 0   ? qn_add(g, x, x)
                   : i == 1 ? qn_matmul(g, x, x, NULL, false, false)
                   : i == 2 ? qn_sum(g, x, QN_ALL_AXES, false)
                   : i == 3 ? qn_equal(g, x, x)
                            : qn_softmax(g, x, 1);
            assert_true(qn_value_is_poison(y[i]));
            assert_fails(qn_graph_check(g), QN_EDTYPE, qn_dtype_name((QnDtype)d));
            qn_graph_free(g);
        }
    }
}
