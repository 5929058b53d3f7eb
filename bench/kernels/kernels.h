/* Kernels of the CPU timed one by one: what the program's parts share. */
#ifndef QN_BENCH_KERNELS_H
#define QN_BENCH_KERNELS_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/limits.h"

/* A case is one operator in a line, "conv *f32[128,32,28,28] f32[32,32,3,3] {pads=[1,1,1,1]} *":
 * its name, the types of its inputs (_ where one is absent), its attributes as text of graphs has
 * them. Behind a type, <100 bounds integers and + makes numbers positive. A star marks the inputs,
 * and at the end the outputs, that are images: such a case is timed in the plain layout and in
 * channels-last, or with ! before it in channels-last alone. */
typedef struct CaseList {
    const char *const *text;
    int n;
} CaseList;

#define CASE_LIST(name) const CaseList name = { cases, QN_COUNT(cases) }

extern const CaseList cases_of_products, cases_of_convolutions, cases_of_rows, cases_of_images,
    cases_of_elements, cases_of_moves;

enum { CASE_IN = 16, CASE_NAME = 200 };

typedef struct Case {
    QnGraph *graph;
    const QnNode *node;
    int64_t below[CASE_IN]; /* integers of the input; 0: any */
    bool positive[CASE_IN];
    char name[CASE_NAME]; /* the operator, its types and attributes */
} Case;

/* Whether it has images, so that there are two layouts; whether plain is one of them. */
bool case_has_images(const char *text);
bool case_is_plain(const char *text);
/* Builds the graph; close it in any case. */
QnStatus case_open(Case *c, const char *text, QnLayout layout);
void case_close(Case *c);
/* Buffers of the node's tensors, in a fixed pattern: n_in, then n_out. NULL: out of memory. */
void **case_buffers(const Case *c);
void case_buffers_free(const Case *c, void **buffers);

/* An own kernel, as opposed to the reference and to libraries. */
bool kernel_is_own(const QnKernel *k);
/* Whether it is one of the node's kernels here; the reference is none. */
bool kernel_takes(const QnKernel *k, const QnNode *n, const QnKernelEnv *env);

#endif
