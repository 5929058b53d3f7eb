/* The folders of a run: RUN/checkpoints/NNNNNNNN and RUN/best. What they hold is for
 * train/checkpoint.h. */
#ifndef QN_TRAIN_RUN_FOLDER_H
#define QN_TRAIN_RUN_FOLDER_H

#include "base/status.h"

enum { QN_RUN_PATH_BYTES = 4096 };

/* "a/b", if it fits. */
QnStatus qn_run_folder_join(char out[QN_RUN_PATH_BYTES], const char *a, const char *b);
/* The folder of an update's checkpoint. */
void qn_run_folder_at(char out[QN_RUN_PATH_BYTES], const char *run, int64_t update);
/* RUN/best, also while it is being replaced. */
QnStatus qn_run_folder_best(const char *run, char folder[QN_RUN_PATH_BYTES], bool *found);
/* Where the weights of a run lie: its best or newest checkpoint. Other paths are given back. */
QnStatus qn_run_folder_weights(const char *path, char out[QN_RUN_PATH_BYTES]);
/* Updates for which there is a checkpoint, newest first; *list is the caller's to qn_free. */
QnStatus qn_run_folder_list(const char *run, int64_t **list, int64_t *n);

/* Changes when a checkpoint comes, goes or is replaced: whoever reads while a run trains looks
 * again. */
uint64_t qn_run_folder_stamp(const char *run);

/* Removes a checkpoint: its two files, or the temporary ones of a process that was killed while it
 * wrote them. Anything else in the folder is not ours, and stays with it. */
void qn_run_folder_remove(const char *folder);
/* Removes all but the newest `keep` (0: none) up to `update`, and those after it: what a run passes
 * over when it resumes, it comes to again. */
QnStatus qn_run_folder_prune(const char *run, int64_t update, int64_t keep);
/* Puts right what a process left that was killed between two steps of replacing a folder: one whose
 * name ends in .old comes back if its successor never came, unfinished ones go. */
void qn_run_folder_tidy(const char *run);

#endif
