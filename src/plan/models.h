/* Models by the names under which figures have been published, built as graphs by families. */
#ifndef QN_PLAN_MODELS_H
#define QN_PLAN_MODELS_H

#include "nn/net.h"

typedef struct QnFamily QnFamily;

enum { QN_MODEL_SIZES = 10 };

typedef struct QnModel {
    const char *name;
    const QnFamily *family;
    int64_t size[QN_MODEL_SIZES]; /* what they mean is the family's business */
    double params;                /* published, in millions; 0: not known */
    const char *source;           /* of params */
} QnModel;

/* How models of a kind are built. */
struct QnFamily {
    const char *name;
    int64_t image;    /* side of its images where nothing else is said, 0: it takes tokens */
    int64_t sequence; /* tokens likewise */
    /* Scores (rows, classes) or (B,T,classes) of x: images (N,3,H,W) or tokens (B,T).
     * layers > 0 replaces the model's number of equal layers. */
    QnValue *(*build)(QnNet *net, const QnModel *m, QnValue *x, int64_t layers);
    int layers;     /* size[layers - 1] is the number of equal layers, 0: they are not equal */
    bool generates; /* token by token, with a cache of keys and values */
    bool adam;      /* what it is usually trained with; else momentum */
};

/* All of them, family by family; NULL: there is no i-th. */
const QnModel *qn_model_at(int i);
/* An error names what is nearest. */
QnStatus qn_model_find(const char *name, const QnModel **out);

/* ---- for the families ---- */

typedef struct QnModelList {
    const QnModel *models;
    int n;
} QnModelList;
extern const QnModelList qn_models_resnet, qn_models_cnn, qn_models_decoder, qn_models_encoder;

#endif
