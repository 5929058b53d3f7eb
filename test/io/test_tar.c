/* labels: io */
#include "pack.h"
#include "temp.h"

#include "io/tar.h"

static void refuse(const void *data, size_t n, const char *words)
{
    QnTar *t;
    assert_fails(qn_tar_parse("a.tar", data, n, &t), QN_EFORMAT, words);
}

static void test_entries_sorted_and_in_place(void **state)
{
    QnStr s = { 0 };
    QnTar *t;
    tar_add(&s, "b/", '5', NULL, 0);
    tar_add(&s, "./b/two", '0', "22", 2);
    tar_add(&s, "b/link", '2', NULL, 0);
    tar_add(&s, "a", '\0', "one", 3);
    tar_end(&s);
    assert_ok(qn_tar_open(temp_file("a.tar", s.s, s.n), &t));
    assert_int_equal(qn_tar_count(t), 2);
    assert_string_equal(qn_tar_at(t, 0)->name, "a");
    assert_memory_equal(qn_tar_at(t, 0)->data, "one", 3);
    assert_string_equal(qn_tar_at(t, 1)->name, "b/two");
    assert_int_equal(qn_tar_at(t, 1)->size, 2);
    qn_tar_free(t);
    qn_str_fini(&s);
}

static void test_long_names(void **state)
{
    QnStr s = { 0 }, pax = { 0 }, name = { 0 };
    QnTar *t;
    qn_str_add_repeat(&name, "long/", 40);
    qn_str_add(&name, "x");
    tar_add(&s, "././@LongLink", 'L', name.s, name.n + 1); /* GNU */
    tar_add(&s, "cut", '0', "1", 1);
    qn_str_printf(&pax, "29 mtime=1350244992.02396042\n%d path=y%s\n", (int)name.n + 11, name.s);
    tar_add(&s, "pax", 'x', pax.s, pax.n);
    tar_add(&s, "cut", '0', "2", 1);
    tar_add(&s, "short", '0', "3", 1); /* a long name is for one entry */
    char *header = s.s + s.n - 1024;
    memcpy(header + 345, "some/where", 11); /* ustar's prefix */
    tar_sign(header);
    tar_end(&s);
    assert_ok(qn_tar_parse("a.tar", s.s, s.n, &t));
    assert_int_equal(qn_tar_count(t), 3);
    assert_string_equal(qn_tar_at(t, 0)->name, qn_str_text(&name));
    assert_string_equal(qn_tar_at(t, 1)->name, "some/where/short");
    assert_string_equal(qn_tar_at(t, 2)->name + 1, qn_str_text(&name));
    assert_memory_equal(qn_tar_at(t, 2)->data, "2", 1);
    qn_tar_free(t);
    qn_str_fini(&s);
    qn_str_fini(&pax);
    qn_str_fini(&name);
}

static void test_unsafe_names(void **state)
{
    static const char *const names[] = { "/etc/passwd", "../x", "a/../../x", "a/..", ".//x" };
    for (int i = 0; i < QN_COUNT(names); i++) {
        QnStr s = { 0 };
        tar_add(&s, names[i], '0', "x", 1);
        tar_end(&s);
        refuse(s.s, s.n, "absolute path or has '..'");
        qn_str_fini(&s);
    }
    QnStr s = { 0 };
    QnTar *t;
    tar_add(&s, "a..b/..c", '0', "x", 1); /* dots are not the point */
    tar_end(&s);
    assert_ok(qn_tar_parse("a.tar", s.s, s.n, &t));
    qn_tar_free(t);
    qn_str_fini(&s);
}

static void test_malformed(void **state)
{
    QnStr s = { 0 };
    tar_add(&s, "a", '0', "12345", 5);
    tar_end(&s);
    refuse(s.s, 100, "byte 0: the archive ends inside a header");
    refuse("\x1f\x8b\x08", 3, "gunzip it first");
    refuse(s.s, 515, "an entry of 5 bytes, but only 3 follow");
    refuse("", 0, "byte 0: the archive ends");
    char bad[2048];
    memcpy(bad, s.s, 2048);
    bad[5] ^= 1;
    refuse(bad, 2048, "not a tar archive");
    memcpy(bad, s.s, 2048);
    memset(bad + 124, '7', 11); /* 8 GiB */
    tar_sign(bad);
    refuse(bad, 2048, "an entry of 8589934591 bytes, but only 1536 follow");
    memset(bad + 124, 0xff, 12); /* base 256, negative */
    tar_sign(bad);
    refuse(bad, 2048, "byte 124: a size that is no number");
    bad[124] = (char)0x80;
    tar_sign(bad);
    refuse(bad, 2048, "a size that is no number"); /* over 64 bits */
    memset(bad + 124, 0, 12);
    memcpy(bad + 124, "12x", 3);
    tar_sign(bad);
    refuse(bad, 2048, "a size that is no number");
    qn_str_clear(&s);
    tar_add(&s, "a", '0', "1", 1);
    tar_add(&s, "a", '0', "2", 1);
    refuse(s.s, s.n, "'a' is in the archive twice");
    static const char *const records[] = { "99 path=x\n", "9 path=xy",  "x path=y\n",
                                           "8 pathx\n",   "0 path=x\n", "14 size=-1abc\n",
                                           "8 size=\n\n" };
    for (int i = 0; i < QN_COUNT(records); i++) {
        qn_str_clear(&s);
        tar_add(&s, "p", 'x', records[i], strlen(records[i]));
        tar_add(&s, "a", '0', "1", 1);
        refuse(s.s, s.n, "pax");
    }
    qn_str_fini(&s);
}
