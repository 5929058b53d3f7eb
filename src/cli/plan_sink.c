#include "cli/plan_sink.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void qn_sink_begin(QnSink *s)
{
    s->n = 0;
    if (s->how != QN_SINK_JSON)
        return;
    qn_json_begin(&s->json, &s->text, 0);
    qn_json_open_object(&s->json);
}

/* In CSV, quotes go around what has a comma or a quote. */
static void put_cell(QnSink *s, const char *text)
{
    if (s->n++)
        qn_str_add(&s->text, ",");
    if (!strpbrk(text, ",\"\n")) {
        qn_str_add(&s->text, text);
        return;
    }
    qn_str_add(&s->text, "\"");
    for (; *text; text++)
        qn_str_add_bytes(&s->text, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    qn_str_add(&s->text, "\"");
}

void qn_sink_text(QnSink *s, const char *name, const char *value)
{
    if (s->how == QN_SINK_JSON)
        qn_json_put_string(&s->json, name, value ? value : "");
    else
        put_cell(s, s->how == QN_SINK_HEAD ? name : value ? value : "");
}

void qn_sink_number(QnSink *s, const char *name, double value)
{
    char text[32] = "";
    if (isfinite(value))
        snprintf(text, sizeof text, "%.6g", value);
    if (s->how == QN_SINK_JSON) /* what is not finite becomes null */
        qn_json_put_double(&s->json, name, value);
    else
        put_cell(s, s->how == QN_SINK_HEAD ? name : text);
}

void qn_sink_known(QnSink *s, const char *name, double value)
{
    qn_sink_number(s, name, value > 0 ? value : NAN);
}

void qn_sink_int(QnSink *s, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (s->how == QN_SINK_JSON)
        qn_json_put_int(&s->json, name, value);
    else
        put_cell(s, s->how == QN_SINK_HEAD ? name : text);
}

void qn_sink_bytes(QnSink *s, const char *name, double value)
{
    if (value >= 0 && value < 9e18)
        qn_sink_int(s, name, (int64_t)ceil(value));
    else
        qn_sink_number(s, name, value);
}

void qn_sink_bool(QnSink *s, const char *name, bool value)
{
    if (s->how == QN_SINK_JSON)
        qn_json_put_bool(&s->json, name, value);
    else
        put_cell(s, s->how == QN_SINK_HEAD ? name : value ? "true" : "false");
}

QnStatus qn_sink_end(QnSink *s)
{
    QnStatus st = s->text.st;
    if (s->how == QN_SINK_JSON) {
        qn_json_close(&s->json);
        st = qn_json_end(&s->json);
    }
    if (st == QN_OK)
        qn_cli_print_json(&s->text);
    qn_str_fini(&s->text);
    return st;
}
