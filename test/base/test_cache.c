#include "base/cache.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "io/temp.h"

#include <fcntl.h>

static QnCacheKey key_of(const char *a, const char *b)
{
    const char *parts[] = { a, b };
    return qn_cache_key(parts, 2);
}

static void put(const char *folder, const char *name, const char *text, uint64_t most)
{
    QnCacheKey key = key_of(name, "");
    assert_ok(qn_cache_write(folder, &key, text, strlen(text), most));
}

static bool holds(const char *folder, const char *name, const char *text)
{
    QnCacheKey key = key_of(name, "");
    void *data;
    size_t n;
    if (!qn_cache_read(folder, &key, &data, &n))
        return false;
    bool same = n == strlen(text) && !memcmp(data, text, n);
    qn_free(data);
    return same;
}

static const char *path_of(const char *folder, const char *name)
{
    static char path[1024];
    QnCacheKey key = key_of(name, "");
    snprintf(path, sizeof path, "%s/%s.qnc", folder, key.hex);
    return path;
}

static void test_entries_are_found_by_all_parts(void **state)
{
    const char *folder = temp_path("deep/cache");
    assert_false(holds(folder, "a", "one"));
    put(folder, "a", "one", 0);
    put(folder, "b", "", 0);
    assert_true(holds(folder, "a", "one"));
    assert_true(holds(folder, "b", ""));
    assert_false(holds(folder, "c", "one"));
    put(folder, "a", "another", 0);
    assert_true(holds(folder, "a", "another"));
    assert_string_not_equal(key_of("ab", "c").hex, key_of("a", "bc").hex);
    assert_string_not_equal(key_of("", "a").hex, key_of("a", "").hex);
}

/* Whatever happened to the file: it is as if it were not there, and can be written again. */
static void test_damaged_entries_are_ignored(void **state)
{
    const char *folder = temp_path("damaged");
    char *whole;
    size_t n;
    put(folder, "a", "some text", 0);
    assert_ok(qn_file_read(path_of(folder, "a"), 1000, &whole, &n));
    for (size_t cut = 0; cut < n; cut++) {
        assert_ok(qn_file_write_atomic(path_of(folder, "a"), whole, cut));
        assert_false(holds(folder, "a", "some text"));
    }
    for (size_t i = 0; i < n; i++) {
        whole[i] ^= 4;
        assert_ok(qn_file_write_atomic(path_of(folder, "a"), whole, n));
        assert_false(holds(folder, "a", "some text"));
        whole[i] ^= 4;
    }
    put(folder, "a", "some text", 0);
    assert_true(holds(folder, "a", "some text"));
    qn_free(whole);
}

static void set_age(const char *folder, const char *name, time_t seconds)
{
    struct timespec t[2] = { { seconds, 0 }, { seconds, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path_of(folder, name), t, 0), 0);
}

/* Entries of 140 bytes: a bound of 600 holds four, and a fifth leaves three. */
static void test_the_longest_unread_goes_first(void **state)
{
    const char *folder = temp_path("bound");
    char text[101] = "";
    memset(text, 'x', 100);
    for (int i = 0; i < 4; i++) {
        char name[2] = { (char)('a' + i), 0 };
        put(folder, name, text, 600);
        set_age(folder, name, 1000 + i);
    }
    assert_ok(qn_file_write_atomic(temp_path("bound/other"), text, 100)); /* not an entry */
    assert_true(holds(folder, "a", text)); /* which makes it the youngest */
    put(folder, "e", text, 600);
    assert_true(qn_file_exists(path_of(folder, "a")));
    assert_false(qn_file_exists(path_of(folder, "b")));
    assert_false(qn_file_exists(path_of(folder, "c")));
    assert_true(qn_file_exists(path_of(folder, "d")));
    assert_true(qn_file_exists(path_of(folder, "e")));
    assert_true(qn_file_exists(temp_path("bound/other")));
    put(folder, "f", text, 10); /* what was just written stays whatever the bound */
    assert_true(holds(folder, "f", text));
    assert_false(qn_file_exists(path_of(folder, "a")));
}

static void test_failures_leave_no_half(void **state)
{
    const char *folder = temp_path("fault");
    bool clean = false;
    put(folder, "a", "old", 0);
    for (int64_t n = 1; !clean; n++) {
        QnCacheKey key = key_of("a", "");
        qn_fault_arm(n);
        QnStatus st = qn_cache_write(folder, &key, "new", 3, 1);
        clean = qn_fault_events() < n;
        qn_fault_arm(0);
        assert_true(!clean || st == QN_OK);
        assert_true(holds(folder, "a", "old") || holds(folder, "a", "new"));
        assert_true(n < 1000);
    }
    assert_true(holds(folder, "a", "new"));
}

static void test_path_follows_the_environment(void **state)
{
    char path[64];
    setenv("XDG_CACHE_HOME", "/tmp/x", 1);
    assert_ok(qn_cache_path("programs", path, sizeof path));
    assert_string_equal(path, "/tmp/x/quern/programs");
    assert_fails(qn_cache_path("programs", path, 10), QN_EARG, "too long");
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "/tmp/h", 1);
    assert_ok(qn_cache_path("p", path, sizeof path));
    assert_string_equal(path, "/tmp/h/.cache/quern/p");
}
