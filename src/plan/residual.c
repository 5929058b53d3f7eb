#include "plan/residual.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

static bool take_text(const QnJson *o, const char *key, char *out, size_t bytes)
{
    const QnJson *v = qn_json_find(o, key);
    if (!v || v->type != QN_JSON_STRING || (size_t)v->n >= bytes)
        return false;
    snprintf(out, bytes, "%s", v->string);
    return true;
}

static bool take_number(const QnJson *o, const char *key, double *out)
{
    const QnJson *v = qn_json_find(o, key);
    if (!v || (v->type != QN_JSON_DOUBLE && v->type != QN_JSON_INT))
        return false;
    *out = qn_json_double(v);
    return *out > 0;
}

static bool parse_line(QnArena *arena, const char *line, size_t n, QnResidual *r)
{
    const QnJson *o;
    double time;
    *r = (QnResidual){ 0 };
    if (qn_json_parse(arena, line, n, &o) != QN_OK)
        return false;
    bool ok = take_text(o, "device", r->device, sizeof r->device) &&
              take_text(o, "model", r->model, sizeof r->model) &&
              take_text(o, "name", r->name, sizeof r->name) &&
              take_text(o, "stack", r->stack, sizeof r->stack) &&
              take_number(o, "predicted_s", &r->predicted_s) &&
              take_number(o, "measured_s", &r->measured_s) && take_number(o, "time", &time);
    r->time = ok ? (int64_t)fmin(time, 1e15) : 0;
    return ok;
}

static QnStatus parse_all(QnArena *arena, const char *text, QnResiduals *out)
{
    for (size_t n; *text; text += n, text += *text == '\n') {
        QnResidual r;
        n = strcspn(text, "\n");
        if (!n)
            continue;
        if (!parse_line(arena, text, n, &r)) {
            out->n_corrupt++;
            continue;
        }
        QN_TRY(QN_GROW(out->items, out->cap, out->n));
        out->items[out->n++] = r;
    }
    return QN_OK;
}

QnStatus qn_residuals_read(const char *path, QnResiduals *out)
{
    char *text = NULL;
    size_t bytes;
    *out = (QnResiduals){ 0 };
    if (!qn_file_exists(path))
        return QN_OK;
    QnArena *arena = qn_arena_new();
    QnStatus st = arena ? qn_file_read(path, 64 * QN_RESIDUAL_LIMIT, &text, &bytes) : QN_ENOMEM;
    if (st == QN_OK)
        st = parse_all(arena, text, out);
    if (st != QN_OK)
        qn_residuals_fini(out);
    qn_free(text);
    qn_arena_free(arena);
    return st;
}

void qn_residuals_fini(QnResiduals *r)
{
    qn_free(r->items);
    *r = (QnResiduals){ 0 };
}

/* ---- writing ---- */

/* Opens the file that has the name, alone: another process may have put a shorter one in its place
 * between our opening and locking it. -1: errno says why. */
static int open_locked(const char *path)
{
    for (int i = 0; i < 100; i++) {
        struct stat ours, there;
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;
        bool locked = flock(fd, LOCK_EX) == 0; /* a file system without locks does without */
        if (!locked || (fstat(fd, &ours) == 0 && stat(path, &there) == 0 &&
                        ours.st_ino == there.st_ino && ours.st_dev == there.st_dev))
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

/* Keeps the newer half, from the beginning of a line on. The lock is held. */
static QnStatus shorten(const char *path)
{
    char *text;
    size_t bytes;
    QN_TRY(qn_file_read(path, 64 * QN_RESIDUAL_LIMIT, &text, &bytes));
    const char *from = text + bytes - QN_MIN(bytes, QN_RESIDUAL_LIMIT / 2);
    from += strcspn(from, "\n");
    from += *from == '\n';
    QnStatus st = qn_file_write_atomic(path, from, bytes - (size_t)(from - text));
    qn_free(text);
    return st;
}

static QnStatus make_line(const QnResidual *r, QnStr *line)
{
    QnJsonWriter w;
    qn_json_begin(&w, line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "device", r->device);
    qn_json_put_string(&w, "model", r->model);
    qn_json_put_string(&w, "name", r->name);
    qn_json_put_string(&w, "stack", r->stack);
    qn_json_put_double(&w, "predicted_s", r->predicted_s);
    qn_json_put_double(&w, "measured_s", r->measured_s);
    qn_json_put_int(&w, "time", r->time);
    qn_json_close(&w);
    QN_TRY(qn_json_end(&w));
    qn_str_add(line, "\n");
    return line->st;
}

QnStatus qn_residual_append(const char *path, const QnResidual *r)
{
    QnStr line = { 0 };
    struct stat info;
    QnStatus st = make_line(r, &line);
    int fd = st == QN_OK ? open_locked(path) : -1;
    if (st == QN_OK && (fd < 0 || write(fd, qn_str_text(&line), line.n) != (ssize_t)line.n))
        st = qn_fail(QN_EIO, "%s: cannot write: %s", path, strerror(errno));
    if (st == QN_OK && fstat(fd, &info) == 0 && info.st_size > QN_RESIDUAL_LIMIT)
        st = shorten(path);
    if (fd >= 0)
        close(fd);
    qn_str_fini(&line);
    return st;
}

/* ---- use ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double qn_residual_factor(const QnResiduals *r, const char *device, const char *model,
                          const char *stack, int64_t *n)
{
    double logs[QN_RESIDUALS];
    int k = 0;
    for (int64_t i = r->n - 1; i >= 0 && k < QN_RESIDUALS; i--) {
        const QnResidual *x = &r->items[i];
        if (!strcmp(x->device, device) && !strcmp(x->model, model) && !strcmp(x->stack, stack))
            logs[k++] = log(x->measured_s / x->predicted_s);
    }
    *n = k;
    if (!k)
        return 1;
    qsort(logs, (size_t)k, sizeof *logs, by_value);
    double median = (logs[(k - 1) / 2] + logs[k / 2]) / 2;
    return exp(median * k / (k + 2.0));
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h ^= x;
    h *= UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

/* To nine digits: what is drawn through two batches is rounded. */
static uint64_t digits(double x)
{
    char text[32];
    uint64_t h = 0;
    snprintf(text, sizeof text, "%.9g", x);
    for (const char *p = text; *p; p++)
        h = mix(h, (unsigned char)*p);
    return h;
}

void qn_work_hash_add(QnWorkHash *h, const QnWork *w)
{
    uint64_t one = (uint64_t)w->kind + 1;
    for (const char *p = w->op ? w->op : ""; *p; p++)
        one = mix(one, (unsigned char)*p);
    const double numbers[] = { w->flops, w->read, w->written, w->m, w->n, w->k, w->groups };
    for (int i = 0; i < QN_COUNT(numbers); i++)
        one = mix(one, digits(numbers[i]));
    h->sum += one * (uint64_t)w->count; /* the order does not matter, the number does */
}

void qn_work_hash_text(const QnWorkHash *h, char out[24])
{
    snprintf(out, 24, "%016llx", (unsigned long long)h->sum);
}
