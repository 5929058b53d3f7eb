/* Rows that go to JSON, an object a line, or to CSV: written once for both. */
#ifndef QN_CLI_PLAN_SINK_H
#define QN_CLI_PLAN_SINK_H

#include "cli/cli.h"

typedef enum QnSinkHow { QN_SINK_JSON, QN_SINK_HEAD, QN_SINK_CSV } QnSinkHow;

typedef struct QnSink {
    QnSinkHow how; /* HEAD: the row's names are written, not its values */
    QnJsonWriter json;
    QnStr text;
    int n; /* cells so far */
} QnSink;

void qn_sink_begin(QnSink *s);
void qn_sink_text(QnSink *s, const char *name, const char *value); /* NULL: "" */
void qn_sink_number(QnSink *s, const char *name, double value);
void qn_sink_known(QnSink *s, const char *name, double value); /* 0: not known, null or empty */
void qn_sink_bytes(QnSink *s, const char *name, double value); /* whole ones */
void qn_sink_int(QnSink *s, const char *name, int64_t value);
void qn_sink_bool(QnSink *s, const char *name, bool value);
QnStatus qn_sink_end(QnSink *s); /* prints the row */

#endif
