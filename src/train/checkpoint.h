/* Checkpoints: all states of a run and where it stands, in a folder RUN/checkpoints/NNNNNNNN with
 * model.safetensors and index.json (which holds its checksum). A checkpoint appears whole, by one
 * rename, or not at all. */
#ifndef QN_TRAIN_CHECKPOINT_H
#define QN_TRAIN_CHECKPOINT_H

#include "base/hash.h"
#include "io/loader.h"
#include "rt/store.h"

/* Where a run stands: everything but the states that resuming needs. */
typedef struct QnProgress {
    int64_t update;            /* updates done */
    QnLoaderPosition position; /* of the next batch */
    int64_t samples;           /* trained on so far */
    double best_metric;        /* NaN: none yet */
    int64_t best_update, bad_evals;
    double train_seconds; /* spent so far, over all resumptions */
    double loss_sum;      /* of the updates since the last line of the metrics */
    int64_t loss_n;
    uint64_t seed;
    bool fell_back; /* to fp32, as the self-test of the precision asked for */
} QnProgress;

/* Writes RUN/checkpoints/NNNNNNNN, then removes all but the newest `keep` (none if keep is 0) and
 * those of later updates, which a resumed run has passed over. */
QnStatus qn_checkpoint_save(const char *run, const QnStore *store, const QnProgress *p,
                            int64_t keep);
/* The same into RUN/best, replacing what is there. */
QnStatus qn_checkpoint_save_best(const char *run, const QnStore *store, const QnProgress *p);

/* Clears away what a killed process left unfinished and loads the newest checkpoint that is whole;
 * *found false: there is none. Broken ones are passed over, named in *skipped (borrowed from arena;
 * NULL: none) and removed, as are older ones than the newest `keep`. */
QnStatus qn_checkpoint_resume(const char *run, QnStore *store, QnProgress *p, int64_t keep,
                              QnArena *arena, bool *found, const char **skipped);
/* Loads one folder. A state of the store that the file lacks is an error; further ones in the
 * file are passed over. p may be NULL. */
QnStatus qn_checkpoint_load(const char *folder, QnStore *store, QnProgress *p);
/* Whether the weights in a checkpoint's folder are those that its index gives the checksum of.
 * Other paths are none of its business. */
QnStatus qn_checkpoint_verify(const char *folder);
/* Loads RUN/best if there is one, else the newest checkpoint that is whole; broken ones are named
 * as above. p may be NULL. */
QnStatus qn_checkpoint_load_run(const char *run, QnStore *store, QnProgress *p, QnArena *arena,
                                const char **skipped);
bool qn_checkpoint_exists(const char *run); /* at least one, whole or not */

/* SHA-256 over names and contents of all states that are part of the model (not the optimizer's),
 * by name. */
QnStatus qn_checkpoint_digest(const QnStore *store, char hex[QN_SHA256_HEX]);

#endif
