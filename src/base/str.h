/* A growable string. Adding is sticky: after a failed allocation further text is dropped and `st`
 * keeps the error, so that a builder checks once at its end. And numbers as people read them. */
#ifndef QN_BASE_STR_H
#define QN_BASE_STR_H

#include "base/status.h"

#include <stdarg.h>

typedef struct QnStr {
    char *s;  /* NUL-terminated; NULL while empty: use qn_str_text */
    size_t n; /* bytes without the NUL */
    size_t cap;
    QnStatus st;
} QnStr; /* all zeros is a valid empty string */

void qn_str_fini(QnStr *str);  /* frees the text and empties the string */
void qn_str_clear(QnStr *str); /* empties it and keeps the room; forgets an error */
void qn_str_add(QnStr *str, const char *text);
void qn_str_add_bytes(QnStr *str, const void *bytes, size_t n);
void qn_str_add_repeat(QnStr *str, const char *text, int64_t times);
void qn_str_printf(QnStr *str, const char *fmt, ...) QN_PRINTF(2, 3);
void qn_str_vprintf(QnStr *str, const char *fmt, va_list args) QN_PRINTF(2, 0);
/* Never NULL; valid until the next change. */
const char *qn_str_text(const QnStr *str);
/* Hands the text over, to be freed by qn_free; the string is empty afterwards. */
QnStatus qn_str_take(QnStr *str, char **text);

/* Columns that UTF-8 text takes in a terminal, one a code point. */
int64_t qn_str_columns(const char *text);

/* Whether a list such as "cse,fuse" has the name; NULL is an empty list. */
bool qn_str_is_listed(const char *list, const char *name);

/* The known word that `word` may be a slip of, or NULL where none is near. */
const char *qn_str_nearest(const char *word, const char *const *known, int n);

/* These fill a buffer of this size and return it. */
enum { QN_STR_NUMBER = 32 };
char *qn_str_bytes(char out[QN_STR_NUMBER], uint64_t bytes); /* "512 B", "1.50 GiB" */
char *qn_str_duration(char out[QN_STR_NUMBER], int64_t ns);  /* "3.20 ms", "12.5 s", "1h02m" */
char *qn_str_si(char out[QN_STR_NUMBER], double x);          /* "0.5", "12.3 k", "4.56 G" */
char *qn_str_unit(char out[QN_STR_NUMBER], double x, const char *unit); /* "48 FLOP", "4.5 MB/s" */
char *qn_str_count(char out[QN_STR_NUMBER], int64_t n);                 /* "1,234,567" */

#endif
