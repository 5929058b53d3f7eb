/* labels: io */
#include "temp.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/safetensors.h"

/* A file with this header and so many bytes of data 0, 1, 2, … */
static QnStatus parse(const char *header, size_t n, QnSafetensors **out)
{
    static uint8_t b[4096];
    size_t h = strlen(header);
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(h >> (8 * i));
    memcpy(b + 8, header, h);
    for (size_t i = 0; i < n; i++)
        b[8 + h + i] = (uint8_t)i;
    return qn_safetensors_parse("m.safetensors", b, 8 + h + n, out);
}

static void test_reading(void **state)
{
    QnSafetensors *s;
    assert_ok(parse("{\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[2,10]},"
                    "\"__metadata__\":{\"format\":\"pt\"},"
                    "\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[0,2]},"
                    "\"e\":{\"dtype\":\"I64\",\"shape\":[0,9],\"data_offsets\":[10,10]}}  ",
                    10, &s));
    assert_int_equal(qn_safetensors_count(s), 3);
    const QnSafetensor *t = qn_safetensors_at(s, 0); /* by place in the file */
    assert_string_equal(t->name, "a");
    assert_true(t->dtype == QN_DTYPE_BF16 && t->rank == 0 && t->count == 1 && t->bytes == 2);
    t = qn_safetensors_find(s, "b");
    assert_true(t->dtype == QN_DTYPE_F32 && t->dims[0] == 2 && t->count == 2);
    assert_int_equal(((const uint8_t *)t->data)[0], 2);
    assert_int_equal(qn_safetensors_find(s, "e")->count, 0);
    assert_null(qn_safetensors_find(s, "c"));
    assert_null(qn_safetensors_find(s, "__metadata__"));
    assert_string_equal(qn_safetensors_metadata(s, "format"), "pt");
    assert_null(qn_safetensors_metadata(s, "other"));
    qn_safetensors_free(s);
    assert_ok(parse("{}", 0, &s));
    assert_int_equal(qn_safetensors_count(s), 0);
    assert_null(qn_safetensors_metadata(s, "format"));
    qn_safetensors_free(s);
}

#define T(name, dtype, shape, from, to)                                                            \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to   \
    "]}"

#define DEEP "[[[[[[[[[[[[[[[[[[[["

