#include "plan/calib.h"

#include "base/file.h"
#include "base/json.h"
#include "plan/residual.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 20, VERSION = 1, PROGRAM_BYTES = 64 << 20 };

/* ---- the time of work ---- */

static bool is_product(const QnWork *w)
{
    return w->k > 0 && w->kind != QN_WORK_ATTENTION;
}

void qn_calib_features(const QnCalib *c, const QnWork *w, double f[QN_CALIB_FEATURES])
{
    double bytes = w->read + w->written;
    f[0] = 1;
    f[1] = w->flops;
    if (is_product(w)) {
        f[2] = w->flops / w->m;
        f[3] = w->flops / w->n;
        f[4] = w->flops / w->k;
        f[5] = bytes;
        return;
    }
    double near = c->cache_bytes / 16, far = c->cache_bytes; /* a core's cache, the shared one */
    f[2] = QN_MIN(bytes, near);
    f[3] = QN_MAX(0, QN_MIN(bytes, far) - near);
    f[4] = QN_MAX(0, bytes - far);
    f[5] = 0;
}

void qn_calib_group_names(const QnWork *w, char names[QN_CALIB_NAMES][QN_CALIB_NAME])
{
    bool product = is_product(w);
    const char *apart = w->kind == QN_WORK_DEPTHWISE ? "/depthwise" : "",
               *op = w->op ? w->op : "other";
    snprintf(names[0], QN_CALIB_NAME, "%s%s", product && w->kernel ? w->kernel : op, apart);
    snprintf(names[1], QN_CALIB_NAME, "%s%s", op, apart);
    snprintf(names[2], QN_CALIB_NAME, "%s", product ? "product" : "other");
}

static const QnCalibGroup *find(const QnCalib *c, const char *name)
{
    for (int i = 0; i < c->n_groups; i++)
        if (!strcmp(c->groups[i].name, name))
            return &c->groups[i];
    return NULL;
}

QnWorkCost qn_calib_work(const QnCalib *c, const QnWork *w)
{
    static const QnCalibGroup none = { .name = "" };
    char names[QN_CALIB_NAMES][QN_CALIB_NAME];
    double f[QN_CALIB_FEATURES];
    const QnCalibGroup *g = NULL;
    qn_calib_group_names(w, names);
    for (int i = 0; !g && i < QN_CALIB_NAMES; i++)
        g = find(c, names[i]);
    if (!g)
        g = &none;
    qn_calib_features(c, w, f);
    QnWorkCost out = { .launch_s = g->c[0] + c->node_s, .compute_s = g->c[1] * f[1] };
    for (int i = 2; i < QN_CALIB_FEATURES; i++)
        *(is_product(w) && i < 5 ? &out.compute_s : &out.memory_s) += g->c[i] * f[i];
    out.seconds = out.launch_s + out.compute_s + out.memory_s;
    out.limit = out.launch_s > out.compute_s && out.launch_s > out.memory_s ? QN_LIMIT_LAUNCH
                : out.compute_s >= out.memory_s                             ? QN_LIMIT_COMPUTE
                                                                            : QN_LIMIT_MEMORY;
    return out;
}

static void add_step(const QnCalib *c, const QnCount *count, const QnCostRequest *r, double times,
                     QnCostResult *out)
{
    for (int64_t i = 0; i < count->n_work; i++) {
        const QnWork *w = &count->work[i];
        if (r->no_update && w->kind == QN_WORK_UPDATE)
            continue;
        QnWorkCost one = qn_calib_work(c, w);
        out->by_limit[one.limit] += times * w->count * one.seconds;
        out->step_s += times * w->count * one.seconds;
    }
    out->step_s += times * c->step_s;
    out->by_limit[QN_LIMIT_LAUNCH] += times * c->step_s;
}

/* By what earlier runs of the same step took here. */
static void correct(const QnCalib *c, const QnCount *count, QnCostResult *out)
{
    QnWorkHash hash = { 0 };
    char device[128], model[24];
    int64_t n;
    if (!c->earlier || !c->device)
        return;
    for (int64_t i = 0; i < count->n_work; i++)
        qn_work_hash_add(&hash, &count->work[i]);
    qn_work_hash_text(&hash, model);
    qn_calib_device_name(c, c->device, device, sizeof device);
    double factor = qn_residual_factor(c->earlier, device, model, "quern", &n);
    if (!n)
        return;
    out->earlier = factor;
    out->n_earlier = n;
    out->step_s *= factor;
    for (int i = 0; i < QN_LIMITS; i++)
        out->by_limit[i] *= factor;
}

