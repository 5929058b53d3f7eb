/* Names that other programs give to a model's tensors, as data: a map stands beside each model, and
 * names.c applies it. */
#ifndef QN_NN_NAMES_H
#define QN_NN_NAMES_H

#include "base/status.h"

/* A pattern matches a whole name: '#' a number, '*' any text (once, and nothing after it but plain
 * text). In `to`, '#' is the next number of the name, '+' the next one plus 1, '*' the text. */
typedef struct QnNameRule {
    const char *from;
    const char *to; /* NULL: the tensor means nothing to the model */
} QnNameRule;

typedef struct QnNameMap {
    const QnNameRule *rules; /* the first that matches holds */
    int n_rules;
    /* Matrices that the other program may keep as (in, out). Whether it does, `witness` shows,
     * one that is not square. */
    const char *const *turned;
    int n_turned;
    const char *witness;
    /* A table by position, whose first rows are enough: a model of a shorter window. NULL: none. */
    const char *by_position;
    /* Two names of one tensor: what has the one may lack the other. */
    const char *tied[2];
} QnNameMap;

extern const QnNameMap qn_names_resnet, qn_names_vgg, qn_names_gpt2;

enum { QN_NAME_BYTES = 512 };

/* One step from a file's name towards the model's: a rule of the map (which may be NULL), one of
 * those for all models, or a wrapper's prefix taken off. false: there is none. *ignored: the tensor
 * means nothing to the model. `name` may be `out`. */
bool qn_names_step(const QnNameMap *map, const char *name, char out[QN_NAME_BYTES], bool *ignored);

bool qn_names_match(const char *pattern, const char *name);
bool qn_names_is_turned(const QnNameMap *map, const char *name); /* of the model */

#endif
