/* Shared by pickle.c (the machine, numbers, texts) and pickle_build.c (what is built of them). */
#ifndef QN_IO_PICKLE_IMPL_H
#define QN_IO_PICKLE_IMPL_H

#include "io/pickle.h"

typedef struct QnPickleMachine {
    QnArena *arena;
    const char *name;
    const uint8_t *data;
    size_t size, at, op_at;
    const QnPickleGlobal *globals;
    int n_globals;
    QnPickle **stack;
    int64_t n, cap;
    int64_t *marks; /* heights of the stack */
    int64_t n_marks, cap_marks;
    QnPickle **memo;
    int64_t n_memo, cap_memo;
    bool stopped;
} QnPickleMachine;

/* An error at the operation that runs. */
QnStatus qn_pickle_fail(const QnPickleMachine *m, const char *why);
QnPickle *qn_pickle_make(QnPickleMachine *m, QnPickleKind kind); /* NULL: no memory */
QnStatus qn_pickle_push(QnPickleMachine *m, QnPickle *v);        /* NULL: QN_ENOMEM */
QnStatus qn_pickle_push_text(QnPickleMachine *m, QnPickleKind kind, const void *text, size_t n);
/* The n topmost values, down to the mark; *out points into the stack until the next push. */
QnStatus qn_pickle_pop(QnPickleMachine *m, int64_t n, QnPickle ***out);
/* All values above the mark, and the mark. */
QnStatus qn_pickle_pop_to_mark(QnPickleMachine *m, QnPickle ***out, int64_t *n);
QnStatus qn_pickle_top(QnPickleMachine *m, QnPickle **out);
QnStatus qn_pickle_take_uint(QnPickleMachine *m, int bytes, uint64_t *out);
QnStatus qn_pickle_check_utf8(const QnPickleMachine *m, const char *p, size_t n);

/* Operations; arg as the table in pickle.c has it. */
QnStatus qn_pickle_op_tuple(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_empty(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_append(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_set_items(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_put(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_memoize(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_get(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_global(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_stack_global(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_reduce(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_persistent(QnPickleMachine *m, int arg);
QnStatus qn_pickle_op_build(QnPickleMachine *m, int arg);

#endif
