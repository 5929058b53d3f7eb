/* PyTorch's files. labels: io */
#include "pickle_make.h"
#include "temp.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/torch_file.h"

static const float six[6] = { 1, 2, 3, 4, 5, 6 };
static const uint8_t flags[4] = { 1, 0, 3, 0 };
static const PkStorage storages[] = { { six, sizeof six }, { flags, sizeof flags }, { "", 0 } };

static const PkTensor plain = { "FloatStorage", "0", 6, 0, 2, { 2, 3 }, { 3, 1 }, false };
static const PkTensor turned = { "FloatStorage", "0", 6, 0, 2, { 3, 2 }, { 1, 3 }, false };
static const PkTensor part = { "FloatStorage", "0", 6, 3, 1, { 2 }, { 2 }, true };
static const PkTensor scalar = { "FloatStorage", "0", 6, 5, 0, { 0 }, { 0 }, false };
static const PkTensor bools = { "BoolStorage", "1", 4, 0, 1, { 4 }, { 1 }, false };
static const PkTensor empty = { "LongStorage", "2", 0, 0, 2, { 0, 7 }, { 7, 1 }, false };

/* {"model": OrderedDict(w, w.t, flags) with _metadata, "list": [scalar, {3: part}], …} */
static void state_dict(QnStr *s)
{
    qn_str_add(s, PK_PROTO "}q\1(");
    pk_text(s, "model");
    qn_str_add(s, PK_ORDERED_DICT "q\2(");
    pk_text(s, "w");
    pk_tensor(s, &plain);
    qn_str_add(s, "q\3");
    pk_text(s, "w.turned");
    pk_tensor(s, &turned);
    pk_text(s, "tied");
    qn_str_add(s, "h\3");
    pk_text(s, "flags");
    pk_tensor(s, &bools);
    qn_str_add(s, "u}");
    pk_text(s, "_metadata");
    qn_str_add(s, PK_ORDERED_DICT "sb");
    pk_text(s, "list");
    qn_str_add(s, "](");
    pk_tensor(s, &scalar);
    qn_str_add(s, "}K\3");
    pk_tensor(s, &part);
    qn_str_add(s, "se");
    pk_text(s, "empty");
    pk_tensor(s, &empty);
    pk_text(s, "epoch");
    qn_str_add(s, "K\x0c");
    pk_text(s, "minus");
    qn_str_add(s, "J\xfe\xff\xff\xff");
    pk_text(s, "lr");
    qn_str_add_bytes(s, "G\x3f\xe0\0\0\0\0\0\0", 9);
    pk_text(s, "name");
    pk_text(s, "run 1");
    pk_text(s, "nothing");
    qn_str_add(s, "Nu.");
}

static void check_tensor(QnTorchFile *f, int64_t i, const char *name, QnDtype dtype, int rank,
                         int64_t dim, const void *want, size_t n)
{
    const QnSafetensor *t = qn_torch_file_at(f, i);
    char got[64];
    assert_string_equal(t->name, name);
    assert_true(t->dtype == dtype && t->rank == rank && (!rank || t->dims[0] == dim));
    assert_int_equal(t->bytes, n);
    assert_ok(qn_torch_file_read(f, i, got));
    assert_memory_equal(got, want, n);
}

static void check_state_dict(QnTorchFile *f)
{
    static const float columns[6] = { 1, 4, 2, 5, 3, 6 }, two[2] = { 4, 6 };
    assert_int_equal(qn_torch_file_count(f), 7);
    check_tensor(f, 0, "model.w", QN_DTYPE_F32, 2, 2, six, 24);
    check_tensor(f, 1, "model.w.turned", QN_DTYPE_F32, 2, 3, columns, 24);
    check_tensor(f, 2, "model.tied", QN_DTYPE_F32, 2, 2, six, 24);
    check_tensor(f, 3, "model.flags", QN_DTYPE_BOOL, 1, 4, "\1\0\1\0", 4);
    check_tensor(f, 4, "list.0", QN_DTYPE_F32, 0, 0, six + 5, 4);
    check_tensor(f, 5, "list.1.3", QN_DTYPE_F32, 1, 2, two, 8);
    check_tensor(f, 6, "empty", QN_DTYPE_I64, 2, 0, "", 0);
    int64_t offset;
    assert_int_equal(qn_torch_file_strides(f, 5, &offset)[0], 2);
    assert_int_equal(offset, 3);
}

