/* What can be made again, kept on disk: compiled programs. An entry is one file, named by the hash
 * of all that it was made from, checked when it is read, written in one step. The folder keeps
 * within a bound: what was not read for longest goes first. Losing an entry costs time, never a
 * result. */
#ifndef QN_BASE_CACHE_H
#define QN_BASE_CACHE_H

#include "base/hash.h"
#include "base/status.h"

/* A path among what the program may keep: $XDG_CACHE_HOME/quern or ~/.cache/quern. */
QnStatus qn_cache_path(const char *file, char *out, size_t bytes);

/* Bound of the folder "programs", in which all devices keep theirs. */
#define QN_CACHE_PROGRAM_BYTES ((uint64_t)256 << 20)

typedef struct QnCacheKey {
    char hex[QN_SHA256_HEX];
} QnCacheKey;

/* The hash of the parts in their order, each with its length. */
QnCacheKey qn_cache_key(const char *const *parts, int n);

/* false: there is no such entry, or it is damaged. *data is freed by qn_free. */
bool qn_cache_read(const char *folder, const QnCacheKey *key, void **data, size_t *bytes);
/* Then deletes entries until the folder holds no more than most_bytes (0: any number). */
QnStatus qn_cache_write(const char *folder, const QnCacheKey *key, const void *data, size_t bytes,
                        uint64_t most_bytes);

#endif