static void test_malformed(void **state)
{
    static const struct {
        const char *header;
        const char *words;
    } cases[] = {
        { "", "does not begin with '{'" },
        { "[]", "does not begin with '{'" },
        { "{\"a\":", "header (which begins at byte 8)" },
        { "{\"a\":1}", "tensor 'a': is not described" },
        { "{" T("a", "F32", "2", "0", "8") "," T("a", "F32", "2", "8", "16") "}", "header" },
        { "{" T("a", "F32", "2", "0", "8") "," T("b", "F32", "2", "4", "12") "}", "overlap" },
        { "{" T("a", "F32", "2", "0", "8") "," T("b", "F32", "1", "12", "16") "}", "hole" },
        { "{" T("a", "F32", "2", "8", "16") "}", "hole" },
        { "{" T("a", "F32", "2", "0", "8") "}", "8 bytes at the end belong to no tensor" },
        { "{" T("a", "F32", "4", "8", "24") "}", "ends at 24 of the data, which have 16" },
        { "{" T("a", "F32", "2", "0", "16") "}", "has 16 bytes, but dtype and shape make 8" },
        { "{" T("a", "F32", "4", "16", "0") "}", "run backwards" },
        { "{" T("a", "F32", "4", "-1", "15") "}", "run backwards" },
        { "{" T("a", "F32", "-4", "0", "16") "}", "whole number from 0" },
        { "{" T("a", "F32", "4.5", "0", "16") "}", "whole number from 0" },
        { "{" T("a", "F32", "4294967296,4294967296", "0", "16") "}", "more than 64 bits" },
        { "{" T("a", "F64", "2305843009213693952", "0", "16") "}", "more than 64 bits" },
        { "{" T("a", "F32", "4", "0", "1e9") "}", "no data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4]}}", "no data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}", "no shape" },
        { "{\"a\":{\"shape\":[4],\"data_offsets\":[0,16]}}", "no dtype" },
        { "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
          "a zero byte in its name" },
        { "{\"__metadata__\":{\"a\":1}}", "metadata 'a' is not a text" },
        { "{\"__metadata__\":3}", "__metadata__ is not an object" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", "header" },
        { "{} {}", "header (which begins at byte 8)" },
        { "{" T("a", "F32", "4", "0", "16") ",}", "header" },
        { "{" T("a\xff", "F32", "4", "0", "16") "}", "UTF-8" },
        { "{" T("a\xc0\xaf", "F32", "4", "0", "16") "}", "UTF-8" },
        { "{" T("a\\ud800", "F32", "4", "0", "16") "}", "surrogate" },
        { "{" T("a\nb", "F32", "4", "0", "16") "}", "header" },
        { "{" T("", "F32", "4", "0", "16") "}", "its name is empty" },
        { "{\"a\":" DEEP DEEP DEEP DEEP "1", "deep" },
        { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
          "comes twice" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16],\"file\":\"b\"}}",
          "has a member 'file'" },
        { "{\"a\":{\"dtype\":7,\"shape\":[4],\"data_offsets\":[0,16]}}", "no dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}", "no shape" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"4\"],\"data_offsets\":[0,16]}}",
          "whole number from 0" },
        { "{" T("a", "F32", "4", "0,8", "16") "}", "no data_offsets of two" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}",
          "no data_offsets of two" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":{\"begin\":0,\"end\":16}}}",
          "no data_offsets of two" },
        { "{" T("a", "F32", "4", "0", "9223372036854775808") "}", "no data_offsets of two" },
        { "{" T("a", "F32", "9223372036854775808", "0", "16") "}", "whole number from 0" },
        { "{" T("a", "F32", "4", "0", "9223372036854775807") "}", "which have 16 bytes" },
        { "{" T("a", "F32", "3", "0", "12") "}", "4 bytes at the end belong to no tensor" },
        { "{" T("a", "F32", "0,4611686018427387904,4611686018427387904", "4", "4") "}", "hole" },
        { "{" T("a", "F32", "4", "0", "16") "," T("e", "F32", "0", "8", "8") "}", "overlap" },
        { "{" T("a", "F32", "4", "0", "16") "," T("b", "I32", "4", "0", "16") "}", "overlap" },
        { "{\"a\":null}", "is not described by an object" },
        { "{\"a\":[]}", "is not described by an object" },
    };
    QnSafetensors *s;
    for (int i = 0; i < QN_COUNT(cases); i++)
        assert_fails(parse(cases[i].header, 16, &s), QN_EFORMAT, cases[i].words);
    assert_fails(parse("{" T("a", "F8_E8M0", "16", "0", "16") "}", 16, &s), QN_EUNSUPPORTED,
                 "dtype 'F8_E8M0'");
    assert_fails(parse("{" T("a", "U8", "1,1,1,1,1,1,1,1,16", "0", "16") "}", 16, &s),
                 QN_EUNSUPPORTED, "9 dimensions");
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    assert_fails(qn_safetensors_parse("m", lfs, sizeof lfs, &s), QN_EFORMAT, "git lfs pull");
    assert_fails(qn_safetensors_parse("m", "\1\0\0", 3, &s), QN_EFORMAT, "only 3 bytes");
    assert_fails(qn_safetensors_parse("m", "\x09\0\0\0\0\0\0\0{}", 10, &s), QN_EFORMAT,
                 "a header of 9 bytes, but only 2 follow");
    assert_fails(qn_safetensors_parse("m", "\1\xe1\xf5\5\0\0\0\0{}", 10, &s), QN_EFORMAT,
                 "over the limit of 100000000");
    assert_fails(qn_safetensors_parse("m", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, &s),
                 QN_EFORMAT, "over the limit");
}

