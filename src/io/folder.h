/* Images in class folders: ROOT/CLASS/photo.jpg, on disk or inside a .tar that stays packed. */
#ifndef QN_IO_FOLDER_H
#define QN_IO_FOLDER_H

#include "io/augment.h"
#include "io/dataset.h"

typedef struct QnFolderOptions {
    const char *path;   /* a folder, or a .tar file */
    const char *inside; /* folder in it whose folders are the classes; NULL: path itself */
    int channels;       /* 1 grey, 3 colour; 0: 3 */
    QnAugment augment;
    bool cache;                     /* keep decoded pixels in memory */
    size_t cache_limit_bytes;       /* further images are decoded each time; 0: no limit */
    const char *const *class_names; /* the order of classes, e.g. the training part's; NULL: theirs
                                     * sorted by name */
    int64_t class_count;
} QnFolderOptions;

/* Classes and files are sorted by name. Only .jpg, .jpeg and .png count; hidden files do not.
 * Images are decoded when asked for. Where the augmentation does not fix a size, all must be as
 * large as the first. */
QnStatus qn_folder_open(const QnFolderOptions *options, QnDataset **out);

#endif
