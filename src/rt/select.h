/* Which kernel runs a node: a recorded choice if there is one and it still accepts, else the
 * highest rank that accepts. */
#ifndef QN_RT_SELECT_H
#define QN_RT_SELECT_H

#include "rt/device.h"

/* Choices by node key, as `quern tune` measures them and runs record them. */
typedef struct QnChoice {
    const char *key;    /* qn_select_key */
    const char *kernel; /* its name */
    double ns;          /* measured time; 0: chosen by rank */
} QnChoice;

struct QnChoices {
    QnArena *arena;
    QnChoice *items; /* sorted by key */
    int64_t n, cap;
};

QnChoices *qn_choices_new(void);
void qn_choices_free(QnChoices *c);
/* Replaces an earlier choice of that key. Strings are copied. */
QnStatus qn_choices_set(QnChoices *c, const char *key, const char *kernel, double ns);
const QnChoice *qn_choices_find(const QnChoices *c, const char *key);

/* What the speed of a node's kernels depends on: operator and version, attributes, types,
 * instruction set, threads. Returns buf. */
enum { QN_SELECT_KEY_BYTES = 512 };
const char *qn_select_key(const QnDevice *d, const QnNode *n, char buf[QN_SELECT_KEY_BYTES]);

/* An error names the node and every kernel's reason. choices may be NULL. */
QnStatus qn_select(const QnDevice *d, const QnNode *n, const QnChoices *choices,
                   const QnKernel **out);

/* NULL if kernel k of the device can run n, else its reason. */
const char *qn_select_reason(const QnDevice *d, const QnKernel *k, const QnNode *n);

#endif
