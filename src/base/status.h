/* Errors. A function that can fail returns QnStatus and on failure changes nothing its caller can
 * see. The first cause is kept in a record of the calling thread; qn_fail writes it. What users of
 * the library see of it is in quern/base.h. */
#ifndef QN_BASE_STATUS_H
#define QN_BASE_STATUS_H

#include "base/compiler.h"
#include "quern/base.h"

/* Records an error for this thread, replacing any earlier one, and returns `code`.
 * Never allocates. Text is one line without a full stop; it names the place. Control characters
 * and bytes that are no UTF-8, which names of files and of what stands in them may have, are
 * written as \xNN, so that no error can command a terminal. */
#define qn_fail(code, ...) qn_fail_at((code), __FILE__, __LINE__, __VA_ARGS__)
QnStatus qn_fail_at(QnStatus code, const char *file, int line, const char *fmt, ...)
    QN_PRINTF(4, 5);

/* Puts "prefix: " before the recorded text, so that an outer layer can add its place (file name,
 * recipe line, node). Returns the recorded code. */
QnStatus qn_fail_prefix(const char *fmt, ...) QN_PRINTF(1, 2);

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
