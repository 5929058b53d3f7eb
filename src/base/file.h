/* Files. Errors name the file and the system's reason. A file is replaced in one step: written
 * beside the old one, synced, renamed; whoever reads it sees the old or the new text, never a part.
 */
#ifndef QN_BASE_FILE_H
#define QN_BASE_FILE_H

#include "base/status.h"

/* Reads a whole file; a NUL follows its bytes. Refuses more than `max_bytes`. Works on pipes too.
 * The data is freed by qn_free. */
QnStatus qn_file_read(const char *path, size_t max_bytes, char **data, size_t *bytes);

/* A read-only view of a file. If another process shortens the file meanwhile, reading past its new
 * end raises SIGBUS: map only files that are replaced by renaming. */
typedef struct QnFileMap {
    const unsigned char *data; /* not NULL, even if empty */
    size_t bytes;
} QnFileMap;
QnStatus qn_file_map(const char *path, QnFileMap *map);
void qn_file_unmap(QnFileMap *map); /* all zeros is fine */

/* A new file in the making. After create, exactly one of commit and discard. If commit fails, the
 * old file is as it was, unless only the folder could not be synced (the new one is then in place,
 * but a power cut may undo that). */
typedef struct QnFileOut {
    int fd;
    char *path, *temporary;
    uint64_t bytes; /* written so far */
} QnFileOut;
QnStatus qn_file_create(QnFileOut *out, const char *path);
QnStatus qn_file_write(QnFileOut *out, const void *data, size_t bytes);
QnStatus qn_file_commit(QnFileOut *out); /* fsync, rename, fsync of the folder */
void qn_file_discard(QnFileOut *out);    /* also fine after commit, and on all zeros */

/* create, write and commit in one. */
QnStatus qn_file_write_atomic(const char *path, const void *data, size_t bytes);

/* Lines that are added one by one and survive a kill up to the last whole one; for logs. */
QnStatus qn_file_append(const char *path, const void *data, size_t bytes);

bool qn_file_exists(const char *path);
QnStatus qn_file_make_dirs(const char *path);              /* like mkdir -p */
QnStatus qn_file_rename(const char *from, const char *to); /* and syncs the folder of `to` */
QnStatus qn_file_sync(const char *path); /* what was appended lasts through a power cut */
QnStatus qn_file_sync_dir(const char *path);

#endif