static void test_reading(void **state)
{
    static const char *const texts[][2] = {
        { "epoch", "12" }, { "minus", "-2" }, { "lr", "0.5" }, { "name", "run 1" }
    };
    QnStr s = { 0 };
    ZipMake z = { 0 };
    QnTorchFile *f;
    state_dict(&s);
    pk_archive(&z, s.s, s.n, storages, 3);
    assert_true(qn_torch_file_is(z.file.s, z.file.n));
    assert_ok(qn_torch_file_open(temp_file("m.pt", z.file.s, z.file.n), &f));
    check_state_dict(f);
    assert_int_equal(qn_torch_file_text_count(f), 4);
    for (int i = 0; i < 4; i++) {
        QnSafetensorsText t = qn_torch_file_text_at(f, i);
        assert_string_equal(t.key, texts[i][0]);
        assert_string_equal(t.value, texts[i][1]);
    }
    qn_torch_file_close(f);
    qn_str_fini(&s);
    zip_fini(&z);
}

/* Protocol 4: frames, short texts, names from the stack, the memo without numbers. */
static void test_newer_protocols(void **state)
{
    static const char pickle[] =
        "\x80\4\x95\1\0\0\0\0\0\0\0}\x94\x8c\1w\x8c\x0ctorch._utils\x94\x8c\x12_rebuild_tensor_v2"
        "\x93\x94((\x8c\7storage\x8c\5torch\x8c\x0c"
        "FloatStorage\x93\x8c\1"
        "0\x8c\3cpuK\6tQK\0K\6\x85K\1\x85\x89\x8c\x0b"
        "collections\x8c\x0bOrderedDict\x93)RtRs.";
    ZipMake z = { 0 };
    QnTorchFile *f;
    pk_archive(&z, pickle, sizeof pickle - 1, storages, 3);
    assert_ok(qn_torch_file_parse("m.pt", z.file.s, z.file.n, &f));
    assert_int_equal(qn_torch_file_count(f), 1);
    check_tensor(f, 0, "w", QN_DTYPE_F32, 1, 6, six, 24);
    qn_torch_file_close(f);
    zip_fini(&z);
}

/* Opens an archive around this pickle, without the memory of anything else. */
static QnStatus open_pickle(const void *pickle, size_t n, QnTorchFile **f)
{
    ZipMake z = { 0 };
    pk_archive(&z, pickle, n, storages, 3);
    QnStatus st = qn_torch_file_parse("m.pt", z.file.s, z.file.n, f);
    zip_fini(&z);
    return st;
}

/* The same archive deflated by another program is as good. */
static void test_deflated(void **state)
{
    QnStr s = { 0 };
    QnTorchFile *f;
    QnZipWriter *w;
#ifndef QN_HAVE_ZLIB
    skip_because("zlib is not there");
#endif
    const char *path = temp_path("deflated.pt");
    state_dict(&s);
    assert_ok(qn_zip_create(path, &w));
    assert_ok(qn_zip_add(w, "a/data.pkl", &(QnZipPart){ s.s, s.n }, 1, true));
    for (int i = 0; i < 3; i++) {
        char name[20];
        snprintf(name, sizeof name, "a/data/%d", i);
        assert_ok(qn_zip_add(w, name, &(QnZipPart){ storages[i].data, storages[i].n }, 1, true));
    }
    assert_ok(qn_zip_commit(w));
    assert_ok(qn_torch_file_open(path, &f));
    check_state_dict(f);
    qn_torch_file_close(f);
    qn_str_fini(&s);
}

