/* Batches, prepared ahead by worker threads. What a batch holds depends on (seed, epoch, step)
 * alone: not on the number of workers, nor on their timing. */
#ifndef QN_IO_LOADER_H
#define QN_IO_LOADER_H

#include "io/dataset.h"

typedef enum QnBroken {
    QN_BROKEN_STOP,    /* a broken sample is an error */
    QN_BROKEN_REPLACE, /* training: the next sound sample by index takes its place */
    QN_BROKEN_DROP,    /* evaluation: the batch gets shorter */
} QnBroken;

typedef struct QnLoaderOptions {
    int64_t batch;  /* samples in a batch, of one rank */
    int workers;    /* threads; 0: 2; negative: none, the caller's thread does the work */
    int prefetch;   /* batches held ready; 0: twice the workers */
    bool shuffle;   /* a new order in each epoch, else 0, 1, 2, … */
    bool drop_last; /* leave out an incomplete last batch; else it comes with a smaller count */
    QnBroken broken;
    uint64_t seed;
    uint64_t epochs;     /* stop after so many; 0: never */
    int64_t rank, world; /* this process's part of each global batch; world 0: alone */
} QnLoaderOptions;

/* Lives until the next call on the loader. Values of missing samples (count < batch) are zero. */
typedef struct QnBatch {
    void *x;                /* (batch, x…) */
    void *y;                /* (batch, y…) or NULL */
    const int64_t *indices; /* of the samples, count of them */
    int64_t count;          /* samples that are there */
    uint64_t epoch;
    int64_t step; /* in the epoch */
    bool last;    /* of its epoch */
    bool end;     /* there are no more: all else is zero */
} QnBatch;

/* The next batch that qn_loader_next will give. */
typedef struct QnLoaderPosition {
    uint64_t epoch;
    int64_t step;
} QnLoaderPosition;

typedef struct QnLoader QnLoader;

/* ds outlives the loader. Everything is allocated here; later calls allocate nothing. */
QnStatus qn_loader_new(QnDataset *ds, const QnLoaderOptions *options, QnLoader **out);
void qn_loader_free(QnLoader *loader); /* NULL is fine; may be called at any time */

int64_t qn_loader_steps(const QnLoader *loader); /* in one epoch */
/* A worker's error comes out here, at the batch that it belongs to, and stays until a seek. */
QnStatus qn_loader_next(QnLoader *loader, QnBatch *out);
/* Counts what was given out, not what lies ready: saved and sought, nothing is replayed or skipped.
 */
QnLoaderPosition qn_loader_position(const QnLoader *loader);
QnStatus qn_loader_seek(QnLoader *loader, QnLoaderPosition position);
/* How long qn_loader_next has waited for workers in all: near 0, unless the data are the
 * bottleneck. */
int64_t qn_loader_wait_ns(const QnLoader *loader);

#endif
