#include "io/idx.h"
#include "base/mem.h"
#include "io/gz.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_BYTES = 4, CLASSES_MAX = 1 << 20 };
#define IDX_LIMIT_BYTES ((size_t)1 << 40)

static int64_t item_bytes(QnIdxType type)
{
    switch (type) {
    case QN_IDX_U8:
    case QN_IDX_I8: return 1;
    case QN_IDX_I16: return 2;
    case QN_IDX_I32:
    case QN_IDX_F32: return 4;
    case QN_IDX_F64: return 8;
    default: return 0;
    }
}

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static QnStatus check_magic(const char *name, const uint8_t *p, size_t size)
{
    if (size < HEADER_BYTES)
        return qn_fail(QN_EFORMAT,
                       "%s: only %zu bytes, an IDX file has a header of at least 8: the file is "
                       "cut short",
                       name, size);
    if (p[0] || p[1] || !item_bytes((QnIdxType)p[2]))
        return qn_fail(QN_EFORMAT,
                       "%s: byte 0: magic %02x%02x%02x%02x is not IDX (0000, a type 08 09 0b 0c "
                       "0d or 0e, a rank): not an IDX file",
                       name, p[0], p[1], p[2], p[3]);
    if (p[3] < 1 || p[3] > QN_IDX_MAX_RANK)
        return qn_fail(QN_EFORMAT, "%s: byte 3: rank %d is not between 1 and %d", name, p[3],
                       QN_IDX_MAX_RANK);
    return QN_OK;
}

QnStatus qn_idx_parse(const char *name, const void *data, size_t size, QnIdx *out)
{
    const uint8_t *p = data;
    QN_TRY(check_magic(name, p, size));
    QnIdx idx = { .type = (QnIdxType)p[2], .rank = p[3], .count = 1 };
    size_t header = HEADER_BYTES + 4 * (size_t)idx.rank;
    if (size < header)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: the header of %zu bytes ends early: the file is cut short",
                       name, size, header);
    for (int i = 0; i < idx.rank; i++) {
        idx.dims[i] = read_be32(p + HEADER_BYTES + 4 * i);
        if (!idx.dims[i])
            return qn_fail(QN_EFORMAT, "%s: byte %d: dimension %d is 0: the file holds nothing",
                           name, HEADER_BYTES + 4 * i, i);
        if (qn_mul_overflow(idx.count, idx.dims[i], &idx.count))
            return qn_fail(QN_EFORMAT,
                           "%s: byte %d: dimensions up to %d multiply to more than 64 bits: the "
                           "header is damaged",
                           name, HEADER_BYTES + 4 * i, i);
    }
    int64_t want;
    if (qn_mul_overflow(idx.count, item_bytes(idx.type), &want))
        return qn_fail(QN_EFORMAT, "%s: byte 4: the dimensions overflow 64 bits", name);
    if ((uint64_t)want != size - header)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: the header promises %" PRId64 " bytes of data, the file "
                       "holds %zu: %s",
                       name, header, want, size - header,
                       (uint64_t)want > size - header ? "the file is cut short"
                                                      : "there is more than one file in it");
    idx.data = p + header;
    *out = idx;
    return QN_OK;
}

double qn_idx_at(const QnIdx *idx, int64_t i)
{
    const uint8_t *p = idx->data + i * item_bytes(idx->type);
    uint32_t lo;
    float f;
    double d;
    uint64_t u;
    switch (idx->type) {
    case QN_IDX_U8: return p[0];
    case QN_IDX_I8: return (int8_t)p[0];
    case QN_IDX_I16: return (int16_t)(uint16_t)(p[0] << 8 | p[1]);
    case QN_IDX_I32: return (int32_t)read_be32(p);
    case QN_IDX_F32:
        lo = read_be32(p);
        memcpy(&f, &lo, sizeof f);
        return (double)f;
    case QN_IDX_F64:
        u = (uint64_t)read_be32(p) << 32 | read_be32(p + 4);
        memcpy(&d, &u, sizeof d);
        return d;
    }
    return 0;
}

typedef struct IdxSet {
    QnDataset head;
    uint8_t *image_bytes; /* the file, unpacked; images.data points into it */
    QnIdx images;
    int64_t *labels; /* NULL: none */
    QnAugment augment;
    QnPixels pixels; /* size of one image; data unused. Rank 1: height 1, channels 1 */
} IdxSet;

static QnStatus idx_label(const QnDataset *ds, int64_t index, void *y)
{
    const IdxSet *s = (const IdxSet *)ds;
    if (s->labels)
        *(int64_t *)y = s->labels[index];
    return QN_OK;
}

static QnStatus idx_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y)
{
    const IdxSet *s = (const IdxSet *)ds;
    QnPixels p = s->pixels;
    p.data = s->images.data + index * p.height * p.width * p.channels;
    qn_augment_apply(&s->augment, &p, seed, epoch, index, x);
    return idx_label(ds, index, y);
}

static void idx_fini(QnDataset *ds)
{
    IdxSet *s = (IdxSet *)ds;
    qn_free(s->image_bytes);
    qn_free(s->labels);
}

