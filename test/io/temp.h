/* Files that a test makes: in a folder of its own, removed at the end of the process. */
#ifndef QN_TEST_IO_TEMP_H
#define QN_TEST_IO_TEMP_H

#include "test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"

static char temp_folder[256];

static int temp_remove(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

static void temp_clean(void)
{
    nftw(temp_folder, temp_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Path of a file in the folder; eight may be in use at a time. */
QN_UNUSED static const char *temp_path(const char *name)
{
    static char paths[8][512];
    static int next;
    if (!temp_folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(temp_folder, sizeof temp_folder, "%s/quern-test-XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(temp_folder))
            abort();
        atexit(temp_clean);
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_folder, name);
    return path;
}

QN_UNUSED static const char *temp_file(const char *name, const void *data, size_t size)
{
    const char *path = temp_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
    return path;
}

#endif
