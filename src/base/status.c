#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

QnStatus qn_fail_at(QnStatus code, const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char text[QN_ERROR_TEXT_BYTES]; /* fmt's arguments may point into the old record */
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    memcpy(last_error.text, text, sizeof text);
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
    memcpy(last_error.text, text, sizeof text);
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
