/* Makes ZIP archives byte by byte, right ones and wrong ones. */
#ifndef QN_TEST_IO_ZIP_MAKE_H
#define QN_TEST_IO_ZIP_MAKE_H

#include "test.h"

#include "base/compiler.h"
#include "base/str.h"
#include "io/zip.h"

typedef struct ZipMake {
    QnStr file, directory;
    unsigned count;
} ZipMake;

/* One entry; what is 0 is taken from the data. */
typedef struct ZipEntry {
    const char *name;
    const void *data; /* as packed */
    size_t n;
    const char *local_name;
    uint64_t size, crc, offset; /* as declared */
    unsigned method, flags, local_method;
    bool zip64; /* sizes and offset in the directory's extra field */
} ZipEntry;

QN_UNUSED static void zip_put(QnStr *s, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        char c = (char)(v >> (8 * i) & 255);
        qn_str_add_bytes(s, &c, 1);
    }
}

QN_UNUSED static void zip_add(ZipMake *z, const ZipEntry *e)
{
    uint64_t size = e->size ? e->size : e->n;
    uint64_t crc = e->crc ? e->crc : qn_zip_crc(0, e->data, e->n);
    uint64_t offset = e->offset ? e->offset - 1 : z->file.n;
    const char *local = e->local_name ? e->local_name : e->name;
    qn_str_add_bytes(&z->file, "PK\3\4\24\0", 6);
    zip_put(&z->file, e->flags, 2);
    zip_put(&z->file, e->local_method ? e->local_method - 1 : e->method, 2);
    zip_put(&z->file, 0, 4);
    zip_put(&z->file, crc, 4);
    zip_put(&z->file, e->n, 4);
    zip_put(&z->file, size, 4);
    zip_put(&z->file, strlen(local), 2);
    zip_put(&z->file, 0, 2);
    qn_str_add(&z->file, local);
    qn_str_add_bytes(&z->file, e->data, e->n);
    qn_str_add_bytes(&z->directory, "PK\1\2\24\0\24\0", 8);
    zip_put(&z->directory, e->flags, 2);
    zip_put(&z->directory, e->method, 2);
    zip_put(&z->directory, 0, 4);
    zip_put(&z->directory, crc, 4);
    zip_put(&z->directory, e->zip64 ? 0xffffffff : e->n, 4);
    zip_put(&z->directory, e->zip64 ? 0xffffffff : size, 4);
    zip_put(&z->directory, strlen(e->name), 2);
    zip_put(&z->directory, e->zip64 ? 28 : 0, 2);
    zip_put(&z->directory, 0, 6); /* comment, disk, internal attributes */
    zip_put(&z->directory, 0, 4);
    zip_put(&z->directory, e->zip64 ? 0xffffffff : offset, 4);
    qn_str_add(&z->directory, e->name);
    if (e->zip64) {
        zip_put(&z->directory, 1, 2);
        zip_put(&z->directory, 24, 2);
        zip_put(&z->directory, size, 8);
        zip_put(&z->directory, e->n, 8);
        zip_put(&z->directory, offset, 8);
    }
    z->count++;
}

/* The directory and its end; the archive is z->file then. */
QN_UNUSED static void zip_end(ZipMake *z, bool zip64)
{
    uint64_t at = z->file.n, n = z->directory.n;
    qn_str_add_bytes(&z->file, qn_str_text(&z->directory), n);
    if (zip64) {
        uint64_t end64 = z->file.n;
        qn_str_add_bytes(&z->file, "PK\6\6", 4);
        zip_put(&z->file, 44, 8);
        zip_put(&z->file, 45 | 45 << 16, 4);
        zip_put(&z->file, 0, 8);
        zip_put(&z->file, z->count, 8);
        zip_put(&z->file, z->count, 8);
        zip_put(&z->file, n, 8);
        zip_put(&z->file, at, 8);
        qn_str_add_bytes(&z->file, "PK\6\7\0\0\0\0", 8);
        zip_put(&z->file, end64, 8);
        zip_put(&z->file, 1, 4);
    }
    qn_str_add_bytes(&z->file, "PK\5\6\0\0\0\0", 8);
    zip_put(&z->file, zip64 ? 0xffff : z->count, 2);
    zip_put(&z->file, zip64 ? 0xffff : z->count, 2);
    zip_put(&z->file, zip64 ? 0xffffffff : n, 4);
    zip_put(&z->file, zip64 ? 0xffffffff : at, 4);
    zip_put(&z->file, 0, 2);
}

QN_UNUSED static void zip_fini(ZipMake *z)
{
    qn_str_fini(&z->file);
    qn_str_fini(&z->directory);
}

#endif
