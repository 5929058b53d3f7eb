/* Copies between two strided orders of the same elements, of any element size. */
#ifndef QN_BACKEND_CPU_MOVE_H
#define QN_BACKEND_CPU_MOVE_H

#include "backend/cpu/relayout.h"
#include "rt/kernel.h"

typedef enum QnMoveHow {
    QN_MOVE_RUNS,    /* the last axis is adjacent on both sides */
    QN_MOVE_TURN,    /* the last axis is adjacent in `to`, another one in `from`; 4 bytes */
    QN_MOVE_STRIDED, /* element by element */
} QnMoveHow;

typedef struct QnMove {
    QnMoveHow how;
    size_t size; /* bytes of an element */
    int rank;    /* outer axes, the last (and for turns the other) left out */
    int64_t dim[QN_MAX_RANK], from[QN_MAX_RANK], to[QN_MAX_RANK]; /* of outer axes, in elements */
    int64_t from_at, to_at;                                       /* first element */
    int64_t n, n_from, n_to;                                      /* the last axis */
    int64_t m, m_to;             /* turns: the axis adjacent in `from`, its step in `to` */
    int64_t blocks, unit_blocks; /* product of outer dims; how many are one unit of work */
    int64_t pieces, piece;       /* a block falls into so many pieces of n (turns: of m) */
    QnTurnFn *turn;
} QnMove;

/* Strides may be negative or, in `from`, 0. */
void qn_move_init(QnMove *m, const QnShape *s, const int64_t *from, int64_t from_at,
                  const int64_t *to, int64_t to_at, size_t size, const char *isa);
void qn_move_run(const QnMove *m, int n_threads, const void *from, void *to);

/* rows of so many bytes at steps of so many bytes. */
void qn_move_rows(int n_threads, int64_t rows, size_t bytes, const void *from, size_t from_step,
                  void *to, size_t to_step);
/* Adjacent bytes. */
void qn_move_all(int n_threads, size_t bytes, const void *from, void *to);

#endif
