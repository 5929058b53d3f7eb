/* The datasets of a recipe. */
#ifndef QN_TRAIN_DATA_H
#define QN_TRAIN_DATA_H

#include "io/dataset.h"
#include "io/text.h"
#include "train/recipe.h"

typedef struct QnTrainData {
    QnDataset *train, *test; /* test NULL: everything is training */
    QnVocab *vocab;          /* text alone */
    QnDataset *base[2];      /* of which train and test are views, or NULL */
} QnTrainData;

/* Opens and validates: labels in range, train and test of one kind. want_train false: only test is
 * used (eval), but both are opened where one is split off the other. */
QnStatus qn_data_open(QnRecipe *r, QnTrainData *out);
void qn_data_close(QnTrainData *d);

#endif
