/* .npz files and the ZIP archives that they are. labels: io */
#include "temp.h"
#include "zip_make.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/npz.h"

static float numbers[600];
static uint8_t bytes[3] = { 7, 8, 9 };
static const char *const names[] = { "w", "layer.0/b", "../up", "empty" };

static void make_arrays(QnNpy a[4])
{
    for (int i = 0; i < 600; i++)
        numbers[i] = (float)(i % 50);
    a[0] = (QnNpy){ .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 20, 30 }, .data = numbers };
    a[1] = (QnNpy){ .dtype = QN_DTYPE_U8, .rank = 1, .dims = { 3 }, .data = bytes };
    a[2] = (QnNpy){ .dtype = QN_DTYPE_F32, .rank = 0, .data = numbers + 5 };
    a[3] = (QnNpy){ .dtype = QN_DTYPE_I64, .rank = 2, .dims = { 0, 4 }, .data = bytes };
}

static void check_arrays(const QnNpz *z)
{
    QnNpy want[4], got;
    make_arrays(want);
    assert_int_equal(qn_npz_count(z), 4);
    for (int i = 0; i < 4; i++) {
        int64_t at = qn_npz_find(z, names[i]);
        assert_int_equal(at, i);
        assert_string_equal(qn_npz_name(z, at), names[i]);
        assert_true(qn_npz_type(z, at)->dtype == want[i].dtype && !qn_npz_type(z, at)->data);
        assert_ok(qn_npz_read(z, at, &got));
        assert_int_equal(got.rank, want[i].rank);
        assert_memory_equal(got.dims, want[i].dims, sizeof got.dims);
        assert_memory_equal(got.data, want[i].data, (size_t)got.count * qn_dtype_bytes(got.dtype));
        qn_npy_fini(&got);
    }
    assert_int_equal(qn_npz_find(z, "w.npy"), -1);
}

#ifdef QN_HAVE_ZLIB
enum { MODES = 2 };
#else
enum { MODES = 1 };
#endif

static void test_written_files_read_back(void **state)
{
    QnNpy a[4];
    make_arrays(a);
    size_t sizes[2] = { 0 };
    for (int mode = 0; mode < MODES; mode++) {
        QnNpz *z;
        struct stat info;
        const char *path = temp_path("a.npz");
        assert_ok(qn_npz_write(path, names, a, 4, mode == 1));
        assert_ok(qn_npz_open(path, &z));
        assert_int_equal(qn_npz_is_compressed(z), mode);
        check_arrays(z);
        qn_npz_close(z);
        stat(path, &info);
        sizes[mode] = (size_t)info.st_size;
    }
    assert_true(MODES == 1 || sizes[1] < sizes[0] / 2);
    const char *twice[] = { "w", "w" };
    assert_fails(qn_npz_write(temp_path("t.npz"), twice, a, 2, false), QN_EARG, "'w' is given");
    assert_false(qn_file_exists(temp_path("t.npz")));
    QnNpy wide = { .dtype = QN_DTYPE_F32, .rank = 9 };
    assert_fails(qn_npz_write(temp_path("t.npz"), names, &wide, 1, false), QN_EARG, "9 dim");
    assert_false(qn_file_exists(temp_path("t.npz")));
}

static void test_no_compression_without_zlib(void **state)
{
    QnNpy a[4];
    make_arrays(a);
    if (MODES == 2)
        skip_because("zlib is there");
    assert_fails(qn_npz_write(temp_path("c.npz"), names, a, 4, true), QN_EUNSUPPORTED, "zlib");
}

