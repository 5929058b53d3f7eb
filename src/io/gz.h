/* Whole files in memory, unpacked if they are gzip (told by their first two bytes, not their name).
 */
#ifndef QN_IO_GZ_H
#define QN_IO_GZ_H

#include "base/status.h"

/* Unpacks all gzip members of data. Memory grows with what really comes out, never with what a
 * header claims; more than limit_bytes is refused. *out is the caller's to qn_free. `name` is for
 * messages. QN_EUNSUPPORTED without zlib. */
QnStatus qn_gz_unpack(const char *name, const void *data, size_t size, size_t limit_bytes,
                      uint8_t **out, size_t *out_size);

bool qn_gz_is_packed(const void *data, size_t size);

/* Reads a file whole, unpacked where needed. *out is the caller's to qn_free. */
QnStatus qn_gz_read(const char *path, size_t limit_bytes, uint8_t **out, size_t *out_size);

#endif