static void test_refused_tensors(void **state)
{
    static const struct {
        PkTensor t;
        QnStatus st;
        const char *words;
    } cases[] = {
        { { "FloatStorage", "9", 6, 0, 1, { 6 }, { 1 }, false },
          QN_EFORMAT,
          "'archive/data/9' is not in the archive" },
        { { "FloatStorage", "../data.pkl", 6, 0, 1, { 6 }, { 1 }, false },
          QN_EFORMAT,
          "is not in the archive" },
        { { "FloatStorage", "0", 7, 0, 1, { 6 }, { 1 }, false }, QN_EFORMAT, "has 24 bytes" },
        { { "DoubleStorage", "0", 6, 0, 1, { 6 }, { 1 }, false }, QN_EFORMAT, "has 24 bytes" },
        { { "FloatStorage", "0", INT64_MAX, 0, 1, { 6 }, { 1 }, false }, QN_EFORMAT, "24 bytes" },
        { { "FloatStorage", "0", -6, 0, 1, { 6 }, { 1 }, false }, QN_EFORMAT, "not described" },
        { { "ComplexDoubleStorage", "0", 6, 0, 1, { 6 }, { 1 }, false },
          QN_EUNSUPPORTED,
          "type torch.ComplexDoubleStorage" },
        { { "ComplexFloatStorage", "0", 6, 0, 1, { 6 }, { 1 }, false },
          QN_EUNSUPPORTED,
          "type torch.ComplexFloatStorage" },
        { { "FloatStorage", "0", 6, 0, 1, { 7 }, { 1 }, false }, QN_EFORMAT, "beyond its storage" },
        { { "FloatStorage", "0", 6, 1, 1, { 6 }, { 1 }, false }, QN_EFORMAT, "beyond its storage" },
        { { "FloatStorage", "0", 6, 0, 1, { 2 }, { 6 }, false }, QN_EFORMAT, "beyond its storage" },
        { { "FloatStorage", "0", 6, -1, 1, { 2 }, { 1 }, false }, QN_EFORMAT, "beyond its stor" },
        { { "FloatStorage", "0", 6, 7, 1, { 0 }, { 1 }, false }, QN_EFORMAT, "beyond its storage" },
        { { "FloatStorage", "0", 6, 0, 1, { -2 }, { 1 }, false }, QN_EFORMAT, "whole numbers" },
        { { "FloatStorage", "0", 6, 5, 1, { 2 }, { -1 }, false }, QN_EFORMAT, "whole numbers" },
        { { "FloatStorage", "0", 6, 0, 1, { 7 }, { 0 }, false }, QN_EFORMAT, "an expanded view" },
        { { "FloatStorage", "0", 6, 0, 2, { INT64_MAX, 1 }, { 0, 1 }, false },
          QN_EFORMAT,
          "an expanded view" },
        { { "FloatStorage", "0", 6, 0, 2, { INT64_MAX, 3 }, { 0, 1 }, false },
          QN_EFORMAT,
          "beyond 64 bits" },
        { { "FloatStorage", "0", 6, 0, 2, { 3, 3 }, { INT64_MAX, 1 }, false },
          QN_EFORMAT,
          "beyond 64 bits" },
        { { "FloatStorage", "0", 6, INT64_MAX, 1, { 2 }, { 1 }, false }, QN_EFORMAT, "64 bits" },
        { { "FloatStorage", "0", 6, 0, 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 0 }, false },
          QN_EUNSUPPORTED,
          "9 dimensions" },
    };
    QnTorchFile *f;
    for (int i = 0; i < QN_COUNT(cases); i++) {
        QnStr s = { 0 };
        qn_str_add(&s, PK_PROTO "}");
        pk_text(&s, "bad");
        pk_tensor(&s, &cases[i].t);
        qn_str_add(&s, "s.");
        assert_fails(open_pickle(s.s, s.n, &f), cases[i].st, cases[i].words);
        qn_str_fini(&s);
    }
    QnStr s = { 0 };
    qn_str_add(&s, PK_PROTO "}(");
    pk_text(&s, "a.b");
    pk_tensor(&s, &plain);
    pk_text(&s, "a");
    qn_str_add(&s, "}");
    pk_text(&s, "b");
    pk_tensor(&s, &plain);
    qn_str_add(&s, "su.");
    assert_fails(open_pickle(s.s, s.n, &f), QN_EFORMAT, "tensor 'a.b' comes twice");
    qn_str_fini(&s);
}

