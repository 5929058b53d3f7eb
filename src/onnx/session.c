/* A model that is run many times: quern/onnx.h. */
#include "onnx/session.h"

#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/tune.h"

#include <string.h>

enum { SMALL_MOST = 16 }; /* elements of an integer input that a plan may be compiled for */

/* A compiled graph, and for which inputs. */
typedef struct Entry {
    QnTensor *in; /* of each input; data NULL: any elements of the type */
    QnGraph *graph;
    QnPlan *plan;
    struct Entry *next;
} Entry;

struct QnModel {
    QnOnnxModel *file;
    QnDevice *device;
    QnModelOptions options;
    QnChoices *choices; /* that options.choices may be */
    int64_t n_in;
    const char **in_name;
    int64_t *in_index;        /* among the graph's inputs */
    QnTensor *in;             /* as set; data NULL: not set */
    Entry *entries, *current; /* current NULL: the last run was piece by piece */
    bool is_dynamic;          /* does not compile whatever its inputs are */
    int64_t n_entries;
    QnArena *run_arena; /* of a run piece by piece */
    QnItem **run_out;
    bool has_run;
};

/* ---- opening --------------------------------------------------------------------------------- */

static QnStatus list_inputs(QnModel *m)
{
    const QnOnnxGraph *g = m->file->graph;
    size_t n = (size_t)g->n_inputs + 1;
    m->in_name = qn_alloc_array(n, sizeof *m->in_name);
    m->in_index = qn_alloc_array(n, sizeof *m->in_index);
    m->in = qn_alloc_array(n, sizeof *m->in);
    if (!m->in_name || !m->in_index || !m->in)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        if (qn_onnx_find_init(g, g->input[i].name))
            continue;
        m->in_name[m->n_in] = g->input[i].name;
        m->in_index[m->n_in++] = i;
    }
    return QN_OK;
}

QnStatus qn_model_open_with(const char *path, QnDevice *d, const QnModelOptions *o, QnModel **out)
{
    if (!path || !d)
        return qn_fail(QN_EARG, "a model needs a path and a device");
    QnModel *m = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    m->device = d;
    m->options = *o;
    QnStatus st = qn_onnx_read(path, &m->file);
    if (st == QN_OK)
        st = list_inputs(m);
    if (st != QN_OK)
        qn_model_close(m);
    else
        *out = m;
    return st;
}

QnStatus qn_model_open(const char *path, QnDevice *d, QnModel **out)
{
    return qn_model_open_with(path, d, &(QnModelOptions){ 0 }, out);
}

QnStatus qn_model_load_choices(QnModel *m, const char *path)
{
    QnChoices *c;
    if (m->entries)
        return qn_fail(QN_EARG, "%s: choices of kernels are loaded before the first run",
                       m->file->path);
    QN_TRY(qn_choices_read(path, &c));
    qn_choices_free(m->choices);
    m->options.choices = m->choices = c;
    return QN_OK;
}

const QnOnnxModel *qn_model_file(const QnModel *m)
{
    return m->file;
}

const QnPlan *qn_model_plan(const QnModel *m)
{
    return m->current ? m->current->plan : NULL;
}

QnStatus qn_model_input_type_with(const QnModel *m, int64_t i, const QnOnnxImportOptions *o,
                                  QnType *out)
{
    if (i < 0 || i >= m->n_in)
        return qn_fail(QN_EARG, "%s has %lld inputs that have to be set, there is no number %lld",
                       m->file->path, (long long)m->n_in, (long long)i);
    return qn_onnx_input_type(m->file, m->in_index[i], o, out);
}

QnStatus qn_model_input_type(const QnModel *m, int64_t i, int64_t batch, QnType *out)
{
    return qn_model_input_type_with(m, i, &(QnOnnxImportOptions){ .batch = batch }, out);
}

static void free_entry(Entry *e)
{
    qn_plan_free(e->plan);
    qn_graph_free(e->graph);
    for (QnTensor *t = e->in; t && t->data != e; t++) /* the last one's data is the entry itself */
        qn_free((void *)(uintptr_t)t->data);
    qn_free(e->in);
    qn_free(e);
}

