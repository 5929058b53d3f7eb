/* ZIP archives: what .npz and .pt files are. Read strictly and in memory; names are only names, and
 * nothing is ever unpacked to disk. Stored and deflated entries, ZIP64; no encryption, no parts. */
#ifndef QN_IO_ZIP_H
#define QN_IO_ZIP_H

#include "base/status.h"

typedef struct QnZip QnZip;

typedef struct QnZipEntry {
    const char *name;
    uint64_t size;         /* unpacked, as declared */
    uint64_t packed_size;  /* equal to size if stored */
    const uint8_t *packed; /* in the archive */
    uint64_t offset;       /* of its header, for messages */
    uint32_t crc;
    bool deflated;
} QnZipEntry;

bool qn_zip_is(const void *data, size_t size);

/* Refused: entries that overlap each other or the directory, names that come twice, headers that
 * disagree with the directory, a size that deflate cannot give from so few bytes. Memory stays in
 * proportion to the directory. `data` is borrowed until free; `name` is for messages. */
QnStatus qn_zip_parse(const char *name, const void *data, size_t size, QnZip **out);
void qn_zip_free(QnZip *z); /* NULL is fine */

const char *qn_zip_path(const QnZip *z); /* the name given to parse */
int64_t qn_zip_count(const QnZip *z);
const QnZipEntry *qn_zip_at(const QnZip *z, int64_t i);          /* in the order of their data */
const QnZipEntry *qn_zip_find(const QnZip *z, const char *name); /* or NULL */

/* Unpacks into dst, which takes e->size bytes. What comes out must be as long as declared and have
 * the checksum that the directory gives. */
QnStatus qn_zip_read(const QnZip *z, const QnZipEntry *e, void *dst);
/* Compares the checksum of a stored entry, whose bytes can then be used in place. */
QnStatus qn_zip_check(const QnZip *z, const QnZipEntry *e);
/* The first n bytes (at most e->size), whose checksum is not known yet. */
QnStatus qn_zip_peek(const QnZip *z, const QnZipEntry *e, void *dst, size_t n);

/* A new archive in the making; takes the place of an older file when it is committed. */
typedef struct QnZipWriter QnZipWriter;
typedef struct QnZipPart {
    const void *data;
    size_t bytes;
} QnZipPart;

QnStatus qn_zip_create(const char *path, QnZipWriter **out);
/* Adds an entry of these parts one after the other. deflate: packed, where that is shorter
 * (QN_EUNSUPPORTED without zlib). */
QnStatus qn_zip_add(QnZipWriter *w, const char *name, const QnZipPart *parts, int n, bool deflate);
QnStatus qn_zip_commit(QnZipWriter *take_w); /* frees the writer in any case */
void qn_zip_discard(QnZipWriter *take_w);    /* NULL is fine */

/* CRC-32 as ZIP and gzip have it; begin with 0. */
uint32_t qn_zip_crc(uint32_t crc, const void *data, size_t bytes);

#endif
