#include "io/folder.h"
#include "base/fault.h"
#include "io/folder_list.h"
#include "io/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 30 };

/* What one thread needs for one image; kept for the next. */
typedef struct Scratch {
    struct Scratch *next;
    uint8_t *file;
    size_t file_capacity;
    QnImage image;
} Scratch;

/* A decoded image that stays; data is NULL until then. */
typedef struct Cached {
    uint8_t *data;
    int32_t height, width;
} Cached;

typedef struct FolderSet {
    QnDataset head;
    QnArena *arena;
    QnFolderList list;
    int channels;
    QnAugment augment;
    pthread_mutex_t lock; /* of all below */
    bool has_lock;
    Scratch *idle;
    Cached *cache; /* NULL: none */
    size_t cache_bytes, cache_limit_bytes;
} FolderSet;

/* ---- scratch ---- */

static Scratch *scratch_take(FolderSet *s)
{
    pthread_mutex_lock(&s->lock);
    Scratch *c = s->idle;
    if (c)
        s->idle = c->next;
    pthread_mutex_unlock(&s->lock);
    return c ? c : qn_alloc(sizeof *c);
}

static void scratch_give(FolderSet *s, Scratch *c)
{
    pthread_mutex_lock(&s->lock);
    c->next = s->idle;
    s->idle = c;
    pthread_mutex_unlock(&s->lock);
}

/* ---- files ---- */

static QnStatus system_fail(const char *path, const char *what)
{
    char text[128];
    return qn_fail(errno == ENOENT ? QN_ENOTFOUND : QN_EIO, "%s: cannot %s: %s", path, what,
                   strerror_r(errno, text, sizeof text));
}

static QnStatus read_open_file(const char *path, int fd, Scratch *c, size_t *size)
{
    struct stat info;
    if (fstat(fd, &info))
        return system_fail(path, "look at");
    if (!S_ISREG(info.st_mode) || info.st_size > FILE_BYTES_MAX)
        return qn_fail(QN_EFORMAT, "%s: not a file of at most %d bytes", path, FILE_BYTES_MAX);
    size_t want = (size_t)info.st_size;
    if (want > c->file_capacity) {
        uint8_t *p = qn_realloc(c->file, want);
        if (!p)
            return QN_ENOMEM;
        c->file = p;
        c->file_capacity = want;
    }
    for (*size = 0; *size < want;) {
        ssize_t n = qn_fault_hit() ? (errno = EIO, -1) : read(fd, c->file + *size, want - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return system_fail(path, "read");
        if (!n)
            break;
        *size += (size_t)n;
    }
    return QN_OK;
}

/* The bytes of an image file; on disk they go through the scratch. */
static QnStatus read_file(const QnFolderFile *f, Scratch *c, const uint8_t **data, size_t *size)
{
    if (f->entry) {
        *data = f->entry->data;
        *size = f->entry->size;
        return QN_OK;
    }
    int fd = qn_fault_hit() ? (errno = EIO, -1) : open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return system_fail(f->path, "open");
    QnStatus st = read_open_file(f->path, fd, c, size);
    close(fd);
    *data = c->file;
    return st;
}

/* ---- samples ---- */

static bool cache_find(FolderSet *s, int64_t index, QnPixels *out)
{
    if (!s->cache)
        return false;
    pthread_mutex_lock(&s->lock);
    Cached c = s->cache[index];
    pthread_mutex_unlock(&s->lock);
    *out = (QnPixels){ c.data, c.height, c.width, s->channels };
    return c.data;
}

/* Best effort: what does not fit is decoded again. */
static void cache_put(FolderSet *s, int64_t index, const QnPixels *p)
{
    size_t bytes = (size_t)(p->height * p->width * p->channels);
    pthread_mutex_lock(&s->lock);
    bool fits = s->cache && !s->cache[index].data &&
                (!s->cache_limit_bytes || bytes <= s->cache_limit_bytes - s->cache_bytes);
    if (fits)
        s->cache_bytes += bytes; /* reserved before the lock is let go */
    pthread_mutex_unlock(&s->lock);
    if (!fits)
        return;
    uint8_t *copy = qn_alloc(bytes);
    if (copy)
        memcpy(copy, p->data, bytes);
    pthread_mutex_lock(&s->lock);
    if (copy && !s->cache[index].data) {
        s->cache[index] = (Cached){ copy, (int32_t)p->height, (int32_t)p->width };
        copy = NULL;
    } else {
        s->cache_bytes -= bytes;
    }
    pthread_mutex_unlock(&s->lock);
    qn_free(copy);
}

static void folder_place(const QnDataset *ds, int64_t index, char *text, size_t bytes)
{
    const QnFolderFile *f = &((const FolderSet *)ds)->list.files[index];
    if (f->entry)
        snprintf(text, bytes, "%s: %s", ds->name, f->path);
    else
        snprintf(text, bytes, "%s", f->path);
}

static QnStatus check_pixels(const FolderSet *s, int64_t index, const QnPixels *p)
{
    int64_t height, width;
    char place[512];
    const int64_t *dims = s->head.spec.x_dims;
    QnStatus st = qn_augment_check(&s->augment, p->height, p->width, p->channels, &height, &width);
    folder_place(&s->head, index, place, sizeof place);
    if (st != QN_OK) {
        qn_fail_prefix("%s", place);
        return qn_fail(QN_EFORMAT, "%s", qn_error_last()->text); /* this image's fault */
    }
    if (height != dims[1] || width != dims[2])
        return qn_fail(QN_EFORMAT,
                       "%s: %" PRId64 "x%" PRId64 " pixels, the first image gives %" PRId64
                       "x%" PRId64 ": set a size to resize or crop to",
                       place, width, height, dims[2], dims[1]);
    return QN_OK;
}

static QnStatus decode_sample(FolderSet *s, int64_t index, Scratch *c, QnPixels *out)
{
    const QnFolderFile *f = &s->list.files[index];
    const uint8_t *data = NULL;
    size_t size = 0;
    char place[512];
    QN_TRY(read_file(f, c, &data, &size));
    folder_place(&s->head, index, place, sizeof place);
    QN_TRY(qn_image_decode(place, data, size, s->channels, &c->image));
    *out = qn_image_pixels(&c->image);
    QN_TRY(check_pixels(s, index, out));
    if (s->cache)
        cache_put(s, index, out);
    return QN_OK;
}

static QnStatus folder_label(const QnDataset *ds, int64_t index, void *y)
{
    *(int64_t *)y = ((const FolderSet *)ds)->list.files[index].label;
    return QN_OK;
}

static QnStatus folder_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed,
                           void *x, void *y)
{
    FolderSet *s = (FolderSet *)(uintptr_t)ds; /* cache and scratch behind their lock */
    QnPixels pixels;
    if (cache_find(s, index, &pixels)) {
        qn_augment_apply(&s->augment, &pixels, seed, epoch, index, x);
        return folder_label(ds, index, y);
    }
    Scratch *c = scratch_take(s);
    if (!c)
        return QN_ENOMEM;
    QnStatus st = decode_sample(s, index, c, &pixels);
    if (st == QN_OK) {
        qn_augment_apply(&s->augment, &pixels, seed, epoch, index, x);
        st = folder_label(ds, index, y);
    }
    scratch_give(s, c);
    return st;
}