void qn_model_close(QnModel *m)
{
    if (!m)
        return;
    while (m->entries) {
        Entry *e = m->entries;
        m->entries = e->next;
        free_entry(e);
    }
    qn_arena_free(m->run_arena);
    qn_choices_free(m->choices);
    qn_onnx_free(m->file);
    qn_free(m->in_name);
    qn_free(m->in_index);
    qn_free(m->in);
    qn_free(m);
}

const char *qn_model_input_name(const QnModel *m, int64_t i)
{
    return i >= 0 && i < m->n_in ? m->in_name[i] : NULL;
}

const char *qn_model_output_name(const QnModel *m, int64_t i)
{
    const QnOnnxGraph *g = m->file->graph;
    return i >= 0 && i < g->n_outputs ? g->output[i].name : NULL;
}

int64_t qn_model_plan_count(const QnModel *m)
{
    return m->n_entries;
}

QnStatus qn_model_set(QnModel *m, const char *name, const QnType *type, const void *data)
{
    for (int64_t i = 0; i < m->n_in; i++) {
        if (strcmp(m->in_name[i], name))
            continue;
        QnTensor given = { .type = *type, .data = data ? data : "" };
        if (qn_type_bytes(type) < 0)
            return qn_fail(QN_EARG, "input '%s': the shape is not concrete", name);
        if (qn_onnx_check_tensor(&m->file->graph->input[m->in_index[i]], &given) != QN_OK)
            return qn_fail_prefix("%s", m->file->path);
        m->in[i] = given;
        return QN_OK;
    }
    return qn_fail(QN_ENOTFOUND, "%s has no input '%s'", m->file->path, name);
}

/* ---- compiling ------------------------------------------------------------------------------- */

static bool is_small(const QnTensor *t)
{
    bool whole = qn_dtype_is_int(t->type.dtype) || t->type.dtype == QN_DTYPE_BOOL;
    return whole && qn_shape_count(&t->type.shape) <= SMALL_MOST;
}

static bool fits(const QnModel *m, const Entry *e)
{
    for (int64_t i = 0; i < m->n_in; i++) {
        const QnTensor *a = &m->in[i], *b = &e->in[i];
        if (!qn_type_is_equal(&a->type, &b->type) ||
            (b->data && memcmp(a->data, b->data, (size_t)qn_type_bytes(&b->type))))
            return false;
    }
    return true;
}

/* The inputs as the importer takes them; `small`: of small integers the elements too. */
static QnStatus describe(const QnModel *m, Entry *e, bool small, const QnTensor **given)
{
    e->in = qn_alloc_array((size_t)m->n_in + 1, sizeof *e->in);
    if (!e->in)
        return QN_ENOMEM;
    e->in[m->n_in].data = e;
    for (int64_t i = 0; i < m->n_in; i++) {
        e->in[i].type = m->in[i].type;
        given[m->in_index[i]] = &e->in[i];
        if (!small || !is_small(&m->in[i]))
            continue;
        size_t bytes = (size_t)qn_type_bytes(&m->in[i].type);
        void *copy = qn_alloc(bytes + 1);
        if (!copy)
            return QN_ENOMEM;
        memcpy(copy, m->in[i].data, bytes);
        e->in[i].data = copy;
    }
    return QN_OK;
}

static QnStatus compile(QnModel *m, bool small, Entry **out)
{
    Entry *e = qn_alloc(sizeof *e);
    const QnTensor **given = qn_alloc_array((size_t)m->file->graph->n_inputs + 1, sizeof *given);
    QnStatus st = e && given ? describe(m, e, small, given) : QN_ENOMEM;
    QnPipelineOptions o = qn_device_passes(m->device);
    o.keep_inputs = true;
    if (st == QN_OK)
        st = qn_onnx_import(m->file, m->device, &(QnOnnxImportOptions){ .given = given }, &e->graph,
                            NULL);
    if (st == QN_OK)
        st = qn_pipeline_run(e->graph, &o);
    if (st == QN_OK)
        st = qn_plan_new(
            e->graph, m->device, NULL,
            &(QnPlanOptions){ .profile = m->options.profile, .choices = m->options.choices },
            &e->plan);
    qn_free(given);
    if (st != QN_OK && e)
        free_entry(e);
    else
        *out = e;
    return st;
}

