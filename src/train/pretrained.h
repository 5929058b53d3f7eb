/* A session's model filled from a file of weights, whoever wrote it. */
#ifndef QN_TRAIN_PRETRAINED_H
#define QN_TRAIN_PRETRAINED_H

#include "base/str.h"
#include "train/session.h"

typedef struct QnPretrained {
    char format[64];
    int64_t taken;                          /* tensors of the model that the file has filled */
    int64_t missing, unexpected, misshapen; /* what does not fit */
    QnStr text; /* a line for each of the latter; freed by qn_pretrained_fini */
} QnPretrained;

/* Fills parameters and running statistics from `path`: a file or folder that io/weights.h reads, a
 * run's folder (its best or newest checkpoint), or one checkpoint, whose checksum is compared.
 * Names are the model's own or those of its map (nn/names.h); float types are converted. Averaged
 * weights (ema) start at the file's, or at the weights. Whatever else the file holds of an
 * optimizer is passed over.
 *
 * If something does not fit, *out lists all of it and nothing is changed; with `partial`, what fits
 * is taken, and it is an error only if nothing does. */
QnStatus qn_pretrained_load(QnSession *s, const char *path, bool partial, QnPretrained *out);
void qn_pretrained_fini(QnPretrained *p);

#endif
