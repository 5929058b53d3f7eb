/* Reads .tar archives (ustar, GNU and pax long names) in place: an index of the plain files in it,
 * whose data stay where they are in the mapped archive. */
#ifndef QN_IO_TAR_H
#define QN_IO_TAR_H

#include "base/status.h"

typedef struct QnTarEntry {
    const char *name; /* relative path without "./"; never "..", never absolute */
    const uint8_t *data;
    size_t size;
} QnTarEntry;

typedef struct QnTar QnTar;

/* Refused: wrong checksums, sizes past the end, absolute paths and "..", names that come twice.
 * Links and devices are left out, folders too. `data` is borrowed until qn_tar_free; `name` is for
 * messages. */
QnStatus qn_tar_parse(const char *name, const void *data, size_t size, QnTar **out);
/* The same from a file, which is mapped, not read. */
QnStatus qn_tar_open(const char *path, QnTar **out);
void qn_tar_free(QnTar *tar); /* NULL is fine */

int64_t qn_tar_count(const QnTar *tar);
/* Entries are sorted by name, bytewise. */
const QnTarEntry *qn_tar_at(const QnTar *tar, int64_t i);

#endif
