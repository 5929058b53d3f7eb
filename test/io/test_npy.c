/* labels: io */
#include "temp.h"

#include "io/npy.h"

/* A file with this version, header text and data; its size. */
static size_t make(uint8_t *out, int version, const char *header, const void *data, size_t n)
{
    size_t h = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < at; i++)
        out[i] = (uint8_t)(h >> (8 * (i - 8)));
    memcpy(out + at, header, h);
    memcpy(out + at + h, data, n);
    return at + h + n;
}

static void test_versions_and_orders(void **state)
{
    uint8_t b[512];
    const float in[6] = { 1, 2, 3, 4, 5, 6 };
    QnNpy a;
    for (int version = 1; version <= 3; version++) {
        size_t n = make(b, version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
                        in, sizeof in);
        assert_ok(qn_npy_parse("a.npy", b, n, &a));
        assert_int_equal(a.dtype, QN_DTYPE_F32);
        assert_true(a.rank == 2 && a.dims[0] == 2 && a.dims[1] == 3 && a.count == 6);
        assert_memory_equal(a.data, in, sizeof in);
        qn_npy_fini(&a);
    }
    size_t n = make(b, 1, "{\"shape\":(2,3L),'fortran_order':True,'descr':'<f4'}", in, sizeof in);
    assert_ok(qn_npy_parse("a.npy", b, n, &a));
    const float turned[6] = { 1, 3, 5, 2, 4, 6 };
    assert_memory_equal(a.data, turned, sizeof turned);
    qn_npy_fini(&a);
    int32_t cube[24], want[24];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) {
                cube[i + 2 * j + 6 * k] = 100 * i + 10 * j + k;
                want[12 * i + 4 * j + k] = 100 * i + 10 * j + k;
            }
    n = make(b, 1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4)}", cube,
             sizeof cube);
    assert_ok(qn_npy_parse("a.npy", b, n, &a));
    assert_memory_equal(a.data, want, sizeof want);
    qn_npy_fini(&a);
}

static void test_big_endian_scalars_and_empties(void **state)
{
    uint8_t b[512];
    QnNpy a;
    size_t n = make(b, 1, "{'descr': '>i4', 'fortran_order': False, 'shape': ()}", "\0\0\1\2", 4);
    assert_ok(qn_npy_parse("a.npy", b, n, &a));
    assert_true(a.rank == 0 && a.count == 1 && *(int32_t *)a.data == 258);
    qn_npy_fini(&a);
    n = make(b, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999, 5)}", "", 0);
    assert_ok(qn_npy_parse("a.npy", b, n, &a));
    assert_int_equal(a.count, 0);
    qn_npy_fini(&a);
    n = make(b, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\x7f", 3);
    assert_ok(qn_npy_parse("a.npy", b, n, &a));
    assert_memory_equal(a.data, "\0\1\1", 3);
    qn_npy_fini(&a);
}

static void test_written_files_read_back(void **state)
{
    static const int64_t dims[][3] = { { 2, 3, 2 }, { 12, 1, 1 }, { 0, 5, 1 } };
    uint8_t data[96];
    for (int i = 0; i < 96; i++)
        data[i] = (uint8_t)(i % 2);
    for (int d = 0; d <= QN_DTYPE_U64; d++)
        for (int k = 0; k < 3; k++)
            for (int rank = 1; rank <= 3; rank++) {
                const char *path = temp_path("w.npy");
                QnNpy a;
                assert_ok(qn_npy_write(path, (QnDtype)d, rank, dims[k], data));
                assert_ok(qn_npy_read(path, &a));
                assert_int_equal(a.dtype, d);
                assert_int_equal(a.rank, rank);
                assert_memory_equal(a.dims, dims[k], (size_t)rank * sizeof dims[k][0]);
                size_t bytes = (size_t)a.count * qn_dtype_bytes(a.dtype);
                assert_memory_equal(a.data, data, bytes);
                qn_npy_fini(&a);
                struct stat info;
                stat(path, &info); /* the data begin at a multiple of 64 */
                assert_int_equal(((size_t)info.st_size - bytes) % 64, 0);
            }
    assert_fails(qn_npy_write(temp_path("w.npy"), QN_DTYPE_F32, 9, dims[0], data), QN_EARG, "9");
    assert_fails(qn_npy_write(temp_path("w.npy"), QN_DTYPE_F8E5M2, 1, dims[1], data), QN_EARG,
                 "type");
}

static void test_malformed(void **state)
{
    static const struct {
        const char *header, *words;
        QnStatus st;
    } cases[] = {
        { "", "expected '{'", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False}", "shape is missing", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "True or False", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown",
          QN_EFORMAT },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "repeated",
          QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "more text", QN_EFORMAT },
        { "{'descr': '<f4', fortran_order: False, 'shape': (1,)", "a quoted word", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x", "never closed",
          QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a dimension", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          "more than 64 bits", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
          "byte 60: the dimensions multiply to more than 64 bits", QN_EFORMAT },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}",
          "promises 2305843009213693952 items", QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "the file holds 4 bytes",
          QN_EFORMAT },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
          "more than 8 dimensions", QN_EUNSUPPORTED },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "byte 21: type '<c8'",
          QN_EUNSUPPORTED },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "byte 21: type '|O'",
          QN_EUNSUPPORTED },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured",
          QN_EUNSUPPORTED },
    };
    uint8_t b[512];
    QnNpy a;
    for (int i = 0; i < QN_COUNT(cases); i++) {
        size_t n = make(b, 1, cases[i].header, "abcd", 4);
        assert_fails(qn_npy_parse("a.npy", b, n, &a), cases[i].st, cases[i].words);
    }
    size_t n = make(b, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "abcd", 4);
    for (size_t cut = 0; cut < n; cut++)
        assert_fails(qn_npy_parse("a.npy", b, cut, &a), QN_EFORMAT, "a.npy: ");
    b[6] = 4;
    assert_fails(qn_npy_parse("a.npy", b, n, &a), QN_EUNSUPPORTED, "byte 6: version 4");
    b[0] = 'x';
    assert_fails(qn_npy_parse("a.npy", b, n, &a), QN_EFORMAT, "magic");
    assert_fails(qn_npy_parse("a.npz", "PK\3\4 67890123", 12, &a), QN_EFORMAT, ".npz archive");
}