static const float weights[6] = { 1, 2, 3, 4, 5, 6 };
static const double wide[2] = { 0.5, -0.5 };
static const QnSafetensor some[] = {
    { .name = "z", .dtype = QN_DTYPE_U8, .rank = 1, .dims = { 3 }, .data = "abc" },
    { .name = "w", .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 2, 3 }, .data = weights },
    { .name = "nothing", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 0 }, .data = "" },
    { .name = "d\"\xc3\xa9", .dtype = QN_DTYPE_F64, .rank = 1, .dims = { 2 }, .data = wide },
    { .name = "b", .dtype = QN_DTYPE_BOOL, .rank = 0, .data = "\1" },
};
static const QnSafetensorsText notes[] = { { "step", "12" }, { "who", "line\nbreak" } };

static char *slurp(const char *path, size_t *n)
{
    char *data;
    assert_ok(qn_file_read(path, 1 << 20, &data, n));
    return data;
}

static void test_every_dtype_of_the_format(void **state)
{
    static const QnDtype dtypes[] = { QN_DTYPE_F32, QN_DTYPE_F16,      QN_DTYPE_BF16,
                                      QN_DTYPE_F64, QN_DTYPE_I8,       QN_DTYPE_U8,
                                      QN_DTYPE_I32, QN_DTYPE_I64,      QN_DTYPE_BOOL,
                                      QN_DTYPE_I16, QN_DTYPE_U16,      QN_DTYPE_U32,
                                      QN_DTYPE_U64, QN_DTYPE_F8E4M3FN, QN_DTYPE_F8E5M2 };
    static const QnSafetensor packed = { .name = "p", .dtype = QN_DTYPE_I4 };
    const char *path = temp_path("t.safetensors");
    QnSafetensors *s;
    for (int i = 0; i < QN_COUNT(dtypes); i++) {
        QnSafetensor t = { .name = "t", .dtype = dtypes[i], .rank = 1, .dims = { 2 } };
        t.data = "\1\0\1\0\1\0\1\0\0\1\0\1\0\1\0\1";
        assert_ok(qn_safetensors_save(path, &t, 1, NULL, 0));
        assert_ok(qn_safetensors_open(path, &s));
        const QnSafetensor *got = qn_safetensors_at(s, 0);
        assert_true(got->dtype == dtypes[i] && got->bytes == 2 * qn_dtype_bytes(dtypes[i]));
        assert_memory_equal(got->data, t.data, got->bytes);
        qn_safetensors_free(s);
    }
    assert_fails(qn_safetensors_save(path, &packed, 1, NULL, 0), QN_EARG, "dtype");
}

