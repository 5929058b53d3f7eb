/* IDX files (the MNIST family): big-endian magic 0 0 TYPE RANK, dims, then the data. Plain or gzip.
 */
#ifndef QN_IO_IDX_H
#define QN_IO_IDX_H

#include "io/augment.h"
#include "io/dataset.h"

enum { QN_IDX_MAX_RANK = 8 };

typedef enum QnIdxType {
    QN_IDX_U8 = 0x08,
    QN_IDX_I8 = 0x09,
    QN_IDX_I16 = 0x0b,
    QN_IDX_I32 = 0x0c,
    QN_IDX_F32 = 0x0d,
    QN_IDX_F64 = 0x0e,
} QnIdxType;

typedef struct QnIdx {
    QnIdxType type;
    int rank;
    int64_t dims[QN_IDX_MAX_RANK];
    int64_t count;       /* product of dims */
    const uint8_t *data; /* big-endian items, borrowed from the bytes that were parsed */
} QnIdx;

/* The size of the file must be what its header says. `name` is for messages. */
QnStatus qn_idx_parse(const char *name, const void *data, size_t size, QnIdx *out);
/* Item i as a number; i < count. */
double qn_idx_at(const QnIdx *idx, int64_t i);

typedef struct QnIdxOptions {
    const char *images_path;
    const char *labels_path;        /* NULL: no labels */
    QnAugment augment;              /* images (N,H,W) become float (1,H,W) */
    const char *const *class_names; /* NULL: none */
    int64_t class_count;            /* 0: largest label + 1 */
} QnIdxOptions;

/* Images must be 8-bit: (N,D) gives x (D), (N,H,W) gives (1,H,W), (N,H,W,C) gives (C,H,W). They
 * stay in memory as bytes. */
QnStatus qn_idx_open(const QnIdxOptions *options, QnDataset **out);

#endif
