/* One interface over all files of weights. labels: io */
#include "pickle_make.h"
#include "temp.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/npy.h"
#include "io/weights.h"

static const float six[6] = { 1, 2, 3, 4, 5, 6 };
static const QnSafetensor some[] = {
    { .name = "w", .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 2, 3 }, .data = six },
    { .name = "b.c", .dtype = QN_DTYPE_BOOL, .rank = 1, .dims = { 4 }, .data = "\1\0\1\0" },
};

/* The two tensors of `some`, whatever holds them. */
static void check(const char *path, const char *format, int64_t n_files)
{
    QnWeights *w;
    char got[24];
    assert_ok(qn_weights_open(path, &w));
    assert_string_equal(qn_weights_format(w), format);
    assert_int_equal(qn_weights_file_count(w), n_files);
    assert_int_equal(qn_weights_count(w), 2);
    for (int i = 0; i < 2; i++) {
        int64_t at = qn_weights_find(w, some[i].name);
        assert_true(at >= 0);
        const QnSafetensor *t = qn_weights_at(w, at);
        assert_true(t->dtype == some[i].dtype && t->rank == some[i].rank);
        assert_memory_equal(t->dims, some[i].dims, sizeof t->dims);
        assert_int_equal(t->bytes, i ? 4 : 24);
        assert_ok(qn_weights_read(w, at, got));
        assert_memory_equal(got, some[i].data, t->bytes);
    }
    assert_int_equal(qn_weights_find(w, "x"), -1);
    qn_weights_close(w);
}

/* Files whose names say nothing, or the wrong thing. */
static void make_files(void)
{
    QnNpy arrays[2];
    const char *names[2];
    for (int i = 0; i < 2; i++) {
        names[i] = some[i].name;
        arrays[i] = (QnNpy){ .dtype = some[i].dtype, .rank = some[i].rank };
        memcpy(arrays[i].dims, some[i].dims, sizeof arrays[i].dims);
        arrays[i].data = (void *)(uintptr_t)some[i].data;
    }
    assert_ok(qn_npz_write(temp_path("a.pt"), names, arrays, 2, false));
    assert_ok(qn_safetensors_save(temp_path("b"), some, 2, NULL, 0));
    mkdir(temp_path("shards"), 0777);
    assert_ok(qn_safetensors_save_shards(temp_path("shards/m.safetensors"), some, 2, NULL, 0, 4));
    QnStr s = { 0 };
    ZipMake z = { 0 };
    PkTensor w = { "FloatStorage", "0", 6, 0, 2, { 2, 3 }, { 3, 1 }, false };
    PkTensor c = { "BoolStorage", "1", 4, 0, 1, { 4 }, { 1 }, false };
    qn_str_add(&s, PK_PROTO "}(");
    pk_text(&s, "w");
    pk_tensor(&s, &w);
    pk_text(&s, "b");
    qn_str_add(&s, "}");
    pk_text(&s, "c");
    pk_tensor(&s, &c);
    qn_str_add(&s, "su.");
    PkStorage storages[] = { { six, 24 }, { "\1\0\7\0", 4 } };
    pk_archive(&z, s.s, s.n, storages, 2);
    temp_file("c.npz", z.file.s, z.file.n);
    mkdir(temp_path("hub"), 0777);
    temp_file("hub/pytorch_model.bin", z.file.s, z.file.n);
    qn_str_fini(&s);
    zip_fini(&z);
}

/* A PyTorch file of one tensor. */
static void torch_shard(const char *name, const char *key, const PkTensor *t, const void *data,
                        size_t n)
{
    QnStr s = { 0 };
    ZipMake z = { 0 };
    PkStorage storage = { data, n };
    qn_str_add(&s, PK_PROTO "}");
    pk_text(&s, key);
    pk_tensor(&s, t);
    qn_str_add(&s, "s.");
    pk_archive(&z, s.s, s.n, &storage, 1);
    temp_file(name, z.file.s, z.file.n);
    qn_str_fini(&s);
    zip_fini(&z);
}

