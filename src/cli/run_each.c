/* A model run for each row of its inputs, with states carried from run to run: streams. */
#include "cli/run_each.h"

#include "cli/model_values.h"

#include "base/clock.h"
#include "base/file.h"
#include "io/npy.h"
#include "onnx/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct Input {
    const char *name;
    QnNpy npy;
    bool is_each;
    int64_t feeds_from; /* output that it takes after the first run; -1: none */
    void *carried;      /* a copy of that output */
    QnType type;        /* of one run */
} Input;

typedef struct Rows { /* an output of all runs, one after another */
    QnType type;      /* of one run */
    char *data;
    size_t bytes; /* of a run */
} Rows;

typedef struct Each {
    QnModel *model;
    Input in[MOST];
    int n_in;
    Rows out[MOST];
    int n_out;
    int64_t rows; /* -1: no input has been cut into rows yet */
} Each;

static QnStatus find_input(Each *e, const char *name, size_t n, Input **out)
{
    for (int i = 0; i < e->n_in; i++)
        if (strlen(e->in[i].name) == n && !strncmp(e->in[i].name, name, n)) {
            *out = &e->in[i];
            return QN_OK;
        }
    return qn_fail(QN_EUSAGE, "no --input gives '%.*s'", (int)QN_MIN(n, 100), name);
}

static QnStatus read_inputs(Each *e, const QnArgs *a)
{
    QN_TRY(a->n_many ? qn_cli_check_once(a, a->many_of[0]) : QN_OK);
    for (int i = 0; i < a->n_many; i++) {
        const char *path = strchr(a->many[i], '=') + 1, *name = NULL;
        size_t n = (size_t)(path - 1 - a->many[i]);
        for (int64_t k = 0; (name = qn_model_input_name(e->model, k)); k++)
            if (strlen(name) == n && !strncmp(name, a->many[i], n))
                break;
        if (!name || e->n_in == MOST)
            return qn_fail(QN_EUSAGE, "the model has no input '%.*s'", (int)QN_MIN(n, 100),
                           a->many[i]);
        Input *in = &e->in[e->n_in];
        QN_TRY(qn_npy_read(path, &in->npy));
        e->n_in++;
        in->name = name;
        in->feeds_from = -1;
        in->type =
            (QnType){ .dtype = in->npy.dtype, .shape = qn_shape_make(in->npy.rank, in->npy.dims) };
    }
    return QN_OK;
}

/* "a,b": inputs whose first axis is the runs. */
static QnStatus mark_each(Each *e, const char *list)
{
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
        Input *in = NULL;
        QN_TRY(find_input(e, p, strcspn(p, ","), &in));
        if (in->npy.rank < 1 || (e->rows >= 0 && e->rows != in->npy.dims[0]))
            return qn_fail(QN_ESHAPE, "--each: input '%s' has not as many rows as the others",
                           in->name);
        e->rows = in->npy.dims[0];
        in->is_each = true;
        in->type.shape = qn_shape_make(in->npy.rank - 1, in->npy.dims + 1);
    }
    return e->rows > 0 ? QN_OK : qn_fail(QN_EUSAGE, "--each names no input with rows");
}

/* "input=output,…": what is carried on. */
static QnStatus mark_feeds(Each *e, const char *list)
{
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
        Input *in = NULL;
        size_t len = strcspn(p, ","), n = strcspn(p, "=");
        if (n >= len)
            return qn_fail(QN_EUSAGE, "--feed: expected INPUT=OUTPUT, found '%.*s'", (int)len, p);
        QN_TRY(find_input(e, p, n, &in));
        const char *name;
        for (int64_t k = 0; (name = qn_model_output_name(e->model, k)); k++)
            if (strlen(name) == len - n - 1 && !strncmp(name, p + n + 1, len - n - 1))
                in->feeds_from = k;
        if (in->feeds_from < 0)
            return qn_fail(QN_EUSAGE, "--feed: the model has no output '%.*s'", (int)(len - n - 1),
                           p + n + 1);
        in->carried = qn_alloc((size_t)qn_type_bytes(&in->type) + 1);
        QN_TRY(in->carried ? QN_OK : QN_ENOMEM);
    }
    return QN_OK;
}

static QnStatus set_inputs(Each *e, int64_t row)
{
    for (int i = 0; i < e->n_in; i++) {
        const Input *in = &e->in[i];
        const char *data = in->npy.data;
        if (in->is_each)
            data += (size_t)row * (size_t)qn_type_bytes(&in->type);
        if (in->carried && row > 0)
            data = in->carried;
        QN_TRY(qn_model_set(e->model, in->name, &in->type, data));
    }
    return QN_OK;
}

