/* Messages for whoever runs the program. A log is handed down to those who may speak; NULL is a log
 * that says nothing. A message is written whole, so threads do not mix theirs. */
#ifndef QN_BASE_LOG_H
#define QN_BASE_LOG_H

#include "base/compiler.h"

#include <stdio.h>

typedef enum QnLogLevel { QN_LOG_ERROR, QN_LOG_WARN, QN_LOG_INFO, QN_LOG_DEBUG } QnLogLevel;

typedef struct QnLog {
    FILE *out;
    QnLogLevel level; /* the most detailed level that is written */
    bool color;
} QnLog;

/* Colours only where `out` is a terminal, TERM is not "dumb" and NO_COLOR is unset or empty. */
void qn_log_init(QnLog *log, FILE *out, QnLogLevel level);
void qn_log_at(const QnLog *log, QnLogLevel level, const char *fmt, ...) QN_PRINTF(3, 4);

#define qn_log_error(log, ...) qn_log_at((log), QN_LOG_ERROR, __VA_ARGS__)
#define qn_log_warn(log, ...)  qn_log_at((log), QN_LOG_WARN, __VA_ARGS__)
#define qn_log_info(log, ...)  qn_log_at((log), QN_LOG_INFO, __VA_ARGS__)
#define qn_log_debug(log, ...) qn_log_at((log), QN_LOG_DEBUG, __VA_ARGS__)

#endif