QnStatus qn_calib_steps(const QnCount *prompt, const QnCount *count, double times,
                        const QnCostRequest *r, QnCostResult *out)
{
    const QnCalib *c = r->card->calib;
    *out = (QnCostResult){ .peak_flops = c->peak_flops };
    if (r->n_cards > 1)
        return qn_fail(QN_EUNSUPPORTED, "there is one of this machine");
    if (r->numbers != QN_NUMBERS_FP32)
        return qn_fail(QN_EUNSUPPORTED, "this machine was measured in fp32 alone");
    if (r->tier != QN_TIER_QUERN)
        return qn_fail(QN_EUNSUPPORTED, "this machine was measured under quern alone");
    if (prompt)
        add_step(c, prompt, r, 1, out);
    add_step(c, count, r, times, out);
    correct(c, count, out);
    for (int i = 1; i < QN_LIMITS; i++)
        if (out->by_limit[i] > out->by_limit[out->limit])
            out->limit = (QnLimit)i;
    out->low_s = out->step_s * exp(-c->spread);
    out->high_s = out->step_s * exp(c->spread);
    out->deviation = c->spread / 1.2816; /* 80 % of a normal distribution lie within */
    out->mfu =
        (count->flops * times + (prompt ? prompt->flops : 0)) / (out->step_s * c->peak_flops);
    out->busy_s = out->step_s;
    out->reserve_bytes = PROGRAM_BYTES;
    out->memory_bytes = count->weights + count->gradients + count->optimizer + count->activations +
                        count->cache + out->reserve_bytes;
    out->fits = out->memory_bytes <= c->memory_bytes;
    out->power_w = c->watts;
    return QN_OK;
}

void qn_calib_device_name(const QnCalib *c, const QnDevice *d, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s: %s, %d thread%s", d->backend->name, c ? c->cpu : "?",
             d->env.n_threads, d->env.n_threads == 1 ? "" : "s");
}

QnCard qn_calib_card(const QnCalib *c)
{
    return (QnCard){ .name = "this machine",
                     .vendor = "this",
                     .arch = "CPU",
                     .kind = "cpu",
                     .memory = "RAM",
                     .link = "",
                     .notes = c->cpu,
                     .source = "quern plan --calibrate",
                     .units = c->n_threads,
                     .cores = c->n_threads,
                     .memory_gb = c->memory_bytes / 0x1p30,
                     .bandwidth_gbs = 1e-9 * c->bandwidth,
                     .cache_mb = 1e-6 * c->cache_bytes,
                     .fp32 = 1e-12 * c->peak_flops,
                     .tdp_w = c->watts,
                     .cloud_usd = c->usd_per_hour,
                     .calib = c };
}

/* ---- the file ---- */

static void put_groups(QnJsonWriter *w, const QnCalib *c)
{
    qn_json_key(w, "groups");
    qn_json_open_array(w);
    for (int i = 0; i < c->n_groups; i++) {
        const QnCalibGroup *g = &c->groups[i];
        qn_json_open_object(w);
        qn_json_put_string(w, "name", g->name);
        qn_json_put_int(w, "samples", g->samples);
        qn_json_put_double(w, "error", g->error);
        qn_json_key(w, "c");
        qn_json_open_array(w);
        for (int k = 0; k < QN_CALIB_FEATURES; k++)
            qn_json_add_double(w, g->c[k]);
        qn_json_close(w);
        qn_json_close(w);
    }
    qn_json_close(w);
}

static void put_points(QnJsonWriter *w, const QnCalib *c)
{
    qn_json_key(w, "curves");
    qn_json_open_array(w);
    for (int i = 0; i < c->n_points; i++) {
        const QnCalibPoint *p = &c->points[i];
        qn_json_open_object(w);
        qn_json_put_string(w, "op", p->op);
        qn_json_put_double(w, "size", p->size);
        qn_json_put_double(w, "flops", p->flops);
        qn_json_put_double(w, "bytes", p->bytes);
        qn_json_put_double(w, "seconds", p->seconds);
        qn_json_close(w);
    }
    qn_json_close(w);
}

/* The plain numbers, by one table for reading and writing. */
typedef struct Field {
    const char *name;
    size_t offset;
} Field;
static const Field fields[] = {
    { "memory_bytes", offsetof(QnCalib, memory_bytes) },
    { "cache_bytes", offsetof(QnCalib, cache_bytes) },
    { "peak_flops", offsetof(QnCalib, peak_flops) },
    { "bandwidth", offsetof(QnCalib, bandwidth) },
    { "node_s", offsetof(QnCalib, node_s) },
    { "step_s", offsetof(QnCalib, step_s) },
    { "median", offsetof(QnCalib, median) },
    { "spread", offsetof(QnCalib, spread) },
    { "jpeg_s", offsetof(QnCalib, jpeg_s) },
    { "watts", offsetof(QnCalib, watts) },
    { "usd_per_hour", offsetof(QnCalib, usd_per_hour) },
};

static double *at(const QnCalib *c, const Field *f)
{
    return (double *)((char *)(uintptr_t)c + f->offset);
}

QnStatus qn_calib_write(const QnCalib *c, const char *path)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 1);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "version", VERSION);
    qn_json_put_string(&w, "cpu", c->cpu);
    qn_json_put_string(&w, "isa", c->isa);
    qn_json_put_int(&w, "threads", c->n_threads);
    qn_json_put_int(&w, "steps", c->n_steps);
    for (int i = 0; i < QN_COUNT(fields); i++)
        qn_json_put_double(&w, fields[i].name, *at(c, &fields[i]));
    put_groups(&w, c);
    put_points(&w, c);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        st = qn_file_write_atomic(path, qn_str_text(&text), text.n);
    qn_str_fini(&text);
    return st;
}

