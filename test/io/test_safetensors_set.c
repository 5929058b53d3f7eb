/* Sets of safetensors files. labels: io */
#include "temp.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/safetensors.h"

static const float weights[6] = { 1, 2, 3, 4, 5, 6 };
static const QnSafetensor some[] = {
    { .name = "c", .dtype = QN_DTYPE_F32, .rank = 2, .dims = { 2, 3 }, .data = weights },
    { .name = "a", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 2 }, .data = weights },
    { .name = "b", .dtype = QN_DTYPE_U8, .rank = 1, .dims = { 3 }, .data = "xyz" },
    { .name = "none", .dtype = QN_DTYPE_F32, .rank = 1, .dims = { 0 }, .data = "" },
};
static const QnSafetensorsText notes[] = { { "format", "pt" } };

static void check_content(const QnSafetensors *s)
{
    assert_int_equal(qn_safetensors_count(s), 4);
    for (int i = 0; i < 4; i++) {
        const QnSafetensor *t = qn_safetensors_find(s, some[i].name);
        assert_non_null(t);
        assert_true(t->dtype == some[i].dtype && t->rank == some[i].rank);
        assert_memory_equal(t->dims, some[i].dims, sizeof t->dims);
        assert_memory_equal(t->data, some[i].data, t->bytes);
    }
    assert_string_equal(qn_safetensors_metadata(s, "format"), "pt");
}

static void test_shards_read_back(void **state)
{
    const char *path = temp_path("w.safetensors"), *index = temp_path("w.safetensors.index.json");
    QnSafetensors *s;
    assert_ok(qn_safetensors_save_shards(path, some, 4, notes, 1, 1 << 20)); /* fits one */
    assert_true(qn_file_exists(path) && !qn_file_exists(index));
    assert_ok(qn_safetensors_open(path, &s));
    assert_int_equal(qn_safetensors_shard_count(s), 1);
    qn_safetensors_free(s);

    assert_ok(qn_safetensors_save_shards(path, some, 4, notes, 1, 12));
    assert_true(!qn_file_exists(path) && qn_file_exists(index)); /* the single one is gone */
    assert_ok(qn_safetensors_open(index, &s));
    assert_int_equal(qn_safetensors_shard_count(s), 2); /* a and b; c alone */
    check_content(s);
    assert_string_equal(qn_safetensors_at(s, 0)->name, "a");
    qn_safetensors_free(s);
    assert_ok(qn_safetensors_open(temp_path("w-00001-of-00002.safetensors"), &s));
    assert_int_equal(qn_safetensors_count(s), 2);
    assert_string_equal(qn_safetensors_metadata(s, "format"), "pt");
    qn_safetensors_free(s);
    assert_fails(qn_safetensors_open(temp_path("w-00001-of-00003.safetensors"), &s), QN_ENOTFOUND,
                 "w-00001");

    assert_ok(qn_safetensors_save_shards(path, some, 4, notes, 1, 1 << 20));
    assert_true(qn_file_exists(path) && !qn_file_exists(index)); /* and the index in turn */
    QnSafetensor twice[] = { some[0], some[1], some[0] };
    assert_fails(qn_safetensors_save_shards(path, twice, 3, NULL, 0, 8), QN_EARG, "'c' is given");
}

static void test_too_many_shards(void **state)
{
    static char names[502][16];
    static QnSafetensor many[502];
    for (int i = 0; i < 502; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        many[i] = (QnSafetensor){
            .name = names[i], .dtype = QN_DTYPE_U8, .rank = 1, .dims = { 2 }, .data = "ab"
        };
    }
    const char *path = temp_path("many.safetensors");
    assert_fails(qn_safetensors_save_shards(path, many, 502, NULL, 0, 2), QN_EARG, "500 shards");
}

/* Whatever fails: the old set or the new one, or no index at all; never a mixture. */
static void test_every_step_may_fail(void **state)
{
    const char *path = temp_path("f.safetensors"), *index = temp_path("f.safetensors.index.json");
    static const float other[6] = { 9, 9, 9, 9, 9, 9 };
    QnSafetensor old[4];
    memcpy(old, some, sizeof old);
    old[0].data = old[1].data = other;
    for (int64_t at = 1;; at++) {
        QnSafetensors *s = NULL;
        assert_ok(qn_safetensors_save_shards(path, old, 4, notes, 1, 12));
        qn_fault_arm(at);
        QnStatus st = qn_safetensors_save_shards(path, some, 4, notes, 1, 12);
        bool over = qn_fault_events() < at;
        qn_fault_arm(0);
        if (qn_file_exists(index)) {
            assert_ok(qn_safetensors_open(index, &s));
            const float *a = qn_safetensors_find(s, "a")->data,
                        *c = qn_safetensors_find(s, "c")->data;
            assert_true(a[0] == c[0] && (a[0] == 9 ? st != QN_OK : a[0] == 1));
            qn_safetensors_free(s);
        } else {
            assert_true(st != QN_OK);
        }
        if (over) {
            assert_int_equal(st, QN_OK);
            break;
        }
        qn_fault_arm(at);
        st = qn_file_exists(index) ? qn_safetensors_open(index, &s) : QN_EIO;
        qn_fault_arm(0);
        if (st == QN_OK)
            qn_safetensors_free(s);
    }
}