/* Whatever byte is changed, and wherever the file is cut: refused, or the arrays are the same. */
static void test_damage(void **state)
{
    QnNpy a[4];
    make_arrays(a);
    for (int mode = 0; mode < MODES; mode++) {
        char *data;
        size_t n;
        int refused = 0;
        assert_ok(qn_npz_write(temp_path("d.npz"), names, a, 4, mode == 1));
        assert_ok(qn_file_read(temp_path("d.npz"), 1 << 20, &data, &n));
        for (size_t i = 0; i < n; i++) {
            QnNpz *z = NULL;
            QnNpy got;
            data[i] = (char)(data[i] ^ 0x41);
            QnStatus st = qn_npz_parse("d.npz", data, n, &z);
            for (int k = 0; st == QN_OK && k < 4; k++) {
                int64_t at = qn_npz_find(z, names[k]);
                st = at < 0 ? QN_EFORMAT : qn_npz_read(z, at, &got);
                if (st == QN_OK)
                    qn_npy_fini(&got);
            }
            if (st == QN_OK)
                check_arrays(z);
            refused += st != QN_OK;
            qn_npz_close(z);
            data[i] = (char)(data[i] ^ 0x41);
        }
        assert_true(refused > (int)n / 2);
        for (size_t cut = 0; cut < n; cut++) {
            QnNpz *z;
            assert_fails(qn_npz_parse("d.npz", data, cut, &z), QN_EFORMAT, "d.npz: ");
        }
        qn_free(data);
    }
}

static void test_every_step_may_fail(void **state)
{
    QnNpy a[4], got;
    make_arrays(a);
    const char *path = temp_path("f.npz");
    for (int64_t at = 1;; at++) {
        QnNpz *z = NULL;
        unlink(path);
        qn_fault_arm(at);
        QnStatus st = qn_npz_write(path, names, a, 4, MODES == 2);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        assert_true(st == QN_OK || st == QN_ENOMEM || st == QN_EIO);
        if (!qn_file_exists(path))
            continue;
        qn_fault_arm(at);
        st = qn_npz_open(path, &z);
        if (st == QN_OK)
            st = qn_npz_read(z, 0, &got);
        over = over && qn_fault_events() < at;
        qn_fault_arm(0);
        if (st == QN_OK)
            qn_npy_fini(&got);
        qn_npz_close(z);
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
    }
}

/* ---- archives by hand ---- */

static const char npy[] = "\x93NUMPY\1\0\x39\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,"
                          "), }abc";
enum { NPY = sizeof npy - 1 };

static QnStatus open_made(ZipMake *m, bool zip64, QnNpz **z)
{
    zip_end(m, zip64);
    return qn_npz_parse("m.npz", qn_str_text(&m->file), m->file.n, z);
}

static void test_zip64_and_odd_names(void **state)
{
    for (int mode = 0; mode < 2; mode++) {
        ZipMake m = { 0 };
        QnNpz *z;
        QnNpy got;
        zip_add(&m, &(ZipEntry){ .name = "folder/" });
        zip_add(&m, &(ZipEntry){ .name = "/etc/passwd.npy", .data = npy, .n = NPY, .zip64 = mode });
        zip_add(&m, &(ZipEntry){ .name = "a.npy", .data = npy, .n = NPY, .zip64 = mode });
        assert_ok(open_made(&m, mode, &z));
        assert_int_equal(qn_npz_count(z), 2);
        assert_string_equal(qn_npz_name(z, 0), "/etc/passwd"); /* a name, and nothing more */
        assert_ok(qn_npz_read(z, 1, &got));
        assert_memory_equal(got.data, "abc", 3);
        qn_npy_fini(&got);
        qn_npz_close(z);
        zip_fini(&m);
    }
}

