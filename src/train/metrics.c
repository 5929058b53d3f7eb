#include "train/metrics.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 30 };

static QnStatus print_record(QnStr *out, const QnMetric *x)
{
    QnJsonWriter w;
    if (x->event) {
        qn_str_add(out, x->event);
        return out->st;
    }
    qn_json_begin(&w, out, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "kind", x->eval ? "eval" : "train");
    qn_json_put_int(&w, "update", x->update);
    qn_json_put_double(&w, "epoch", x->epoch);
    qn_json_put_double(&w, "loss", x->loss);
    if (x->eval)
        qn_json_put_double(&w, "metric", x->value);
    else
        qn_json_put_double(&w, "lr", x->lr);
    qn_json_close(&w);
    QN_TRY(qn_json_end(&w));
    qn_str_add(out, "\n");
    return out->st;
}

static double number(const QnJson *o, const char *key)
{
    const QnJson *v = qn_json_find(o, key);
    bool is = v && (v->type == QN_JSON_INT || v->type == QN_JSON_DOUBLE);
    return is ? qn_json_double(v) : NAN;
}

static QnStatus push(QnMetrics *m, const QnMetric *x)
{
    QN_TRY(QN_GROW(m->items, m->cap, m->n));
    m->items[m->n++] = *x;
    return QN_OK;
}

/* One line; *known false: it is none of ours, or torn. */
static QnStatus parse_line(QnArena *arena, const char *text, size_t n, QnMetric *x, bool *known)
{
    const QnJson *o;
    QnStatus st = qn_json_parse(arena, text, n, &o);
    *known = false;
    if (st != QN_OK)
        return st == QN_EFORMAT ? QN_OK : st;
    const QnJson *kind = qn_json_find(o, "kind"), *update = qn_json_find(o, "update");
    if (!update || update->type != QN_JSON_INT)
        return QN_OK;
    *known = true;
    *x =
        (QnMetric){ .update = update->integer,
                    .epoch = number(o, "epoch"),
                    .loss = number(o, "loss"),
                    .lr = number(o, "lr"),
                    .value = number(o, "metric"),
                    .eval = kind && kind->type == QN_JSON_STRING && !strcmp(kind->string, "eval") };
    if (kind && kind->type == QN_JSON_STRING && !strcmp(kind->string, "precision")) {
        if (!(x->event = qn_alloc(n + 2)))
            return QN_ENOMEM;
        memcpy(x->event, text, n);
        memcpy(x->event + n, "\n", 2);
    }
    return QN_OK;
}

/* Whole lines up to the update; a torn line and what follows it is dropped. */
static QnStatus parse_lines(QnMetrics *m, const char *text, size_t bytes, int64_t update)
{
    QnArena *arena = qn_arena_new();
    QnStatus st = arena ? QN_OK : QN_ENOMEM;
    for (const char *end; st == QN_OK && (end = memchr(text, '\n', bytes));) {
        QnMetric x;
        bool known;
        size_t n = (size_t)(end - text);
        st = parse_line(arena, text, n, &x, &known);
        if (st != QN_OK || !known)
            break;
        /* Events come before the update of that number, all else after as many. */
        bool keep = x.event ? x.update < update : x.update <= update;
        if (keep)
            st = push(m, &x);
        if (!keep || st != QN_OK) {
            qn_free(x.event);
            break;
        }
        text = end + 1;
        bytes -= n + 1;
    }
    qn_arena_free(arena);
    return st;
}

static QnStatus rewrite(const QnMetrics *m)
{
    QnStr text = { 0 };
    QnStatus st = QN_OK;
    for (int64_t i = 0; st == QN_OK && i < m->n; i++)
        st = print_record(&text, &m->items[i]);
    if (st == QN_OK)
        st = qn_file_write_atomic(m->path, qn_str_text(&text), text.n);
    qn_str_fini(&text);
    return st;
}

QnStatus qn_metrics_open(QnMetrics *m, const char *run, int64_t update)
{
    QnStr path = { 0 };
    *m = (QnMetrics){ 0 };
    qn_str_printf(&path, "%s/metrics.jsonl", run);
    QN_TRY(qn_str_take(&path, &m->path));
    QnStatus st = QN_OK;
    if (update > 0 && qn_file_exists(m->path)) {
        char *text;
        size_t bytes;
        st = qn_file_read(m->path, FILE_LIMIT, &text, &bytes);
        if (st == QN_OK) {
            st = parse_lines(m, text, bytes, update);
            qn_free(text);
        }
    }
    if (st == QN_OK)
        st = rewrite(m);
    if (st != QN_OK)
        qn_metrics_close(m);
    return st;
}

void qn_metrics_close(QnMetrics *m)
{
    qn_free(m->path);
    for (int64_t i = 0; i < m->n; i++)
        qn_free(m->items[i].event);
    qn_free(m->items);
    *m = (QnMetrics){ 0 };
}

QnStatus qn_metrics_add(QnMetrics *m, const QnMetric *x)
{
    QnStr line = { 0 };
    QnStatus st = print_record(&line, x);
    if (st == QN_OK)
        st = push(m, x);
    if (st == QN_OK)
        st = qn_file_append(m->path, qn_str_text(&line), line.n);
    qn_str_fini(&line);
    return st;
}

QnStatus qn_metrics_event(QnMetrics *m, int64_t update, const char *line)
{
    QnStr text = { 0 };
    QnMetric x = { .update = update };
    qn_str_add(&text, line);
    QN_TRY(qn_str_take(&text, &x.event));
    QnStatus st = push(m, &x);
    if (st != QN_OK)
        qn_free(x.event);
    return st == QN_OK ? qn_file_append(m->path, line, strlen(line)) : st;
}

QnStatus qn_metrics_chart(const QnMetrics *m, QnChart *chart, QnChartSeries series[2],
                          void **buffer)
{
    double *xs = qn_alloc_array((size_t)m->n * 2 + 1, sizeof *xs);
    if (!xs)
        return QN_ENOMEM;
    double *ys = xs + m->n;
    int64_t n = 0;
    for (int k = 0; k < 2; k++) {
        int64_t begin = n;
        for (int64_t i = 0; i < m->n; i++) {
            if (m->items[i].eval != (k == 1) || m->items[i].event)
                continue;
            xs[n] = (double)m->items[i].update;
            ys[n++] = m->items[i].loss;
        }
        series[k] = (QnChartSeries){ k ? "test" : "train", xs + begin, ys + begin, n - begin };
    }
    *chart = (QnChart){
        .title = "loss", .x_label = "updates", .y_label = "loss", .series = series, .n_series = 2
    };
    *buffer = xs;
    return QN_OK;
}
