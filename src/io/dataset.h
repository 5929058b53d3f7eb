/* A source of samples. Each format is one file that fills in a QnDatasetOps; everything above
 * (loader, trainer) sees only this. A dataset is immutable once opened, so any number of threads
 * may call qn_dataset_get, and what it gives depends on (index, epoch, seed) alone. */
#ifndef QN_IO_DATASET_H
#define QN_IO_DATASET_H

#include "base/status.h"

enum { QN_SAMPLE_MAX_RANK = 4 };

typedef enum QnFeatureKind {
    QN_FEATURE_F32,    /* x is float[x_dims…] */
    QN_FEATURE_TOKENS, /* x is int64_t[x_dims[0]] in 0 … class_count-1 */
} QnFeatureKind;

typedef enum QnLabelKind {
    QN_LABEL_NONE,
    QN_LABEL_CLASS,  /* y is one int64_t in 0 … class_count-1 */
    QN_LABEL_VECTOR, /* y is float[y_count] */
    QN_LABEL_TOKENS, /* y is int64_t[y_count] in 0 … class_count-1 */
} QnLabelKind;

/* What one sample looks like; the same for all samples of a dataset. */
typedef struct QnSampleSpec {
    QnFeatureKind x_kind;
    int x_rank;
    int64_t x_dims[QN_SAMPLE_MAX_RANK]; /* images: (C,H,W) */
    QnLabelKind y_kind;
    int64_t y_count;
    int64_t class_count; /* classes, or size of the vocabulary; 0 for regression */
} QnSampleSpec;

int64_t qn_sample_x_count(const QnSampleSpec *spec); /* values in one x */
size_t qn_sample_x_bytes(const QnSampleSpec *spec);
size_t qn_sample_y_bytes(const QnSampleSpec *spec);

typedef struct QnDataset QnDataset;

void qn_dataset_free(QnDataset *ds); /* NULL is fine */

const char *qn_dataset_name(const QnDataset *ds); /* file or folder it came from */
int64_t qn_dataset_count(const QnDataset *ds);
const QnSampleSpec *qn_dataset_spec(const QnDataset *ds);
/* Name of a class; NULL where the source gives none or the index is out of range. */
const char *qn_dataset_class_name(const QnDataset *ds, int64_t class_index);

/* Writes sample `index` into x and y (sizes as the spec says). Augmentation draws from
 * (seed, epoch, index) only. On failure (broken file) x and y may be partly written. */
QnStatus qn_dataset_get(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                        void *y);
/* The label alone; cheap where the format keeps labels in memory. */
QnStatus qn_dataset_get_label(const QnDataset *ds, int64_t index, void *y);
/* Where the sample comes from, e.g. "photos.tar: train/cat/0001.jpg". */
void qn_dataset_place(const QnDataset *ds, int64_t index, char *text, size_t bytes);

/* Reads every label before step 0 and refuses one out of range or not finite, naming the sample;
 * with class labels also a class without any sample when `want_all_classes`. */
QnStatus qn_dataset_validate_labels(const QnDataset *ds, bool want_all_classes);

/* Broken samples met so far. A sample is listed once however often it is met. */
typedef struct QnSkip {
    int64_t index;
    char *text; /* place and reason */
} QnSkip;

/* Notes that `index` was passed over, with this thread's last error as the reason. Thread-safe. */
QnStatus qn_dataset_skip_add(QnDataset *ds, int64_t index);
int64_t qn_dataset_skip_count(const QnDataset *ds);
/* i-th skip in index order into *out; *out->text is the caller's to qn_free. */
QnStatus qn_dataset_skip_at(const QnDataset *ds, int64_t i, QnSkip *out);

/* A view of some samples of `base`, which must outlive it. Indices are copied and checked. */
QnStatus qn_dataset_subset(QnDataset *base, const int64_t *indices, int64_t count, QnDataset **out);
/* Two views by a seeded shuffle: `first_fraction` of the samples (rounded, at least one on each
 * side) in *first, the rest in *second. Both see the augmentation of `base`: to evaluate without
 * it, open the data a second time with qn_augment_without_random and split that alike. */
QnStatus qn_dataset_split(QnDataset *base, double first_fraction, uint64_t seed, QnDataset **first,
                          QnDataset **second);

/* ---- for formats ---- */

typedef struct QnDatasetOps {
    const char *kind; /* "idx" */
    QnStatus (*get)(const QnDataset *ds, int64_t index, uint64_t epoch, uint64_t seed, void *x,
                    void *y);
    QnStatus (*label)(const QnDataset *ds, int64_t index, void *y);
    /* optional; NULL: "NAME: sample INDEX" */
    void (*place)(const QnDataset *ds, int64_t index, char *text, size_t bytes);
    void (*fini)(QnDataset *ds); /* frees what the format added, not the struct */
} QnDatasetOps;

typedef struct QnSkipList QnSkipList;

/* First member of each format's own struct. */
struct QnDataset {
    const QnDatasetOps *ops;
    char *name;
    int64_t count;
    QnSampleSpec spec;
    char **class_names; /* spec.class_count names, or NULL */
    QnSkipList *skips;
};

/* Sets the head of a format's struct (zeroed before); on failure nothing is left to free. */
QnStatus qn_dataset_init(QnDataset *ds, const QnDatasetOps *ops, const char *name);
/* Copies names; spec.class_count is set to n. */
QnStatus qn_dataset_set_classes(QnDataset *ds, const char *const *names, int64_t n);

/* Random streams of this layer, or-ed with the epoch, so that no two uses share their numbers. */
#define QN_STREAM_SHUFFLE ((uint64_t)0x51 << 56)
#define QN_STREAM_AUGMENT ((uint64_t)0x52 << 56)
#define QN_STREAM_WINDOW  ((uint64_t)0x53 << 56)

/* Fills `order` with a permutation of 0 … n-1 that depends on (seed, epoch) alone. */
void qn_dataset_shuffle(int64_t *order, int64_t n, uint64_t seed, uint64_t epoch);

#endif