static void test_refused_entries(void **state)
{
    static const char text[] = "not an array, and long enough to be looked at";
    static const struct {
        ZipEntry e;
        const char *words;
        QnStatus st;
    } cases[] = {
        { { .name = "a.txt", .data = npy, .n = NPY }, "'a.txt': is no array", QN_EFORMAT },
        { { .name = ".npy", .data = npy, .n = NPY }, "is no array", QN_EFORMAT },
        { { .name = "a.npy", .data = text, .n = sizeof text }, "magic", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = 5 }, "shorter than", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY - 1 }, "the file holds 2 bytes", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .method = 12 }, "method 12", QN_EUNSUPPORTED },
        { { .name = "a.npy", .data = npy, .n = NPY, .flags = 1 }, "encrypted", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .size = 9 }, "its two sizes", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .local_name = "b.npy" },
          "another name",
          QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .local_method = 9 },
          "another method",
          QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .offset = 8 }, "no header where", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .offset = 4000 },
          "not before the directory",
          QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .offset = 1 }, "another name", QN_EFORMAT },
        { { .name = "first.npy", .data = npy, .n = NPY, .offset = 1 }, "overlaps", QN_EFORMAT },
        { { .name = "first.npy", .data = npy, .n = NPY }, "comes twice", QN_EFORMAT },
        { { .name = "a\xff.npy", .data = npy, .n = NPY }, "UTF-8", QN_EFORMAT },
        { { .name = "", .data = npy, .n = NPY }, "empty", QN_EFORMAT },
        { { .name = "a.npy", .data = npy, .n = NPY, .method = 8, .size = 1 << 20 },
          "more than deflate can unpack",
          QN_EFORMAT },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        ZipMake m = { 0 };
        QnNpz *z;
        zip_add(&m, &(ZipEntry){ .name = "first.npy", .data = npy, .n = NPY });
        zip_add(&m, &cases[i].e);
        assert_fails(open_made(&m, false, &z), cases[i].st, cases[i].words);
        assert_contains(qn_error_last()->text, "m.npz");
        zip_fini(&m);
    }
    ZipMake m = { 0 };
    QnNpz *z;
    QnNpy got;
    zip_add(&m, &(ZipEntry){ .name = "a.npy", .data = npy, .n = NPY, .crc = 1 });
    assert_ok(open_made(&m, false, &z)); /* headers only; the data are looked at when read */
    assert_fails(qn_npz_read(z, 0, &got), QN_EFORMAT, "'a.npy': its checksum is wrong");
    qn_npz_close(z);
    zip_fini(&m);
}

/* An entry whose declared size is not what comes out. The packed bytes are of zeros: 1000 to 1. */
static void test_sizes_that_lie(void **state)
{
    static uint8_t zeros[1 << 20], out[1 << 20];
    QnZipWriter *w;
    char *data;
    size_t n;
    const char *path = temp_path("z.zip");
    if (MODES == 1)
        skip_because("zlib is not there");
    assert_ok(qn_zip_create(path, &w));
    assert_ok(qn_zip_add(w, "z", &(QnZipPart){ zeros, sizeof zeros }, 1, true));
    assert_ok(qn_zip_commit(w));
    assert_ok(qn_file_read(path, 1 << 20, &data, &n));
    assert_true(n < 4096);
    QnZip *zip;
    assert_ok(qn_zip_parse("z", data, n, &zip));
    QnZipEntry e = *qn_zip_at(zip, 0);
    assert_ok(qn_zip_read(zip, &e, out));
    static const int64_t lies[] = { -1, -1000, 1, 4000, -(1 << 20) + 1 };
    for (int i = 0; i < QN_COUNT(lies); i++) {
        ZipMake m = { 0 };
        QnZip *liar;
        zip_add(&m, &(ZipEntry){ .name = "z",
                                 .data = e.packed,
                                 .n = (size_t)e.packed_size,
                                 .method = 8,
                                 .crc = e.crc,
                                 .size = (uint64_t)((1 << 20) + lies[i]) });
        zip_end(&m, false);
        assert_ok(qn_zip_parse("z", qn_str_text(&m.file), m.file.n, &liar));
        size_t size = (size_t)qn_zip_at(liar, 0)->size;
        uint8_t *exact = qn_alloc(size); /* the sanitizer sees a byte too many */
        assert_fails(qn_zip_read(liar, qn_zip_at(liar, 0), exact), QN_EFORMAT,
                     lies[i] < 0 ? "more than it declares" : "less than it declares");
        qn_free(exact);
        qn_zip_free(liar);
        zip_fini(&m);
    }
    qn_zip_free(zip);
    qn_free(data);
}

static void test_checksum(void **state)
{
    assert_int_equal(qn_zip_crc(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(qn_zip_crc(qn_zip_crc(0, "1234", 4), "56789", 5), 0xcbf43926);
}
