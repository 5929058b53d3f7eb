/* Models by the names under which figures have been published, built as graphs by families. */
#ifndef QN_PLAN_MODELS_H
#define QN_PLAN_MODELS_H

#include "nn/net.h"

typedef struct QnFamily QnFamily;

enum { QN_MODEL_SIZES = 16 };

typedef struct QnModel {
    const char *name;
    const QnFamily *family;
    int64_t size[QN_MODEL_SIZES]; /* what they mean is the family's business */
    double params;                /* published, in millions; 0: not known */
    const char *source;           /* of params and gmacs */
    double gmacs;  /* published, 1e9 multiply-adds of one example forward; 0: not known */
    int64_t image; /* height of its images, 0: its family's */
} QnModel;

/* What a step takes. */
typedef struct QnStepInput {
    int64_t batch;
    int64_t channels, depth, height, width; /* of images; depth 0: they are flat */
    int64_t sequence;                       /* tokens; 0: it takes images */
    bool train;
    /* of a step of generation: the tokens follow `context` others; 0: they are the prompt */
    bool generate;
    int64_t context;
    int64_t source; /* tokens that such a step's answers are about, read before */
} QnStepInput;

struct QnCountRequest;
struct QnStep;

/* How models of a kind are built: by build, step or graph. */
struct QnFamily {
    const char *name;
    /* what it takes where nothing else is said */
    int64_t image;    /* height of its images, 0: it takes tokens */
    int64_t width;    /* 0: as wide as high */
    int64_t depth;    /* slices of a volume, 0: images are flat */
    int64_t channels; /* 0: 3 */
    int64_t sequence; /* tokens */
    int64_t batch;    /* examples that a device is usually given, 0: 64 images or 8 sequences */
    /* Scores (rows, classes) or (B,T,classes) of x: images (N,C,H,W), volumes (N,C,D,H,W) or tokens
     * (B,T). Its loss is cross-entropy over the last axis. layers > 0 replaces the model's number
     * of equal layers. */
    QnValue *(*build)(QnNet *net, const QnModel *m, QnValue *x, int64_t layers);
    /* For what does not fit that: makes its own inputs (qn_step_image, qn_input) and returns the
     * loss, a scalar, of a step of training, else what it predicts; more by qn_graph_output. */
    QnValue *(*step)(QnNet *net, const QnModel *m, const QnStepInput *in, int64_t layers);
    bool wide; /* steps are built in 32 bits whatever is asked, and stand for half as many bytes */
    /* For graphs that are made elsewhere, of a recipe or a file: all of a step as it is before the
     * passes (plan/step.h). */
    QnStatus (*graph)(const QnModel *m, const struct QnCountRequest *r, struct QnStep *out);
    /* Scores (B,classes) of the last of the tokens x (B,T) that follow in->context others, whose
     * keys and values (or what else is kept) are states made by qn_cache_keep; NULL: it does not
     * generate. */
    QnValue *(*generate)(QnNet *net, const QnModel *m, QnValue *x, const QnStepInput *in,
                         int64_t layers);
    bool token_batch; /* batches are published in tokens */
    int64_t items;    /* what published rates count as tokens of an example; 0: its sequence */
    bool pairs;   /* to each sequence belongs one of as many tokens that is wanted: both count */
    int layers;   /* size[layers - 1] is the number of equal layers, 0: they are not equal */
    bool answers; /* one net reads a source, another writes */
    int beams;    /* answers that are followed at once while one is sought; 0: 1 */
    bool bends;   /* work is not linear in the batch */
    bool adam;    /* what it is usually trained with; else momentum */
    bool lamb;    /* likewise */
    bool plain;   /* likewise, without momentum */
    const char *trained; /* only parameters with this in their names are trained; NULL: all */
    /* Small kernels that the graph does not have, e.g. of sorting out overlapping boxes: of any
     * step, and more for each example of a step of training and of a pass forward alone. */
    int64_t launches, train_launches, infer_launches;
    /* An example goes through the net in so many equal parts, one after the other; 0: as one. */
    int64_t parts;
    double p90; /* where examples differ: work that 90 % of them do not exceed, in means; else 0 */
};

/* All of them, family by family; NULL: there is no i-th. */
const QnModel *qn_model_at(int i);
/* An error names what is nearest. */
QnStatus qn_model_find(const char *name, const QnModel **out);

/* ---- for the families ---- */

/* Parameters that are there and that this step neither reads nor trains: rows of a table. */
void qn_step_idle(QnNet *net, const char *name, const QnShape *shape);
/* A parameter of which the step trains just the rows that it reads, where they lie: no device sums
 * their gradients with others'. */
QnValue *qn_step_rows(QnNet *net, const char *name, const QnShape *shape);
/* What earlier steps of generation have left: a state of this shape that this step reads. */
QnValue *qn_cache_keep(QnNet *net, const char *name, const QnShape *shape);
/* Whether a state is such a one, by its name. */
bool qn_cache_is_kept(const char *name);
/* A result that this step adds to the cache: it is written though nothing else reads it. */
void qn_cache_put(QnNet *net, const char *name, QnValue *v);

typedef struct QnModelList {
    const QnModel *models;
    int n;
} QnModelList;
/* Input "x" in the net's dtype: (N,C,H,W), or (N,C,D,H,W) where the family's images have depth. */
QnValue *qn_step_image(QnNet *net, const QnStepInput *in);
/* Mean cross-entropy of scores (..., classes) with labels from the input `name`. */
QnValue *qn_step_cross_entropy(QnNet *net, const char *name, QnValue *scores);

/* text, speech, series */
extern const QnModelList qn_models_transformer_xl, qn_models_translation, qn_models_waveglow,
    qn_models_checkpoints, qn_models_recommender, qn_models_speech, qn_models_forecast,
    qn_models_product, qn_models_diffusion, qn_models_synthesis, qn_models_hifigan,
    qn_models_answer, qn_models_mamba, qn_models_latent, qn_models_electra;

/* classifiers of images */
extern const QnModelList qn_models_vit;
extern const QnModelList qn_models_beit;
extern const QnModelList qn_models_swin;
extern const QnModelList qn_models_maxvit;
extern const QnModelList qn_models_convnext;
extern const QnModelList qn_models_cait;
extern const QnModelList qn_models_levit;
extern const QnModelList qn_models_inception, qn_models_inverted, qn_models_mobile,
    qn_models_branches, qn_models_regnet, qn_models_nfnet, qn_models_vit, qn_models_beit,
    qn_models_cait, qn_models_levit, qn_models_swin, qn_models_maxvit, qn_models_convnext,
    qn_models_hybrid;

extern const QnModelList qn_models_resnet, qn_models_cnn, qn_models_decoder, qn_models_encoder;

/* what finds and outlines things */
extern const QnModelList qn_models_unet, qn_models_ssd, qn_models_retinanet, qn_models_rcnn,
    qn_models_efficientdet, qn_models_yolo, qn_models_darknet, qn_models_pose, qn_models_se3;

#endif
