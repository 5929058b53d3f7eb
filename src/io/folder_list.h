/* Lists the images under folder.h's root; between folder_list.c and folder.c. */
#ifndef QN_IO_FOLDER_LIST_H
#define QN_IO_FOLDER_LIST_H

#include "base/mem.h"
#include "io/folder.h"
#include "io/tar.h"

typedef struct QnFolderFile {
    const char *path; /* on disk, or in the archive */
    const char *class_name;
    const QnTarEntry *entry; /* NULL: on disk */
    int64_t label;
} QnFolderFile;

typedef struct QnFolderList {
    QnArena *arena; /* borrowed */
    QnTar *tar;     /* NULL: on disk */
    QnFolderFile *files;
    int64_t count, cap;
    const char **classes; /* in the order of labels */
    int64_t class_count, class_cap;
} QnFolderList;

/* On failure, too, the caller calls fini. */
QnStatus qn_folder_list_read(const QnFolderOptions *options, QnArena *arena, QnFolderList *out);
void qn_folder_list_fini(QnFolderList *list);

#endif
