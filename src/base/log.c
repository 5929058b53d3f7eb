#include "base/log.h"
#include "base/str.h"
#include "base/term.h"

#include <stdarg.h>

static const struct {
    const char *prefix, *color;
} levels[] = {
    [QN_LOG_ERROR] = { "error: ", "\033[31m" },
    [QN_LOG_WARN] = { "warning: ", "\033[33m" },
    [QN_LOG_INFO] = { "", "" },
    [QN_LOG_DEBUG] = { "debug: ", "\033[2m" },
};

void qn_log_init(QnLog *log, FILE *out, QnLogLevel level)
{
    *log = (QnLog){ .out = out, .level = level, .color = qn_term_color(out) };
}

void qn_log_at(const QnLog *log, QnLogLevel level, const char *fmt, ...)
{
    if (!log || level > log->level)
        return;
    bool color = log->color && levels[level].color[0];
    QnStr line = { 0 };
    va_list args;
    va_start(args, fmt);
    qn_str_add(&line, color ? levels[level].color : "");
    qn_str_add(&line, levels[level].prefix);
    qn_str_vprintf(&line, fmt, args);
    qn_str_add(&line, color ? "\033[0m\n" : "\n");
    va_end(args);
    if (line.st == QN_OK)
        fputs(line.s, log->out);
    else
        fputs("error: out of memory while writing a message\n", log->out);
    fflush(log->out);
    qn_str_fini(&line);
}
