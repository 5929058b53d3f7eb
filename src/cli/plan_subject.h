/* What quern plan plans for: a model by name, a recipe, or an ONNX file. All become a QnModel, so
 * that the planner counts and prices them alike. */
#ifndef QN_CLI_PLAN_SUBJECT_H
#define QN_CLI_PLAN_SUBJECT_H

#include "cli/cli.h"
#include "onnx/onnx.h"
#include "plan/models.h"
#include "train/data.h"

typedef struct QnPlanSubject {
    const QnModel *model; /* one of the catalogue, or `own` */
    QnModel own;
    QnFamily family; /* of `own` */
    QnDevice *host;  /* that constants are computed on */
    /* a recipe */
    QnRecipe *recipe; /* NULL: it is none */
    QnTrainData data;
    QnSampleSpec spec;
    bool has_data;
    const char *no_data; /* why the data set was not opened */
    double samples;      /* of the data set; 0: not known */
    /* an ONNX file */
    QnOnnxModel *onnx;
    int64_t batch;      /* that its shapes hold; 0: others may do */
    int64_t file_batch; /* as the file says, 1 where it does not */
    int dim_option;
    const QnArgs *args;
    QnArena *arena;
} QnPlanSubject;

typedef struct QnPlanSubjectOptions {
    bool train;
    int dim_option;          /* --dim NAME=N */
    int64_t classes;         /* where the data set is not there to say: --classes; 0: not given */
    int64_t image, sequence; /* likewise; 0: not given */
} QnPlanSubjectOptions;

/* By the end of the name: .yaml, .yml, .json, .onnx; else it is a name. *s must stay where it is,
 * and is to be closed on failure too. */
QnStatus qn_plan_subject_open(QnPlanSubject *s, const QnArgs *a, const char *name,
                              const QnPlanSubjectOptions *o);
void qn_plan_subject_close(QnPlanSubject *s);
/* Bytes of an example as it is copied to a device; 0: not known. */
double qn_plan_subject_bytes(const QnPlanSubject *s, int64_t image, int64_t sequence);

#endif