static void test_refused_archives(void **state)
{
    static const char pickle[] = PK_PROTO "}.";
    static const char legacy[] = "\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\2M\xe9\3.";
    static const struct {
        ZipEntry e[2];
        QnStatus st;
        const char *words;
    } cases[] = {
        { { { .name = "a/other", .data = "", .n = 0 } }, QN_EFORMAT, "holds no data.pkl" },
        { { { .name = "a/data.pkl", .data = pickle, .n = 4 },
            { .name = "b/data.pkl", .data = pickle, .n = 4 } },
          QN_EFORMAT,
          "holds both a/data.pkl and b/data.pkl" },
        { { { .name = "a/data.pkl", .data = pickle, .n = 4 },
            { .name = "a/constants.pkl", .data = pickle, .n = 4 } },
          QN_EUNSUPPORTED,
          "TorchScript" },
        { { { .name = "a/data.pkl", .data = pickle, .n = 4 },
            { .name = "a/byteorder", .data = "big", .n = 3 } },
          QN_EUNSUPPORTED,
          "byte order 'big'" },
        { { { .name = "a/data.pkl", .data = pickle, .n = 4, .crc = 1 } }, QN_EFORMAT, "checksum" },
    };
    QnTorchFile *f;
    for (int i = 0; i < QN_COUNT(cases); i++) {
        ZipMake z = { 0 };
        for (int k = 0; k < 2 && cases[i].e[k].name; k++)
            zip_add(&z, &cases[i].e[k]);
        zip_end(&z, false);
        assert_fails(qn_torch_file_parse("m.pt", z.file.s, z.file.n, &f), cases[i].st,
                     cases[i].words);
        zip_fini(&z);
    }
    assert_true(qn_torch_file_is(legacy, sizeof legacy - 1));
    assert_fails(qn_torch_file_parse("m.pt", legacy, sizeof legacy - 1, &f), QN_EUNSUPPORTED,
                 "before 1.6");
    assert_fails(qn_torch_file_parse("m.pt", "abc", 3, &f), QN_EFORMAT, "m.pt: no ZIP directory");
}

/* Whatever byte is changed: refused, or the tensors are the same. */
static void test_damage(void **state)
{
    QnStr s = { 0 };
    ZipMake z = { 0 };
    int refused = 0;
    state_dict(&s);
    pk_archive(&z, s.s, s.n, storages, 3);
    for (size_t i = 0; i < z.file.n; i++) {
        QnTorchFile *f = NULL;
        char got[64];
        z.file.s[i] = (char)(z.file.s[i] ^ 0x11);
        QnStatus st = qn_torch_file_parse("m.pt", z.file.s, z.file.n, &f);
        for (int64_t k = 0; st == QN_OK && k < 7; k++)
            st = qn_torch_file_read(f, k, got);
        if (st == QN_OK)
            check_state_dict(f);
        refused += st != QN_OK;
        qn_torch_file_close(f);
        z.file.s[i] = (char)(z.file.s[i] ^ 0x11);
    }
    assert_true(refused > (int)s.n);
    qn_str_fini(&s);
    zip_fini(&z);
}

static void test_every_step_may_fail(void **state)
{
    QnStr s = { 0 };
    ZipMake z = { 0 };
    state_dict(&s);
    pk_archive(&z, s.s, s.n, storages, 3);
    const char *path = temp_file("f.pt", z.file.s, z.file.n);
    for (int64_t at = 1;; at++) {
        QnTorchFile *f = NULL;
        qn_fault_arm(at);
        QnStatus st = qn_torch_file_open(path, &f);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        assert_true(st == QN_OK || st == QN_ENOMEM || st == QN_EIO);
        if (st == QN_OK)
            check_state_dict(f);
        qn_torch_file_close(f);
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
    }
    qn_str_fini(&s);
    zip_fini(&z);
}
