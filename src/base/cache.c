#include "base/cache.h"

#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC_BYTES = 8, HEAD_BYTES = MAGIC_BYTES + QN_SHA256_BYTES };
static const char magic[MAGIC_BYTES + 1] = "qncache1";
static const char suffix[] = ".qnc";
static const size_t most_entry = (size_t)1 << 30;

QnStatus qn_cache_path(const char *file, char *out, size_t bytes)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = base && base[0]
                ? snprintf(out, bytes, "%s/quern/%s", base, file)
                : snprintf(out, bytes, "%s/.cache/quern/%s", home ? home : "/tmp", file);
    return n > 0 && (size_t)n < bytes ? QN_OK : qn_fail(QN_EARG, "the cache's path is too long");
}

QnCacheKey qn_cache_key(const char *const *parts, int n)
{
    QnCacheKey key;
    QnSha256 sha;
    unsigned char digest[QN_SHA256_BYTES];
    qn_sha256_init(&sha);
    for (int i = 0; i < n; i++) {
        char length[32];
        size_t bytes = strlen(parts[i]);
        int digits = snprintf(length, sizeof length, "%zu:", bytes);
        qn_sha256_update(&sha, length, (size_t)digits);
        qn_sha256_update(&sha, parts[i], bytes);
    }
    qn_sha256_final(&sha, digest);
    qn_sha256_hex(digest, key.hex);
    return key;
}

static QnStatus entry_path(const char *folder, const QnCacheKey *key, char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "%s/%s%s", folder, key->hex, suffix);
    return n > 0 && (size_t)n < bytes ? QN_OK : qn_fail(QN_EARG, "%s: too long a path", folder);
}

static void checksum(const void *data, size_t bytes, unsigned char digest[QN_SHA256_BYTES])
{
    QnSha256 sha;
    qn_sha256_init(&sha);
    qn_sha256_update(&sha, data, bytes);
    qn_sha256_final(&sha, digest);
}

/* ---- one entry ---- */

bool qn_cache_read(const char *folder, const QnCacheKey *key, void **data, size_t *bytes)
{
    char path[4096], *all;
    size_t n;
    unsigned char digest[QN_SHA256_BYTES];
    if (entry_path(folder, key, path, sizeof path) != QN_OK || access(path, R_OK) ||
        qn_file_read(path, most_entry, &all, &n) != QN_OK)
        return false;
    bool ok = n >= HEAD_BYTES && !memcmp(all, magic, MAGIC_BYTES);
    if (ok) {
        checksum(all + HEAD_BYTES, n - HEAD_BYTES, digest);
        ok = !memcmp(all + MAGIC_BYTES, digest, QN_SHA256_BYTES);
    }
    if (!ok) {
        qn_free(all);
        return false;
    }
    memmove(all, all + HEAD_BYTES, n - HEAD_BYTES);
    *data = all;
    *bytes = n - HEAD_BYTES;
    utimensat(AT_FDCWD, path, NULL, 0); /* read just now: the last to go */
    return true;
}

/* ---- the bound ---- */

typedef struct Entry {
    char *path;
    uint64_t bytes;
    struct timespec read;
} Entry;

typedef struct Folder {
    Entry *entries;
    int64_t n, cap;
    uint64_t bytes;
} Folder;

static void folder_free(Folder *f)
{
    for (int64_t i = 0; i < f->n; i++)
        qn_free(f->entries[i].path);
    qn_free(f->entries);
}

static QnStatus add_entry(Folder *f, const char *folder, const char *name)
{
    size_t n = strlen(name), tail = sizeof suffix - 1;
    char path[4096];
    struct stat s;
    if (n <= tail || strcmp(name + n - tail, suffix))
        return QN_OK;
    int w = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (w < 0 || (size_t)w >= sizeof path || stat(path, &s) || !S_ISREG(s.st_mode))
        return QN_OK; /* another process may have deleted it */
    QN_TRY(QN_GROW(f->entries, f->cap, f->n));
    char *copy = qn_strdup(path);
    if (!copy)
        return QN_ENOMEM;
    f->entries[f->n++] = (Entry){ copy, (uint64_t)s.st_size, s.st_mtim };
    f->bytes += (uint64_t)s.st_size;
    return QN_OK;
}

static int by_age(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    if (x->read.tv_sec != y->read.tv_sec)
        return x->read.tv_sec < y->read.tv_sec ? -1 : 1;
    return (x->read.tv_nsec > y->read.tv_nsec) - (x->read.tv_nsec < y->read.tv_nsec);
}

/* To three quarters of the bound, so that not every write has to delete. */
static QnStatus shrink(const char *folder, const char *keep, uint64_t most_bytes)
{
    Folder f = { 0 };
    QnStatus st = QN_OK;
    DIR *dir = opendir(folder);
    for (struct dirent *e; st == QN_OK && dir && (e = readdir(dir));)
        st = add_entry(&f, folder, e->d_name);
    if (dir)
        closedir(dir);
    if (st == QN_OK && f.bytes > most_bytes) {
        qsort(f.entries, (size_t)f.n, sizeof *f.entries, by_age);
        for (int64_t i = 0; i < f.n && f.bytes > most_bytes / 4 * 3; i++) {
            if (strcmp(f.entries[i].path, keep) && !unlink(f.entries[i].path))
                f.bytes -= f.entries[i].bytes;
        }
    }
    folder_free(&f);
    return st;
}

QnStatus qn_cache_write(const char *folder, const QnCacheKey *key, const void *data, size_t bytes,
                        uint64_t most_bytes)
{
    char path[4096];
    unsigned char head[HEAD_BYTES];
    QnFileOut out = { 0 };
    QN_TRY(entry_path(folder, key, path, sizeof path));
    QN_TRY(qn_file_make_dirs(folder));
    memcpy(head, magic, MAGIC_BYTES);
    checksum(data, bytes, head + MAGIC_BYTES);
    QN_TRY(qn_file_create(&out, path));
    QnStatus st = qn_file_write(&out, head, sizeof head);
    if (st == QN_OK)
        st = qn_file_write(&out, data, bytes);
    if (st == QN_OK)
        st = qn_file_commit(&out);
    else
        qn_file_discard(&out);
    if (st == QN_OK && most_bytes)
        st = shrink(folder, path, most_bytes);
    return st;
}
