/* Plugins: found where they may be, refused where they do not fit, every place named. */
#include "io/temp.h"
#include "test.h"

#include "api/plugin.h"
#include "base/file.h"
#include "rt/device.h"

#include <unistd.h>

static char test_dir[1024];

static int group_setup(void **state)
{
    ssize_t n = readlink("/proc/self/exe", test_dir, sizeof test_dir - 1);
    assert_true(n > 0);
    test_dir[n] = '\0';
    *strrchr(test_dir, '/') = '\0';
    return 0;
}

static void refused(const char *folder, QnStatus status, const char *words)
{
    QnDevice *d = NULL;
    setenv("QUERN_PLUGINS", folder, 1);
    assert_fails(qn_device_open_named("cuda:0", NULL, &d), status, words);
    assert_null(d);
}

static void test_missing_plugin_names_every_place(void **state)
{
    char both[2200];
    snprintf(both, sizeof both, "%s:%s", temp_path("one"), temp_path("two"));
    refused(both, QN_ENOTFOUND, "libquern_cuda.so is not in");
    assert_contains(qn_error_last()->text, temp_path("one"));
    assert_contains(qn_error_last()->text, temp_path("two"));
    assert_contains(qn_error_last()->text, test_dir);
    assert_contains(qn_error_last()->text, "/lib/quern");
    unsetenv("QUERN_PLUGINS");
    QnDevice *d;
    assert_fails(qn_device_open_named("cuda", NULL, &d), QN_ENOTFOUND, test_dir);
}

static void test_other_builds_are_refused(void **state)
{
    char abi[64], bytes[64];
    snprintf(abi, sizeof abi, "speaks plugin interface %d, this program %d", QN_PLUGIN_ABI + 1,
             QN_PLUGIN_ABI);
    snprintf(bytes, sizeof bytes, "of another build of plugin interface %d", QN_PLUGIN_ABI);
    const struct {
        const char *fault, *words;
    } cases[] = {
        { "ABI", abi },
        { "BYTES", bytes },
        { "STRUCT", "compiled with Quern 0.0.1, where QnNode has" },
        { "NAME", "is the plugin 'vulkan', not 'cuda'" },
    };
    for (int i = 0; i < QN_COUNT(cases); i++) {
        char folder[1100];
        snprintf(folder, sizeof folder, "%s/bad_%s", test_dir, cases[i].fault);
        refused(folder, QN_EUNSUPPORTED, cases[i].words);
        assert_contains(qn_error_last()->text, folder);
    }
}

static void test_what_is_no_plugin_is_refused(void **state)
{
    mkdir(temp_path("text"), 0777);
    assert_ok(qn_file_write_atomic(temp_path("text/libquern_cuda.so"), "no library", 10));
    refused(temp_path("text"), QN_EDEVICE, "cannot be loaded");
    mkdir(temp_path("libc"), 0777);
    if (symlink("/lib/x86_64-linux-gnu/libm.so.6", temp_path("libc/libquern_cuda.so")) ||
        access(temp_path("libc/libquern_cuda.so"), R_OK))
        skip_because("no libm.so.6 where it is looked for");
    refused(temp_path("libc"), QN_EUNSUPPORTED, "is no plugin of Quern");
}

/* A folder that has none is passed over; one that has a bad one is not. */
static void test_the_first_folder_decides(void **state)
{
    char list[2400];
    snprintf(list, sizeof list, ":%s:%s/bad_ABI:%s/bad_NAME", temp_path("empty"), test_dir,
             test_dir);
    refused(list, QN_EUNSUPPORTED, "bad_ABI");
}
