/* Measuring which kernel runs a node fastest, and keeping the answers on disk. */
#ifndef QN_RT_TUNE_H
#define QN_RT_TUNE_H

#include "rt/select.h"

typedef struct QnTuneResult {
    const QnKernel *kernel;
    double ns;           /* the fastest of several runs; 0: it was not timed */
    double error;        /* in parts of the greatest element, against the reference; where that is
                          * slow and all kernels agree, against the one of lowest rank */
    const char *refused; /* why it is out of the race; NULL: it ran and its result was right */
} QnTuneResult;

enum { QN_TUNE_MAX_KERNELS = 32 };

/* Times every kernel of the device that accepts the node, on numbers of its own, and checks each
 * result. Adds the fastest right one to the choices. results (may be NULL) takes up to
 * QN_TUNE_MAX_KERNELS rows, *n how many. A node for which only one kernel is left is not timed. */
QnStatus qn_tune_node(QnDevice *d, const QnNode *n, QnChoices *choices, QnTuneResult *results,
                      int *n_results);

/* The file of choices: a JSON object of node keys. Reading a missing file gives no choices; a
 * damaged one is an error that names it. Writing merges into nothing: it replaces the file. */
QnStatus qn_choices_read(const char *path, QnChoices **out);
QnStatus qn_choices_write(const QnChoices *c, const char *path);

#endif
