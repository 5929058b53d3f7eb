/* What a trained model expects of its inputs and what its outputs mean, kept in RUN/data.json so
 * that prediction needs none of the training data. */
#ifndef QN_TRAIN_FORM_H
#define QN_TRAIN_FORM_H

#include "train/data.h"

typedef struct QnForm {
    QnArena *arena; /* owns everything below */
    QnSampleSpec spec;
    const char **class_names; /* spec.class_count of them, or NULL */
    int64_t n_features;       /* tables: columns, else 0 */
    const char **feature_names;
    double *mean, *deviation; /* by which features were standardised; n_features each */
    double *target_mean, *target_deviation; /* regression: spec.y_count each */
} QnForm;

/* From the training data; all is copied. */
QnStatus qn_form_of(const QnTrainData *data, QnForm *out);
QnStatus qn_form_write(const QnForm *f, const char *path);
/* An error names file and key. */
QnStatus qn_form_read(const char *path, QnForm *out);
void qn_form_fini(QnForm *f);
/* Refuses data that mean something else than what the model was trained on: other classes or
 * features, or an order of theirs that differs. Lengths may differ: pictures of another size suit
 * many a model, and to those that they do not the checkpoint does not fit. */
QnStatus qn_form_check(const QnForm *f, const QnTrainData *data);
/* The same of the features of a table alone. */
QnStatus qn_form_check_features(const QnForm *f, const QnDataset *table);

/* "ankle boot", or the number where classes have no names (then written to `number`). */
const char *qn_form_class(const QnForm *f, int64_t k, char number[24]);

#endif
