/* The table, and the same as JSON. */
#include "gpu.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

Result bench_result(const char *part, const char *name)
{
    Result r = { .part = part, .share = NAN, .first_s = NAN };
    snprintf(r.name, sizeof r.name, "%s", name);
    return r;
}

bool bench_wants(const Bench *b, const char *name)
{
    double s = (double)(qn_clock_ns() - b->begin_ns) * 1e-9;
    return (!b->o.only || strstr(name, b->o.only)) && (b->o.limit_s == 0 || s < b->o.limit_s);
}

void bench_heading(const char *part)
{
    printf("\n%-48s %14s %10s %7s  %s\n", part, "rate", "time", "share", "");
}

double bench_peak(const Bench *b)
{
    return b->o.peak > 0 ? b->o.peak : b->product[!b->o.fp32];
}

static void print_result(const Result *r)
{
    char rate[QN_STR_NUMBER] = "-", time[QN_STR_NUMBER] = "-", share[16] = "";
    if (r->failed) {
        printf("%-48s failed: %s\n", r->name, r->note);
        return;
    }
    if (r->rate > 0)
        qn_str_unit(rate, r->rate, r->unit);
    if (r->ns > 0)
        qn_str_duration(time, (int64_t)r->ns);
    if (!isnan(r->share))
        snprintf(share, sizeof share, "%.0f %%", r->share * 100);
    printf("%-48s %14s %10s %7s  %s%s%s\n", r->name, rate, time, share, r->note,
           r->goal[0] ? "; goal: " : "", r->goal);
}

QnStatus bench_report(Bench *b, const Result *r)
{
    Result kept = *r;
    if (b->device->backend->only_counts)
        kept.share = NAN; /* times mean nothing */
    print_result(&kept);
    fflush(stdout);
    b->n_failed += r->failed;
    QN_TRY(QN_GROW(b->results, b->cap, b->n));
    b->results[b->n++] = kept;
    return QN_OK;
}

QnStatus bench_report_failure(Bench *b, const char *part, const char *name)
{
    Result r = bench_result(part, name);
    r.failed = true;
    snprintf(r.note, sizeof r.note, "%.190s", qn_error_last()->text);
    return bench_report(b, &r);
}

static void put_result(QnJsonWriter *w, const Result *r)
{
    qn_json_open_object(w);
    qn_json_put_string(w, "name", r->name);
    qn_json_put_string(w, "part", r->part);
    qn_json_put_bool(w, "failed", r->failed);
    qn_json_put_double(w, "rate", r->rate);
    qn_json_put_string(w, "unit", r->unit ? r->unit : "");
    qn_json_put_double(w, "ns", r->ns);
    qn_json_put_double(w, "share", r->share);
    qn_json_put_double(w, "first_s", r->first_s);
    qn_json_put_double(w, "flops", r->flops);
    qn_json_put_int(w, "params", r->params);
    qn_json_put_string(w, "note", r->note);
    qn_json_put_string(w, "goal", r->goal);
    qn_json_close(w);
}

QnStatus bench_write_json(const Bench *b, const char *path)
{
    QnStr s = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &s, 1);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "device", b->o.device);
    qn_json_put_bool(&w, "quick", b->o.quick);
    qn_json_put_string(&w, "precision", b->o.fp32 ? "fp32" : "bf16");
    qn_json_put_bool(&w, "computes", !b->device->backend->only_counts);
    qn_json_put_double(&w, "peak", bench_peak(b));
    qn_json_key(&w, "rows");
    qn_json_open_array(&w);
    for (int64_t i = 0; i < b->n; i++)
        put_result(&w, &b->results[i]);
    qn_json_close(&w);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        st = qn_file_write_atomic(path, qn_str_text(&s), s.n);
    qn_str_fini(&s);
    return st;
}