static const QnDatasetOps idx_ops = {
    .kind = "idx",
    .get = idx_get,
    .label = idx_label,
    .fini = idx_fini,
};

static QnStatus load_images(IdxSet *s, const QnIdxOptions *o)
{
    size_t size;
    QN_TRY(qn_gz_read(o->images_path, IDX_LIMIT_BYTES, &s->image_bytes, &size));
    QnIdx *im = &s->images;
    QN_TRY(qn_idx_parse(o->images_path, s->image_bytes, size, im));
    if (im->type != QN_IDX_U8)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: byte 2: images of type %02x: only bytes (08) can be "
                       "read as images",
                       o->images_path, im->type);
    if (im->rank < 2 || im->rank > 4)
        return qn_fail(QN_EFORMAT, "%s: byte 3: rank %d: images are (N,D), (N,H,W) or (N,H,W,C)%s",
                       o->images_path, im->rank,
                       im->rank == 1 ? "; this looks like a file of labels" : "");
    bool flat = im->rank == 2;
    s->pixels.height = flat ? 1 : im->dims[1];
    s->pixels.width = flat ? im->dims[1] : im->dims[2];
    s->pixels.channels = im->rank == 4 ? im->dims[3] : 1;
    if (s->pixels.channels > QN_IMAGE_MAX_CHANNELS)
        return qn_fail(QN_EUNSUPPORTED, "%s: byte 16: %" PRId64 " channels: at most %d",
                       o->images_path, s->pixels.channels, QN_IMAGE_MAX_CHANNELS);
    int64_t height, width;
    if (qn_augment_check(&o->augment, s->pixels.height, s->pixels.width, s->pixels.channels,
                         &height, &width) != QN_OK)
        return qn_fail_prefix("%s", o->images_path);
    s->augment = o->augment;
    QnSampleSpec *spec = &s->head.spec;
    spec->x_rank = flat && height == 1 ? 1 : 3;
    if (spec->x_rank == 1) {
        spec->x_dims[0] = width;
    } else {
        spec->x_dims[0] = s->pixels.channels;
        spec->x_dims[1] = height;
        spec->x_dims[2] = width;
    }
    s->head.count = im->dims[0];
    return QN_OK;
}

static QnStatus take_labels(IdxSet *s, const QnIdxOptions *o, const QnIdx *idx)
{
    if (idx->rank != 1)
        return qn_fail(QN_EFORMAT, "%s: byte 3: rank %d, labels have rank 1%s", o->labels_path,
                       idx->rank, idx->rank == 3 ? "; this looks like a file of images" : "");
    if (idx->type == QN_IDX_F32 || idx->type == QN_IDX_F64)
        return qn_fail(QN_EUNSUPPORTED, "%s: byte 2: labels of type %02x are not whole numbers",
                       o->labels_path, idx->type);
    if (idx->dims[0] != s->head.count)
        return qn_fail(QN_EFORMAT,
                       "%s: %" PRId64 " labels, but %s has %" PRId64
                       " images: the files do not belong together",
                       o->labels_path, idx->dims[0], o->images_path, s->head.count);
    s->labels = qn_alloc_array((size_t)idx->count, sizeof *s->labels);
    if (!s->labels)
        return QN_ENOMEM;
    int64_t largest = 0;
    for (int64_t i = 0; i < idx->count; i++) {
        s->labels[i] = (int64_t)qn_idx_at(idx, i);
        largest = QN_MAX(largest, s->labels[i]);
    }
    if (largest >= CLASSES_MAX && !o->class_count)
        return qn_fail(QN_EFORMAT, "%s: a label of %" PRId64 " is not a class index",
                       o->labels_path, largest);
    s->head.spec.y_kind = QN_LABEL_CLASS;
    s->head.spec.y_count = 1;
    return qn_dataset_set_classes(&s->head, o->class_count ? o->class_names : NULL,
                                  o->class_count ? o->class_count : largest + 1);
}

static QnStatus load_labels(IdxSet *s, const QnIdxOptions *o)
{
    uint8_t *bytes = NULL;
    size_t size;
    QnIdx idx;
    QN_TRY(qn_gz_read(o->labels_path, IDX_LIMIT_BYTES, &bytes, &size));
    QnStatus st = qn_idx_parse(o->labels_path, bytes, size, &idx);
    if (st == QN_OK)
        st = take_labels(s, o, &idx);
    qn_free(bytes);
    return st;
}

QnStatus qn_idx_open(const QnIdxOptions *options, QnDataset **out)
{
    QnStatus st = QN_OK;
    IdxSet *s = qn_alloc(sizeof *s);
    if (!s)
        return QN_ENOMEM;
    QN_TRY_DONE(qn_dataset_init(&s->head, &idx_ops, options->images_path));
    QN_TRY_DONE(load_images(s, options));
    if (options->labels_path)
        QN_TRY_DONE(load_labels(s, options));
    *out = &s->head;
    s = NULL;
done:
    if (s)
        qn_dataset_free(&s->head);
    return st;
}
