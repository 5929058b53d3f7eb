/* Random words of operators: pure functions of (seed, step, stream, element), the same on host and
 * devices. The key input is an i64 tensor: a scalar step, or (step, seed); steps count modulo 2^32.
 * Each random node has its own stream, which its builder takes from the graph. */
#ifndef QN_OPS_DRAW_H
#define QN_OPS_DRAW_H

#include "base/rng.h"
#include "ops/util.h"

typedef struct QnDraw {
    uint64_t seed, stream;
} QnDraw;

QnDraw qn_draw_new(int64_t step, int64_t seed, int64_t stream);
/* From a reference's key input. */
QnDraw qn_draw_from(const QnType *key_type, const double *key, int64_t stream);
/* The word of element i. */
uint32_t qn_draw_word(const QnDraw *d, int64_t i);
/* Words below it come with probability p. */
uint64_t qn_draw_threshold(double p);

QnStatus qn_draw_check_key(const char *op, const QnType *key);
/* Launch of one item for every four elements; scalars: count, length of the key, stream. */
void qn_draw_call(const char *kernel, int64_t count, const QnType *key, int64_t stream,
                  QnDeviceCall *c);

#define QN_DRAW_STREAM(Type)                                                                       \
    {                                                                                              \
        .name = "stream", .kind = QN_ATTR_INT, .offset = offsetof(Type, stream),                   \
        .max = 0x7fffffff, .doc = "sequence of this node"                                          \
    }

#endif
