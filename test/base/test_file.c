#include "test.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[96];

static int setup(void **state)
{
    strcpy(dir, "/tmp/quern-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    return 0;
}

static int count_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int teardown(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static void assert_file_holds(const char *text)
{
    char *data;
    size_t n;
    assert_ok(qn_file_read(path, 1000, &data, &n));
    assert_int_equal(n, strlen(text));
    assert_string_equal(data, text);
    qn_free(data);
}

static void test_write_then_read_and_map(void **state)
{
    QnFileMap map = { 0 };
    assert_ok(qn_file_write_atomic(path, "hello", 5));
    assert_file_holds("hello");
    assert_ok(qn_file_map(path, &map));
    assert_int_equal(map.bytes, 5);
    assert_memory_equal(map.data, "hello", 5);
    qn_file_unmap(&map);
    qn_file_unmap(&map);
    assert_ok(qn_file_write_atomic(path, "", 0));
    assert_file_holds("");
    assert_ok(qn_file_map(path, &map));
    assert_int_equal(map.bytes, 0);
    assert_non_null(map.data);
    qn_file_unmap(&map);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    assert_int_equal(count_files(), 1);
}

static void test_errors_name_the_file(void **state)
{
    char *data = NULL;
    size_t n = 0;
    QnFileMap map;
    QnFileOut out;
    assert_fails(qn_file_read(path, 10, &data, &n), QN_ENOTFOUND,
                 "/file: cannot open: No such file");
    assert_fails(qn_file_map(path, &map), QN_ENOTFOUND, "/file: cannot open");
    assert_fails(qn_file_read(dir, 10, &data, &n), QN_EARG, "Is a directory");
    assert_fails(qn_file_map(dir, &map), QN_EARG, "not a regular file");
    assert_fails(qn_file_create(&out, "/nowhere/at/all"), QN_ENOTFOUND,
                 "/nowhere/at/all: cannot create");
    qn_file_discard(&out);
    assert_ok(qn_file_write_atomic(path, "0123456789", 10));
    assert_fails(qn_file_read(path, 9, &data, &n), QN_EFORMAT, "larger than the 9 bytes");
    assert_null(data);
    assert_ok(qn_file_read(path, 10, &data, &n));
    qn_free(data);
}

static void test_pipes_are_read_up_to_the_limit(void **state)
{
    char *data = NULL;
    size_t n = 0;
    int fds[2];
    char name[32], block[30000];
    memset(block, 'x', sizeof block);
    for (int limit = 20000; limit <= 40000; limit += 20000) {
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], block, sizeof block), sizeof block);
        close(fds[1]);
        snprintf(name, sizeof name, "/dev/fd/%d", fds[0]);
        if (limit == 20000) {
            assert_fails(qn_file_read(name, (size_t)limit, &data, &n), QN_EFORMAT, "larger than");
        } else {
            assert_ok(qn_file_read(name, (size_t)limit, &data, &n));
            assert_int_equal(n, sizeof block);
            assert_memory_equal(data, block, sizeof block);
            qn_free(data);
        }
        close(fds[0]);
    }
}

/* Renamed over a device or pipe, the file would take its place: as root, over /dev/null. */
static void test_devices_are_not_replaced(void **state)
{
    struct stat info;
    char pipe_path[64];
    snprintf(pipe_path, sizeof pipe_path, "/tmp/quern-pipe-%ld", (long)getpid());
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_fails(qn_file_write_atomic(pipe_path, "x", 1), QN_EARG, "not a regular file");
    assert_int_equal(stat(pipe_path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    unlink(pipe_path);
}

static void test_a_discarded_file_leaves_nothing(void **state)
{
    QnFileOut out;
    assert_ok(qn_file_write_atomic(path, "old", 3));
    assert_ok(qn_file_create(&out, path));
    assert_ok(qn_file_write(&out, "new", 3));
    assert_int_equal(out.bytes, 3);
    assert_int_equal(count_files(), 2);
    qn_file_discard(&out);
    qn_file_discard(&out);
    assert_int_equal(count_files(), 1);
    assert_file_holds("old");
}

/* Fail each system call and allocation in turn: an error, no temporary left, no descriptor lost,
 * and the old text, until the rename has happened. */
static void test_every_failure_keeps_old_or_new(void **state)
{
    int failed = 0;
    int before = dup(0);
    close(before);
    for (int n = 1;; n++) {
        assert_ok(qn_file_write_atomic(path, "old", 3));
        qn_fault_arm(n);
        QnStatus st = qn_file_write_atomic(path, "new", 3);
        int64_t events = qn_fault_events();
        qn_fault_arm(0);
        if (st == QN_OK)
            break;
        failed++;
        assert_int_equal(count_files(), 1);
        char *data;
        size_t bytes;
        assert_ok(qn_file_read(path, 10, &data, &bytes));
        assert_true(strcmp(data, "old") == 0 || (n > 6 && strcmp(data, "new") == 0));
        qn_free(data);
        assert_true(events >= n);
        int after = dup(0);
        close(after);
        assert_int_equal(after, before);
    }
    assert_in_range(failed, 7, 12);
    assert_file_holds("new");
    for (int n = 1;; n++) {
        char *data = NULL;
        size_t bytes;
        qn_fault_arm(n);
        QnStatus st = qn_file_read(path, 10, &data, &bytes);
        qn_fault_arm(0);
        qn_free(data);
        if (st == QN_OK)
            break;
        assert_null(data);
        assert_true(n < 10);
    }
}

static void test_folders(void **state)
{
    char deep[128];
    snprintf(deep, sizeof deep, "%s/a/b//c/", dir);
    assert_ok(qn_file_make_dirs(deep));
    assert_ok(qn_file_make_dirs(deep));
    assert_true(qn_file_exists(deep));
    assert_ok(qn_file_write_atomic(path, "x", 1));
    assert_fails(qn_file_make_dirs(path), QN_EARG, "is not a folder");
    snprintf(deep, sizeof deep, "%s/a/b/c/moved", dir);
    assert_ok(qn_file_rename(path, deep));
    assert_false(qn_file_exists(path));
    assert_true(qn_file_exists(deep));
    assert_fails(qn_file_rename(path, deep), QN_ENOTFOUND, "moved: cannot rename");
}

static void test_append(void **state)
{
    assert_ok(qn_file_append(path, "one\n", 4));
    assert_ok(qn_file_append(path, "two\n", 4));
    assert_file_holds("one\ntwo\n");
}
