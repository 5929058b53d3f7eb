/* A training recipe, checked: every key known, every value in range, before anything is opened. */
#ifndef QN_TRAIN_RECIPE_H
#define QN_TRAIN_RECIPE_H

#include "base/mem.h"
#include "io/augment.h"
#include "io/yaml.h"

typedef enum QnTask { QN_TASK_CLASSIFY, QN_TASK_REGRESS, QN_TASK_LANGUAGE } QnTask;

typedef enum QnDataFormat {
    QN_DATA_IDX,    /* image and label files of the MNIST family */
    QN_DATA_FOLDER, /* one folder of JPEG or PNG files a class; a .tar of such too */
    QN_DATA_CSV,
    QN_DATA_TEXT, /* one text file, by characters */
    QN_DATA_NPY,  /* arrays x and y */
} QnDataFormat;

/* One part of the data. Paths are relative to the recipe's folder unless absolute. */
typedef struct QnDataPart {
    const char *x, *y; /* idx: images, labels; folder, csv, text: path in x; npy: x, y */
} QnDataPart;

typedef struct QnRecipeData {
    QnDataFormat format;
    QnDataPart train, test; /* test.x NULL: split off from train */
    double train_fraction;  /* of a split; 0: the format's default */
    const char *const *classes;
    int64_t n_classes; /* names given; 0: from the data */
    QnAugment augment; /* random parts are for training alone */
    /* csv */
    const char *target, *drop;
    bool standardize, standardize_target, fill_missing;
    /* text */
    int64_t window;
    bool bytes;
    bool cache; /* folder: keep decoded images in memory */
    bool stop_on_broken;
    int64_t workers, prefetch;
} QnRecipeData;

typedef enum QnScheduleKind {
    QN_SCHEDULE_CONSTANT,
    QN_SCHEDULE_STEP,      /* times gamma at each of the marks */
    QN_SCHEDULE_COSINE,    /* to min_lr at the end */
    QN_SCHEDULE_LINEAR,    /* to min_lr at the end */
    QN_SCHEDULE_ONE_CYCLE, /* up from lr/25 over the first 30 %, down to lr/1e4; Smith 2018 */
} QnScheduleKind;

typedef struct QnSchedule {
    QnScheduleKind kind;
    double lr, min_lr;
    double warmup;    /* steps of linear warm-up before; below 1: a share of all steps */
    double gamma;     /* step */
    double marks[16]; /* step: epochs, fractions allowed */
    int n_marks;
    double rise; /* one_cycle: share of the way up */
} QnSchedule;

typedef struct QnRecipeOptimizer {
    const char *name; /* "sgd", "adamw", … (nn/optim.h) */
    double momentum, beta1, beta2, eps, weight_decay;
    bool nesterov;
    double clip_norm;  /* 0: none */
    double clip_value; /* 0: none */
} QnRecipeOptimizer;

typedef enum QnPrecision {
    QN_PRECISION_FP32,
    QN_PRECISION_BF16,
    QN_PRECISION_FP16,
    QN_PRECISION_FP8,  /* matrix products by 8-bit operands, the rest as in bf16 */
    QN_PRECISION_AUTO, /* each layer in one of these, by its gradients (train/precision_auto.h) */
} QnPrecision;
const char *qn_precision_name(QnPrecision p);

/* Where products of matrices are by 8-bit operands. */
typedef enum QnRecipeF8 {
    QN_F8_NEVER,
    QN_F8_FASTER, /* where that was measured to be faster (train/f8_choice.h) */
    QN_F8_ALWAYS,
} QnRecipeF8;

typedef struct QnRecipeAuto {
    int64_t every; /* updates between probes, the first ones apart */
    int64_t hold;  /* clean probes in a row before a layer's precision is lowered */
    QnRecipeF8 fp8;
} QnRecipeAuto;

/* Of parameters to the 16 bits that products read. */
typedef enum QnRounding { QN_ROUNDING_NEAREST, QN_ROUNDING_STOCHASTIC } QnRounding;

typedef enum QnDeterminism { QN_DETERMINISM_RUN, QN_DETERMINISM_STRICT } QnDeterminism;

typedef struct QnRecipe {
    QnYamlDoc *doc; /* owned; all strings point into it or the arena */
    QnArena *arena;
    const char *path, *folder;
    const char *name;
    QnTask task;
    QnRecipeData data;
    const QnYaml *model; /* read by train/model.c, or train/model_file.c: a map, or a file's path */
    const char *onnx;    /* the file, relative to where we are; NULL: the model is none */
    QnSchedule schedule;
    QnRecipeOptimizer optimizer;
    int64_t batch, accumulate; /* samples a micro-batch, micro-batches an update */
    int64_t epochs, steps;     /* one of them; the other is 0 */
    double label_smoothing;
    double ema;         /* decay of averaged weights; 0: none */
    int64_t early_stop; /* evaluations without gain; 0: never */
    bool keep_best;
    int64_t seed;
    QnDeterminism determinism;
    QnPrecision precision; /* of products; parameters and sums are always float32 */
    QnRecipeF8 fp8;        /* of precision fp8 */
    QnRecipeAuto precision_auto;
    QnRounding rounding;
    int64_t eval_batch;       /* 0: batch */
    int64_t eval_every;       /* steps; 0: each epoch */
    int64_t checkpoint_every; /* steps; 0: each epoch */
    int64_t checkpoint_keep;
    int64_t threads;             /* 0: one a core */
    int64_t level;               /* passes: 0 none but lowering, 1, 2 all */
    bool check_finite;           /* stop at the first node that writes an infinity or NaN; slower */
    const char *passes_off;      /* names, "fuse,cse"; NULL: none */
    int64_t memory_budget_bytes; /* of activations; values are recomputed to fit; 0: no limit */
    double recompute; /* without one: share of a step's time that doing so may add (2 %) */
} QnRecipe;

/* Reads, applies "key=value" settings in order, checks. An error names file, line, key and what was
 * expected. */
QnStatus qn_recipe_open(const char *path, const char *const *settings, int n_settings,
                        QnRecipe **out);
void qn_recipe_free(QnRecipe *r);

/* The recipe as a run's folder has it: with its settings, and with absolute paths, but an ONNX
 * model as QN_RUN_MODEL, which lies beside it. *text is the caller's to qn_free. */
#define QN_RUN_MODEL "model.onnx"
QnStatus qn_recipe_print(const QnRecipe *r, char **text);

/* `path` relative to the recipe's folder; from the recipe's arena. NULL: no memory. */
const char *qn_recipe_path(QnRecipe *r, const char *path);

/* Learning rate at an update (from 0) of `total`; steps_per_epoch for the marks. */
double qn_schedule_lr(const QnSchedule *s, int64_t step, int64_t total, int64_t steps_per_epoch);

#endif
