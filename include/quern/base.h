/* Errors, and what every public header needs.
 *
 * Conventions of the whole interface: a function that can fail returns QnStatus, puts its results
 * in out-pointers at its end, and on failure changes nothing that its caller can see. new/free and
 * open/close come in pairs; free(NULL) is fine. Pointers are borrowed unless a parameter is named
 * take_…; text that is handed over is freed by qn_free. The library never exits or aborts. It keeps
 * no global state but each thread's last error: objects that do not share parts may be used by
 * different threads at once, one object by one thread at a time. */
#ifndef QUERN_BASE_H
#define QUERN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QN_API __attribute__((visibility("default")))
#else
#define QN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

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
QN_API const char *qn_status_name(QnStatus code);
/* "shapes do not agree"; never NULL. */
QN_API const char *qn_status_text(QnStatus code);

/* This thread's last error; valid until the next failure in this thread. Never NULL. */
QN_API const QnError *qn_error_last(void);
QN_API void qn_error_clear(void);

/* Frees what the library has handed over; NULL is fine. */
QN_API void qn_free(void *p);

#ifdef __cplusplus
}
#endif

#endif
