/* What the cells of a row of measurements say: sizes, precisions, units, as their sources write
 * them. */
#ifndef QN_PLAN_READING_H
#define QN_PLAN_READING_H

#include "plan/cost.h"

/* "224", "800x1333", "seq384", "tgt192/mem192", "in128/out2048", "pp512", "tg128". */
typedef struct QnReadSize {
    int64_t dim[4]; /* of an image; else tokens */
    int n;          /* 0: not said */
    int64_t memory; /* tokens that are remembered */
    /* of serving: tokens of the prompt, and of the answer (0: the prompt alone is timed) */
    bool serves;
    int64_t in, out;
} QnReadSize;
bool qn_read_size(const char *text, QnReadSize *size);
/* Sequences that were packed or sorted by length are shorter than what they are called; the flag
 * says how much. */
void qn_read_real_length(const char *flag, int64_t *size);

/* weight_bits: of matrices that are kept in fewer bits than they are computed with; 0: they are
 * not. Names that other tools use are known too: "amp", "float16", "awq". */
bool qn_read_numbers(const char *text, QnNumbers *numbers, double *weight_bits);

typedef enum QnReadItems {
    QN_READ_EXAMPLES,
    QN_READ_TOKENS,
    QN_READ_STEPS,
    QN_READ_TFLOP
} QnReadItems;
typedef struct QnReadUnit {
    bool is_time;  /* of `items`; else items a second */
    bool of_one;   /* of one device */
    bool of_first; /* of the first token */
    QnReadItems items;
    double scale; /* seconds of it in its unit */
} QnReadUnit;
bool qn_read_unit(const char *text, QnReadUnit *unit);

/* The software stack that a framework's name speaks of. */
QnTier qn_measured_tier(const char *framework);

#endif