static QnStatus need_text(const QnJson *o, const char *key, char *out, size_t bytes)
{
    const QnJson *v;
    QN_TRY(qn_json_need(o, key, QN_JSON_STRING, &v));
    snprintf(out, bytes, "%s", v->string);
    return QN_OK;
}

static QnStatus need_number(const QnJson *o, const char *key, double *out)
{
    const QnJson *v;
    QN_TRY(qn_json_need(o, key, QN_JSON_DOUBLE, &v));
    *out = qn_json_double(v);
    return *out >= 0 ? QN_OK : qn_fail(QN_EFORMAT, "%s: expected a number of at least 0", key);
}

static QnStatus read_groups(const QnJson *o, QnCalib *c)
{
    const QnJson *list, *v;
    double samples;
    QN_TRY(qn_json_need(o, "groups", QN_JSON_ARRAY, &list));
    if (list->n > QN_CALIB_GROUPS)
        return qn_fail(QN_EFORMAT, "groups: more than %d", QN_CALIB_GROUPS);
    for (; c->n_groups < list->n; c->n_groups++) {
        QnCalibGroup *g = &c->groups[c->n_groups];
        const QnJson *item = &list->items[c->n_groups];
        QN_TRY(need_text(item, "name", g->name, sizeof g->name));
        QN_TRY(need_number(item, "samples", &samples));
        QN_TRY(need_number(item, "error", &g->error));
        QN_TRY(qn_json_need(item, "c", QN_JSON_ARRAY, &v));
        g->samples = (int64_t)samples;
        if (v->n != QN_CALIB_FEATURES)
            return qn_fail(QN_EFORMAT, "%s: expected %d coefficients", g->name, QN_CALIB_FEATURES);
        for (int k = 0; k < QN_CALIB_FEATURES; k++) {
            const QnJson *n = &v->items[k];
            g->c[k] = n->type == QN_JSON_DOUBLE || n->type == QN_JSON_INT ? qn_json_double(n) : -1;
            if (!(g->c[k] >= 0))
                return qn_fail(QN_EFORMAT, "%s: coefficient %d is no number of at least 0", g->name,
                               k);
        }
    }
    return QN_OK;
}

static QnStatus read_points(const QnJson *o, QnCalib *c)
{
    const QnJson *list;
    QN_TRY(qn_json_need(o, "curves", QN_JSON_ARRAY, &list));
    for (int64_t i = 0; i < list->n && c->n_points < QN_CALIB_POINTS; i++) {
        QnCalibPoint *p = &c->points[c->n_points++];
        QN_TRY(need_text(&list->items[i], "op", p->op, sizeof p->op));
        QN_TRY(need_number(&list->items[i], "size", &p->size));
        QN_TRY(need_number(&list->items[i], "flops", &p->flops));
        QN_TRY(need_number(&list->items[i], "bytes", &p->bytes));
        QN_TRY(need_number(&list->items[i], "seconds", &p->seconds));
    }
    return QN_OK;
}

static QnStatus read_all(const QnJson *o, QnCalib *c)
{
    double version, threads, steps;
    QN_TRY(need_number(o, "version", &version));
    if (version != VERSION)
        return qn_fail(QN_EFORMAT, "of another version of Quern: calibrate anew");
    QN_TRY(need_text(o, "cpu", c->cpu, sizeof c->cpu));
    QN_TRY(need_text(o, "isa", c->isa, sizeof c->isa));
    QN_TRY(need_number(o, "threads", &threads));
    QN_TRY(need_number(o, "steps", &steps));
    c->n_threads = (int)QN_MIN(threads, 1 << 16);
    c->n_steps = (int64_t)QN_MIN(steps, 1e9);
    for (int i = 0; i < QN_COUNT(fields); i++)
        QN_TRY(need_number(o, fields[i].name, at(c, &fields[i])));
    if (!(c->peak_flops > 0 && c->bandwidth > 0 && c->memory_bytes > 0 && c->cache_bytes > 0))
        return qn_fail(QN_EFORMAT, "peak_flops, bandwidth, memory_bytes or cache_bytes is 0");
    QN_TRY(read_groups(o, c));
    return read_points(o, c);
}

QnStatus qn_calib_read(const char *path, QnCalib *out)
{
    char *text = NULL;
    size_t bytes;
    const QnJson *o;
    *out = (QnCalib){ 0 };
    if (!qn_file_exists(path))
        return qn_fail(QN_ENOTFOUND, "this machine has not been measured: run 'quern plan "
                                     "--calibrate' once");
    QnArena *arena = qn_arena_new();
    QnStatus st = arena ? qn_file_read(path, FILE_LIMIT, &text, &bytes) : QN_ENOMEM;
    if (st == QN_OK && (st = qn_json_parse(arena, text, bytes, &o)) == QN_OK)
        st = o->type == QN_JSON_OBJECT ? read_all(o, out)
                                       : qn_fail(QN_EFORMAT, "expected an object");
    if (st != QN_OK && text)
        qn_fail_prefix("%s", path);
    qn_free(text);
    qn_arena_free(arena);
    return st;
}