static void test_written_files_read_back(void **state)
{
    const char *path = temp_path("w.safetensors"), *other = temp_path("v.safetensors");
    QnSafetensors *s;
    assert_ok(qn_safetensors_save(path, some, 5, notes, 2));
    assert_ok(qn_safetensors_open(path, &s));
    assert_int_equal(qn_safetensors_count(s), 5);
    for (int i = 0; i < 5; i++) {
        const QnSafetensor *t = qn_safetensors_find(s, some[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, some[i].dtype);
        assert_int_equal(t->rank, some[i].rank);
        assert_memory_equal(t->dims, some[i].dims, sizeof t->dims);
        assert_memory_equal(t->data, some[i].data, t->bytes);
        size_t item = qn_dtype_bytes(t->dtype); /* mapped at a page: aligned in the file */
        assert_int_equal((uintptr_t)t->data % item, 0);
    }
    assert_int_equal((uintptr_t)qn_safetensors_at(s, 0)->data % 64, 0);
    assert_string_equal(qn_safetensors_metadata(s, "who"), "line\nbreak");
    qn_safetensors_free(s);
    QnSafetensor turned[5]; /* the order of the caller does not matter */
    for (int i = 0; i < 5; i++)
        turned[i] = some[4 - i];
    assert_ok(qn_safetensors_save(other, turned, 5, notes, 2));
    size_t n, m;
    char *a = slurp(path, &n), *b = slurp(other, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    qn_free(a);
    qn_free(b);
}

static void test_streaming(void **state)
{
    const char *path = temp_path("s.safetensors");
    QnSafetensorsWriter *w;
    QnSafetensors *s;
    assert_ok(qn_safetensors_create(path, some, 5, NULL, 0, &w));
    assert_int_equal(qn_safetensors_next(w), 3); /* widest first */
    assert_ok(qn_safetensors_write(w, wide, 3));
    assert_ok(qn_safetensors_write(w, (const char *)wide + 3, 13));
    assert_int_equal(qn_safetensors_next(w), 1); /* the empty one wants nothing */
    assert_fails(qn_safetensors_write(w, weights, 25), QN_EARG, "more than");
    assert_ok(qn_safetensors_write(w, weights, 24));
    assert_int_equal(qn_safetensors_next(w), 4);
    assert_fails(qn_safetensors_commit(w), QN_EARG, "tensor 'b' is not written whole");
    assert_false(qn_file_exists(path));
    assert_ok(qn_safetensors_create(path, some, 5, NULL, 0, &w));
    qn_safetensors_discard(w);
    assert_false(qn_file_exists(path));
    const QnSafetensor twice[] = { some[0], some[1], { .name = "z", .dtype = QN_DTYPE_F32 } };
    assert_fails(qn_safetensors_create(path, twice, 3, NULL, 0, &w), QN_EARG, "'z' is given twice");
    const QnSafetensor taken = { .name = "__metadata__", .dtype = QN_DTYPE_U8 };
    assert_fails(qn_safetensors_create(path, &taken, 1, NULL, 0, &w), QN_EARG, "taken");
    assert_ok(qn_safetensors_save(path, some, 0, NULL, 0)); /* no tensors at all */
    assert_ok(qn_safetensors_open(path, &s));
    assert_int_equal(qn_safetensors_count(s), 0);
    qn_safetensors_free(s);
}

/* The n-th allocation or system call fails, for all n: an error, no leak, the old file stays. */
static void test_every_step_may_fail(void **state)
{
    const char *path = temp_path("f.safetensors");
    assert_ok(qn_safetensors_save(path, some, 5, notes, 2));
    size_t n, m, k;
    char *whole = slurp(path, &m);
    assert_ok(qn_safetensors_save(path, some, 2, NULL, 0));
    char *before = slurp(path, &n);
    int64_t failures = 0, at = 1;
    for (;; at++) {
        assert_ok(qn_safetensors_save(path, some, 2, NULL, 0));
        qn_fault_arm(at);
        QnStatus st = qn_safetensors_save(path, some, 5, notes, 2);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        char *now = slurp(path, &k);
        bool is_old = k == n && !memcmp(before, now, n);
        bool is_new = k == m && !memcmp(whole, now, m); /* the last step syncs the folder */
        qn_free(now);
        assert_true(is_old || is_new);
        assert_true(is_new || st != QN_OK);
        failures += st != QN_OK && is_old;
        if (over)
            break;
    }
    assert_true(failures > 10);
    qn_free(before);
    qn_free(whole);
    QnSafetensors *s;
    for (at = 1;; at++) {
        qn_fault_arm(at);
        QnStatus st = qn_safetensors_open(path, &s);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
        assert_true(st == QN_ENOMEM || st == QN_EIO);
    }
    qn_safetensors_free(s);
}

static void test_a_published_file(void **state)
{
    const char *path = "../shared/data/onnx/silero_vad_16k.safetensors";
    if (access(path, R_OK))
        skip_because("no %s", path);
    QnSafetensors *s;
    assert_ok(qn_safetensors_open(path, &s));
    assert_int_equal(qn_safetensors_count(s), 15);
    const QnSafetensor *t = qn_safetensors_find(s, "lstm_cell.weight_ih");
    assert_true(t && t->dtype == QN_DTYPE_F32 && t->dims[0] == 512 && t->dims[1] == 128);
    qn_safetensors_free(s);
}
