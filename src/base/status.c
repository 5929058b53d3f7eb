#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static _Thread_local QnError last_error;

static const char *const status_names[] = {
#define QN_X(name, text) #name,
    QN_STATUS_MAP(QN_X)
#undef QN_X
};

static const char *const status_texts[] = {
#define QN_X(name, text) text,
    QN_STATUS_MAP(QN_X)
#undef QN_X
};

const char *qn_status_name(QnStatus code)
{
    return (unsigned)code < QN_STATUS_COUNT ? status_names[code] : "?";
}

const char *qn_status_text(QnStatus code)
{
    return (unsigned)code < QN_STATUS_COUNT ? status_texts[code] : "unknown status";
}

/* What strangers wrote stands in errors and errors on terminals: control characters and bytes that
 * are no UTF-8 become \xNN. What no longer fits is left out. */
static void make_printable(const char *from, char to[QN_ERROR_TEXT_BYTES])
{
    size_t n = strlen(from), k = 0;
    while (n > 0) {
        unsigned char c = (unsigned char)*from;
        int length = qn_utf8_length(from, n);
        bool plain = length > 0 && c >= 0x20 && c != 0x7f &&
                     !(c == 0xc2 && (unsigned char)from[1] < 0xa0); /* U+0080 to U+009F */
        length = length ? length : 1;
        if (k + (size_t)length * (plain ? 1 : 4) >= QN_ERROR_TEXT_BYTES)
            break;
        for (int i = 0; i < length; i++)
            if (plain)
                to[k++] = from[i];
            else
                k += (size_t)snprintf(to + k, 5, "\\x%02x", (unsigned char)from[i]);
        from += length;
        n -= (size_t)length;
    }
    to[k] = '\0';
}

QnStatus qn_fail_at(QnStatus code, const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char text[QN_ERROR_TEXT_BYTES]; /* fmt's arguments may point into the old record */
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    make_printable(text, last_error.text);
    last_error.code = code;
    last_error.file = file;
    last_error.line = line;
    return code;
}

QnStatus qn_fail_prefix(const char *fmt, ...)
{
    char text[QN_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %.*s", (int)sizeof text - n - 3,
                 last_error.text);
    make_printable(text, last_error.text);
    return last_error.code;
}

const QnError *qn_error_last(void)
{
    return &last_error;
}

void qn_error_clear(void)
{
    last_error.code = QN_OK;
    last_error.text[0] = '\0';
}

QnStatus qn_error_adopt(const QnError *error)
{
    if (error != &last_error)
        last_error = *error;
    return last_error.code;
}