/* Two shards that fit each other: "one.safetensors" holds a and b, "two.safetensors" c. */
static void make_shards(void)
{
    mkdir(temp_path("set"), 0777);
    assert_ok(qn_safetensors_save(temp_path("set/one.safetensors"), some + 1, 2, NULL, 0));
    assert_ok(qn_safetensors_save(temp_path("set/two.safetensors"), some, 1, NULL, 0));
    assert_ok(qn_safetensors_save(temp_path("outside.safetensors"), some, 1, NULL, 0));
    unlink(temp_path("set/out.safetensors"));
    unlink(temp_path("set/in.safetensors"));
    assert_int_equal(symlink("../outside.safetensors", temp_path("set/out.safetensors")), 0);
    assert_int_equal(symlink("two.safetensors", temp_path("set/in.safetensors")), 0);
}

#define MAP(entries)                                                                               \
    "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"," entries "}}"

static QnStatus open_index(const char *text, QnSafetensors **s)
{
    return qn_safetensors_open(temp_file("set/index.json", text, strlen(text)), s);
}

static void test_good_indexes(void **state)
{
    QnSafetensors *s;
    make_shards();
    assert_ok(open_index(MAP("\"c\":\"two.safetensors\""), &s));
    assert_int_equal(qn_safetensors_count(s), 3);
    qn_safetensors_free(s);
    assert_ok(open_index("\n " MAP("\"c\":\"in.safetensors\""), &s)); /* a link that stays inside */
    assert_int_equal(qn_safetensors_count(s), 3);
    assert_non_null(qn_safetensors_find(s, "c"));
    qn_safetensors_free(s);
}

static void test_bad_indexes(void **state)
{
    static const struct {
        const char *text, *words;
        QnStatus st;
    } cases[] = {
        { "{}", "no weight_map", QN_EFORMAT },
        { "{\"weight_map\":[]}", "no weight_map", QN_EFORMAT },
        { "{\"weight_map\":{}}", "no weight_map", QN_EFORMAT },
        { "{\"weight_map\":{\"a\":1}}", "'a': its file is not a text", QN_EFORMAT },
        { "{\"weight_map\":{\"a\":\"\"}}", "is not a text", QN_EFORMAT },
        { "{\"weight_map\":{\"\":\"one.safetensors\"}}", "its name is empty", QN_EFORMAT },
        { "{\"weight_map\":{\"a\":\"one.safetensors\\u0000x\"}}", "a zero byte", QN_EFORMAT },
        { MAP("\"c\":\"../outside.safetensors\""), "leads out", QN_EFORMAT },
        { MAP("\"c\":\"sub/../../outside.safetensors\""), "leads out", QN_EFORMAT },
        { MAP("\"c\":\"..\""), "leads out", QN_EFORMAT },
        { MAP("\"c\":\"/etc/passwd\""), "relative to the index's folder", QN_EFORMAT },
        { MAP("\"c\":\"..\\\\outside.safetensors\""), "relative", QN_EFORMAT },
        { MAP("\"c\":\"out.safetensors\""), "is a link that leads out", QN_EFORMAT },
        { MAP("\"c\":\"three.safetensors\""), "'three.safetensors', which is not there",
          QN_ENOTFOUND },
        { MAP("\"c\":\"one.safetensors\""), "'c': the file that the index names lacks it",
          QN_EFORMAT },
        { "{\"weight_map\":{\"a\":\"one.safetensors\"}}",
          "'b' is in a shard, but the index does not", QN_EFORMAT },
        { MAP("\"c\":\"index.json\""), "set/index.json: ", QN_EFORMAT },
        { "{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"}}",
          "the key \"a\" comes twice", QN_EFORMAT },
        { "{\"weight_map\":{\"a\":\"one.safetensors\"}", "set/index.json: ", QN_EFORMAT },
    };
    QnSafetensors *s;
    make_shards();
    for (int i = 0; i < QN_COUNT(cases); i++)
        assert_fails(open_index(cases[i].text, &s), cases[i].st, cases[i].words);
}