static QnStatus keep_outputs(Each *e, int64_t row)
{
    for (int k = 0; k < e->n_out; k++) {
        Rows *r = &e->out[k];
        QnType type;
        const void *data;
        QN_TRY(qn_model_get(e->model, qn_model_output_name(e->model, k), &type, &data));
        type.layout = QN_LAYOUT_PLAIN;
        if (row == 0) {
            r->type = type;
            r->bytes = (size_t)qn_type_bytes(&type);
            r->data = qn_alloc_array((size_t)e->rows, r->bytes + 1);
            QN_TRY(r->data ? QN_OK : QN_ENOMEM);
        }
        if (!qn_type_is_equal(&type, &r->type))
            return qn_fail(QN_ESHAPE, "output '%s' has another shape in run %lld",
                           qn_model_output_name(e->model, k), (long long)row);
        memcpy(r->data + (size_t)row * r->bytes, data, r->bytes);
    }
    for (int i = 0; i < e->n_in; i++) {
        Input *in = &e->in[i];
        if (!in->carried)
            continue;
        const Rows *r = &e->out[in->feeds_from];
        if (!qn_type_is_equal(&r->type, &in->type))
            return qn_fail(QN_ESHAPE, "--feed: output '%s' is not of the type of input '%s'",
                           qn_model_output_name(e->model, in->feeds_from), in->name);
        memcpy(in->carried, r->data + (size_t)row * r->bytes, r->bytes);
    }
    return QN_OK;
}

static QnStatus write_outputs(const Each *e, const char *folder)
{
    QN_TRY(qn_file_make_dirs(folder));
    for (int k = 0; k < e->n_out; k++) {
        char path[4096];
        const Rows *r = &e->out[k];
        int64_t dims[QN_MAX_RANK + 1] = { e->rows };
        if (r->type.shape.rank >= QN_NPY_MAX_RANK)
            return qn_fail(QN_EUNSUPPORTED, "output '%s' has too many dims to be stacked",
                           qn_model_output_name(e->model, k));
        memcpy(dims + 1, r->type.shape.dim, (size_t)r->type.shape.rank * sizeof dims[0]);
        QN_TRY(qn_cli_output_path(folder, qn_model_output_name(e->model, k), -1, "npy", path,
                                  sizeof path));
        QN_TRY(qn_npy_write(path, r->type.dtype, 1 + r->type.shape.rank, dims, r->data));
    }
    return QN_OK;
}

static QnStatus print(const QnArgs *a, const Each *e, double seconds)
{
    if (!a->json) {
        char time[QN_STR_NUMBER];
        printf("%lld runs in %.3f s, %s each\n", (long long)e->rows, seconds,
               qn_str_duration(time, (int64_t)(seconds * 1e9 / (double)e->rows)));
        return QN_OK;
    }
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "runs", e->rows);
    qn_json_put_double(&w, "seconds", seconds);
    qn_json_put_int(&w, "plans", qn_model_plan_count(e->model));
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static QnStatus run_rows(const QnArgs *a, Each *e, const QnRunEach *o)
{
    QN_TRY(read_inputs(e, a));
    QN_TRY(mark_each(e, o->each));
    QN_TRY(mark_feeds(e, o->feed));
    while (qn_model_output_name(e->model, e->n_out) && e->n_out < MOST)
        e->n_out++;
    int64_t start = qn_clock_ns();
    for (int64_t row = 0; row < e->rows; row++) {
        QN_TRY(set_inputs(e, row));
        if (qn_model_run(e->model) != QN_OK)
            return qn_fail_prefix("run %lld", (long long)row);
        QN_TRY(keep_outputs(e, row));
    }
    double seconds = (double)(qn_clock_ns() - start) * 1e-9;
    if (o->output)
        QN_TRY(write_outputs(e, o->output));
    return print(a, e, seconds);
}

QnStatus qn_run_each(const QnArgs *a, QnDevice *d, const QnRunEach *o)
{
    Each *e = qn_alloc(sizeof *e);
    if (!e)
        return QN_ENOMEM;
    e->rows = -1;
    QnStatus st = qn_model_open_with(a->positional[0], d,
                                     &(QnModelOptions){ .choices = o->choices }, &e->model);
    if (st == QN_OK)
        st = run_rows(a, e, o);
    for (int i = 0; i < e->n_in; i++) {
        qn_npy_fini(&e->in[i].npy);
        qn_free(e->in[i].carried);
    }
    for (int k = 0; k < e->n_out; k++)
        qn_free(e->out[k].data);
    qn_model_close(e->model);
    qn_free(e);
    return st;
}
