/* Decoders that generate text, by what QnModel.size says of them. */
#ifndef QN_PLAN_MODELS_DECODER_H
#define QN_PLAN_MODELS_DECODER_H

#include "plan/models/text.h"

/* Places in QnModel.size. */
enum {
    QN_DECODER_LAYERS,
    QN_DECODER_WIDTH,
    QN_DECODER_HEADS,
    QN_DECODER_KV_HEADS, /* 0: as many */
    QN_DECODER_HIDDEN,   /* of the feed-forward net, or of one expert */
    QN_DECODER_VOCAB,
    QN_DECODER_POSITIONS, /* learned ones; 0: rotary, or none (QN_DECODER_LINEAR) */
    QN_DECODER_FLAGS,
    QN_DECODER_HEAD,    /* width of a head; 0: width / heads */
    QN_DECODER_EXPERTS, /* 0: one feed-forward net */
    QN_DECODER_ACTIVE,  /* experts of a token */
    QN_DECODER_SHARED,  /* hidden width of what all tokens go through beside experts */
    QN_DECODER_DENSE,   /* hidden width of the first layer, which has no experts */
    QN_DECODER_ADAPTER, /* rank of the adapters of attention; 0: none */
    QN_DECODER_WINDOW,  /* tokens that layers of a window see; 0: there are none */
    QN_DECODER_LOCAL,   /* such layers, in percent */
};

enum {
    QN_DECODER_GATED = 1 << 0,     /* three matrices in the feed-forward net, not two */
    QN_DECODER_TIED = 1 << 1,      /* scores by the embedding's table */
    QN_DECODER_RMS = 1 << 2,       /* norms without means */
    QN_DECODER_PARALLEL = 1 << 3,  /* attention and feed-forward net read the same x */
    QN_DECODER_TWO_NORMS = 1 << 4, /* though each through a norm of its own */
    QN_DECODER_QKV_BIAS = 1 << 5,
    QN_DECODER_OUT_BIAS = 1 << 6, /* of attention's output */
    QN_DECODER_FEED_BIAS = 1 << 7,
    QN_DECODER_NORM_BIAS = 1 << 8,
    QN_DECODER_HEAD_BIAS = 1 << 9, /* of the scores */
    QN_DECODER_LINEAR = 1 << 10,  /* positions as a slope of scores, which has no weights (ALiBi) */
    QN_DECODER_QK_NORM = 1 << 11, /* norms of each head's queries and keys */
    QN_DECODER_POST_NORMS = 1 << 12, /* also after attention and feed-forward net */
    QN_DECODER_FIRST_NORM = 1 << 13, /* of the embeddings */
    QN_DECODER_STRETCHES = 1 << 14,  /* trained with as many positions as are asked for */
    QN_DECODER_BIAS =
        QN_DECODER_QKV_BIAS | QN_DECODER_OUT_BIAS | QN_DECODER_FEED_BIAS | QN_DECODER_NORM_BIAS,
};

extern const QnFamily qn_family_decoder;
extern const QnFamily qn_family_adapted; /* of which the adapters alone are trained */
extern const QnFamily qn_family_experts; /* the same where work bends with the batch */

#endif