static void test_shards_of_pytorch(void **state)
{
    static const PkTensor w = { "FloatStorage", "0", 6, 0, 2, { 2, 3 }, { 3, 1 }, false };
    static const PkTensor c = { "BoolStorage", "0", 4, 0, 1, { 4 }, { 1 }, false };
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "{\"weight_map\":{\"w\":\"p-1.bin\",\"b.c\":\"p-1.bin\"}}", "'b.c': the file that" },
        { "{\"weight_map\":{\"w\":\"p-2.bin\",\"b.c\":\"p-2.bin\"}}", "'w': the file that" },
        { "{\"weight_map\":{\"w\":\"p-1.bin\",\"b.c\":\"../p-2.bin\"}}", "leads out" },
        { "{\"weight_map\":{\"w\":\"p-1.bin\",\"b.c\":\"p-3.bin\"}}", "'x' is in a shard" },
    };
    static const char index[] = "{\"metadata\":{\"total_size\":28},"
                                "\"weight_map\":{\"w\":\"p-1.bin\",\"b.c\":\"p-2.bin\"}}";
    QnWeights *none;
    mkdir(temp_path("bins"), 0777);
    torch_shard("bins/p-1.bin", "w", &w, six, sizeof six);
    torch_shard("bins/p-2.bin", "b.c", &c, "\1\0\1\0", 4);
    QnStr s = { 0 };
    ZipMake z = { 0 };
    PkStorage storage = { "\1\0\1\0", 4 };
    qn_str_add(&s, PK_PROTO "}(");
    pk_text(&s, "b.c");
    pk_tensor(&s, &c);
    pk_text(&s, "x");
    pk_tensor(&s, &c);
    qn_str_add(&s, "u.");
    pk_archive(&z, s.s, s.n, &storage, 1);
    temp_file("bins/p-3.bin", z.file.s, z.file.n);
    qn_str_fini(&s);
    zip_fini(&z);
    const char *path = temp_file("bins/pytorch_model.bin.index.json", index, sizeof index - 1);
    check(path, "PyTorch", 2);
    check(temp_path("bins"), "PyTorch", 2);
    for (int64_t at = 1;; at++) {
        QnWeights *f = NULL;
        qn_fault_arm(at);
        QnStatus st = qn_weights_open(path, &f);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        qn_weights_close(st == QN_OK ? f : NULL);
        if (over)
            break;
    }
    for (int i = 0; i < QN_COUNT(bad); i++)
        assert_fails(
            qn_weights_open(temp_file("bins/i.json", bad[i].text, strlen(bad[i].text)), &none),
            QN_EFORMAT, bad[i].words);
}

static void test_all_formats_by_their_content(void **state)
{
    make_files();
    check(temp_path("a.pt"), "NumPy .npz", 1);
    check(temp_path("b"), "safetensors", 1);
    check(temp_path("c.npz"), "PyTorch", 1);
    check(temp_path("shards/m.safetensors.index.json"), "safetensors", 2);
    check(temp_path("shards"), "safetensors", 2);
    check(temp_path("hub"), "PyTorch", 1);
}

static void test_one_array(void **state)
{
    QnWeights *w;
    float got[6];
    int64_t dims[] = { 6 };
    assert_ok(qn_npy_write(temp_path("layer.w.npy"), QN_DTYPE_F32, 1, dims, six));
    assert_ok(qn_weights_open(temp_path("layer.w.npy"), &w));
    assert_string_equal(qn_weights_at(w, 0)->name, "layer.w");
    assert_ok(qn_weights_read(w, 0, got));
    assert_memory_equal(got, six, sizeof six);
    qn_weights_close(w);
}

static void test_folders(void **state)
{
    QnWeights *w;
    static const char index[] = "{\"format\":\"quern checkpoint\",\"update\":12,\"epoch\":3}";
    mkdir(temp_path("ck"), 0777);
    assert_fails(qn_weights_open(temp_path("ck"), &w), QN_ENOTFOUND, "holds no weights");
    assert_ok(qn_safetensors_save(temp_path("ck/model.safetensors"), some, 2, NULL, 0));
    check(temp_path("ck"), "safetensors", 1);
    temp_file("ck/index.json", index, sizeof index - 1);
    assert_ok(qn_weights_open(temp_path("ck"), &w));
    assert_int_equal(qn_weights_text_count(w), 2);
    assert_string_equal(qn_weights_text_at(w, 0).key, "update");
    assert_string_equal(qn_weights_text_at(w, 0).value, "12");
    assert_string_equal(qn_weights_path(w), temp_path("ck/model.safetensors"));
    qn_weights_close(w);
    temp_file("ck/index.json", "{", 1); /* no matter */
    check(temp_path("ck"), "safetensors", 1);
    assert_ok(qn_safetensors_save(temp_path("ck/other.safetensors"), some, 2, NULL, 0));
    assert_fails(qn_weights_open(temp_path("ck"), &w), QN_EARG, "2 files *.safetensors");
}

static void test_refused(void **state)
{
    QnWeights *w;
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    assert_fails(qn_weights_open(temp_path("none"), &w), QN_ENOTFOUND, "none");
    assert_fails(qn_weights_open(temp_file("t", "hello, world", 12), &w), QN_EFORMAT,
                 "no file of weights that is known: safetensors");
    assert_fails(qn_weights_open(temp_file("t", "", 0), &w), QN_EFORMAT, "no file of weights");
    assert_fails(qn_weights_open(temp_file("t", lfs, sizeof lfs - 1), &w), QN_EFORMAT, "lfs pull");
    assert_fails(qn_weights_open(temp_file("t", "PK\3\4 cut short", 14), &w), QN_EFORMAT,
                 "no ZIP directory");
    assert_fails(qn_weights_open(temp_file("t", "{\"a\":1}", 7), &w), QN_EFORMAT, "weight_map");
}

static void test_every_step_may_fail(void **state)
{
    static const char *const names[] = { "a.pt", "b", "c.npz", "shards" };
    make_files();
    for (int k = 0; k < QN_COUNT(names); k++)
        for (int64_t at = 1;; at++) {
            QnWeights *w = NULL;
            qn_fault_arm(at);
            QnStatus st = qn_weights_open(temp_path(names[k]), &w);
            bool over = qn_fault_events() < at;
            qn_fault_arm(0);
            qn_weights_close(st == QN_OK ? w : NULL);
            if (over) {
                assert_int_equal(st, QN_OK);
                break;
            }
        }
}
