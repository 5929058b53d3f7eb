/* Errors. A function that can fail returns QnStatus and on failure changes nothing its caller can
 * see. The first cause is kept in a record of the calling thread; qn_fail writes it. */
#ifndef QN_BASE_STATUS_H
#define QN_BASE_STATUS_H

#include "base/compiler.h"

#define QN_STATUS_MAP(X)                                                                           \
    X(OK, "success")                                                                               \
    X(EARG, "bad argument")                                                                        \
    X(ESHAPE, "shapes do not agree")                                                               \
    X(EDTYPE, "data type not supported")                                                           \
    X(ENOMEM, "out of memory")                                                                     \
    X(EIO, "input or output failed")                                                               \
    X(EFORMAT, "malformed file")                                                                   \
    X(EUSAGE, "bad usage")                                                                         \
    X(ENOTFOUND, "not found")                                                                      \
    X(EUNSUPPORTED, "not supported")                                                               \
    X(EGRAPH, "invalid graph")                                                                     \
    X(ENUMERIC, "not a finite number")                                                             \
    X(EDEVICE, "device failed")                                                                    \
    X(ECANCELLED, "cancelled")                                                                     \
    X(EINTERNAL, "internal error")

typedef enum QnStatus {
#define QN_X(name, text) QN_##name,
    QN_STATUS_MAP(QN_X)
#undef QN_X
        QN_STATUS_COUNT
} QnStatus;

#define QN_ERROR_TEXT_BYTES 1024

typedef struct QnError {
    QnStatus code;    /* QN_OK: no error recorded */
    const char *file; /* source file and line of the qn_fail, static storage */
    int line;
    char text[QN_ERROR_TEXT_BYTES]; /* what went wrong, where in the user's input, what to change */
} QnError;

/* "ESHAPE"; never NULL. */
const char *qn_status_name(QnStatus code);
/* "shapes do not agree"; never NULL. */
const char *qn_status_text(QnStatus code);

/* Records an error for this thread, replacing any earlier one, and returns `code`.
 * Never allocates. Text is one line without a full stop; it names the place. */
#define qn_fail(code, ...) qn_fail_at((code), __FILE__, __LINE__, __VA_ARGS__)
QnStatus qn_fail_at(QnStatus code, const char *file, int line, const char *fmt, ...)
    QN_PRINTF(4, 5);

/* Puts "prefix: " before the recorded text, so that an outer layer can add its place (file name,
 * recipe line, node). Returns the recorded code. */
QnStatus qn_fail_prefix(const char *fmt, ...) QN_PRINTF(1, 2);

/* This thread's last error; valid until the next failure in this thread. Never NULL. */
const QnError *qn_error_last(void);
void qn_error_clear(void);
/* Copies an error recorded by another thread into this one; returns its code. */
QnStatus qn_error_adopt(const QnError *error);

#define QN_TRY(call)                                                                               \
    do {                                                                                           \
        QnStatus st_ = (call);                                                                     \
        if (QN_UNLIKELY(st_ != QN_OK))                                                             \
            return st_;                                                                            \
    } while (0)

/* As QN_TRY, for functions with a `done:` label and a local `QnStatus st`. */
#define QN_TRY_DONE(call)                                                                          \
    do {                                                                                           \
        st = (call);                                                                               \
        if (QN_UNLIKELY(st != QN_OK))                                                              \
            goto done;                                                                             \
    } while (0)

#endif