static void folder_fini(QnDataset *ds)
{
    FolderSet *s = (FolderSet *)ds;
    for (Scratch *c = s->idle, *next; c; c = next) {
        next = c->next;
        qn_free(c->file);
        qn_image_fini(&c->image);
        qn_free(c);
    }
    for (int64_t i = 0; s->cache && i < s->list.count; i++)
        qn_free(s->cache[i].data);
    qn_free(s->cache);
    qn_folder_list_fini(&s->list);
    qn_arena_free(s->arena);
    if (s->has_lock)
        pthread_mutex_destroy(&s->lock);
}

static const QnDatasetOps folder_ops = {
    .kind = "folder",
    .get = folder_get,
    .label = folder_label,
    .place = folder_place,
    .fini = folder_fini,
};

/* ---- opening ---- */

/* Size of what comes out, where crop or resize do not say: from the first image that can be read.
 */
static QnStatus find_size(FolderSet *s, int64_t *height, int64_t *width)
{
    const QnAugment *a = &s->augment;
    if (a->crop_height || a->resize_height) {
        *height = a->crop_height ? a->crop_height : a->resize_height;
        *width = a->crop_width ? a->crop_width : a->resize_width;
        return QN_OK;
    }
    Scratch *c = scratch_take(s);
    if (!c)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    for (int64_t i = 0; i < QN_MIN(s->list.count, (int64_t)100); i++) {
        const uint8_t *data = NULL;
        size_t size = 0;
        int64_t h = 0, w = 0;
        int channels;
        char place[512];
        folder_place(&s->head, i, place, sizeof place);
        st = read_file(&s->list.files[i], c, &data, &size);
        if (st == QN_OK)
            st = qn_image_read_size(place, data, size, &h, &w, &channels);
        if (st == QN_OK) {
            st = qn_augment_check(a, h, w, s->channels, height, width);
            break;
        }
    }
    scratch_give(s, c);
    return st;
}

static QnStatus folder_init(FolderSet *s, const QnFolderOptions *o)
{
    QN_TRY(qn_dataset_init(&s->head, &folder_ops, o->path));
    if (pthread_mutex_init(&s->lock, NULL))
        return qn_fail(QN_ENOMEM, "%s: no mutex to be had", o->path);
    s->has_lock = true;
    s->arena = qn_arena_new();
    if (!s->arena)
        return QN_ENOMEM;
    s->channels = o->channels ? o->channels : 3;
    if (s->channels != 1 && s->channels != 3)
        return qn_fail(QN_EARG, "%s: %d channels: 1 (grey) or 3 (colour)", o->path, s->channels);
    s->augment = o->augment;
    QN_TRY(qn_augment_check(&o->augment, 0, 0, 0, NULL, NULL));
    if (o->augment.normalize_channels && o->augment.normalize_channels != s->channels)
        return qn_fail(QN_ESHAPE, "%s: normalise gives %d means, the images have %d channels",
                       o->path, o->augment.normalize_channels, s->channels);
    QN_TRY(qn_folder_list_read(o, s->arena, &s->list));
    int64_t height = 0, width = 0;
    QN_TRY(find_size(s, &height, &width));
    s->head.count = s->list.count;
    s->head.spec = (QnSampleSpec){ .x_rank = 3,
                                   .x_dims = { s->channels, height, width },
                                   .y_kind = QN_LABEL_CLASS,
                                   .y_count = 1 };
    if (o->cache) {
        s->cache = qn_alloc_array((size_t)s->list.count, sizeof *s->cache);
        s->cache_limit_bytes = o->cache_limit_bytes;
        if (!s->cache)
            return QN_ENOMEM;
    }
    return qn_dataset_set_classes(&s->head, s->list.classes, s->list.class_count);
}

QnStatus qn_folder_open(const QnFolderOptions *options, QnDataset **out)
{
    FolderSet *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QnStatus st = folder_init(s, options);
    if (st == QN_OK)
        *out = &s->head;
    else
        qn_dataset_free(&s->head);
    return st;
}