static QnStatus find_plan(QnModel *m)
{
    m->current = NULL;
    for (Entry *e = m->entries; e; e = e->next)
        if (fits(m, e)) {
            m->current = e;
            return QN_OK;
        }
    if (m->is_dynamic)
        return QN_OK;
    Entry *e = NULL;
    QnStatus st = compile(m, false, &e);
    if (st == QN_EUNSUPPORTED)
        st = compile(m, true, &e);
    if (st == QN_EUNSUPPORTED) { /* a run says what is not supported, if that is the reason */
        m->is_dynamic = true;
        return QN_OK;
    }
    QN_TRY(st);
    e->next = m->entries;
    m->entries = m->current = e;
    m->n_entries++;
    return QN_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static QnStatus run_plan(QnModel *m)
{
    const Entry *e = m->current;
    for (int64_t i = 0; i < m->n_in; i++) {
        size_t bytes = (size_t)qn_type_bytes(&m->in[i].type);
        if (!e->in[i].data && bytes)
            QN_TRY(qn_plan_write(e->plan, m->in_name[i], m->in[i].data, bytes));
    }
    return qn_plan_run(e->plan);
}

static QnStatus run_pieces(QnModel *m)
{
    const QnOnnxGraph *g = m->file->graph;
    qn_arena_free(m->run_arena);
    m->run_arena = qn_arena_new();
    if (!m->run_arena)
        return QN_ENOMEM;
    QnItem **in = qn_arena_array(m->run_arena, (size_t)g->n_inputs + 1, sizeof *in);
    m->run_out = qn_arena_array(m->run_arena, (size_t)g->n_outputs + 1, sizeof *m->run_out);
    if (!in || !m->run_out)
        return QN_ENOMEM;
    for (int64_t i = 0; i < m->n_in; i++) {
        QnItem *item = qn_arena_alloc(m->run_arena, sizeof *item);
        QnTensor *t = qn_arena_copy(m->run_arena, &m->in[i], sizeof *t);
        if (!item || !t)
            return QN_ENOMEM;
        *item = (QnItem){ .name = m->in_name[i], .known = t, .epoch = -1 };
        in[m->in_index[i]] = item;
    }
    QnOnnxRunOptions o = { .choices = m->options.choices };
    return qn_onnx_run_with(m->file, m->device, in, m->run_arena, m->run_out, NULL, &o);
}

QnStatus qn_model_run(QnModel *m)
{
    m->has_run = false;
    for (int64_t i = 0; i < m->n_in; i++)
        if (!m->in[i].data)
            return qn_fail(QN_EARG, "%s: input '%s' is not set", m->file->path, m->in_name[i]);
    QN_TRY(find_plan(m));
    QN_TRY(m->current ? run_plan(m) : run_pieces(m));
    m->has_run = true;
    return QN_OK;
}

QnStatus qn_model_get(const QnModel *m, const char *name, QnType *type, const void **data)
{
    const QnOnnxGraph *g = m->file->graph;
    if (!m->has_run)
        return qn_fail(QN_EARG, "%s has not been run", m->file->path);
    for (int64_t i = 0; i < g->n_outputs; i++) {
        if (strcmp(g->output[i].name, name))
            continue;
        if (m->current) {
            *data = qn_plan_output(m->current->plan, name, type);
            return *data || qn_type_bytes(type) == 0
                       ? QN_OK
                       : qn_fail(QN_EINTERNAL, "output '%s' is missing", name);
        }
        const QnItem *item = m->run_out[i];
        if (!item || item->kind != QN_ITEM_TENSOR || item->known->text)
            return qn_fail(QN_EDTYPE, "output '%s' is no tensor of numbers", name);
        *type = item->known->type;
        *data = item->known->data;
        return QN_OK;
    }
    return qn_fail(QN_ENOTFOUND, "%s has no output '%s'", m->file->path, name);
}
