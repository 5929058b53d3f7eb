/* Walks the nodes of a model. */
#include "onnx/importer.h"
#include "onnx/mapping.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MOST = 64 };

QnItem *qn_importer_item(QnImporter *m, const char *name, const QnTensor *known)
{
    QnItem *item = qn_arena_alloc(m->arena, sizeof *item);
    if (item)
        *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = -1, .known = known, .name = name };
    return item;
}

bool qn_importer_is_unknown(const QnItem *item)
{
    return item->kind == QN_ITEM_TENSOR && !item->known && !item->value;
}

/* ---- forcing ----------------------------------------------------------------------------------
 */

QnStatus qn_importer_force(QnImporter *m, QnItem *item, const char *why)
{
    bool is_constant = false;
    if (item->known || item->kind != QN_ITEM_TENSOR)
        return QN_OK;
    if (qn_importer_is_unknown(item))
        return qn_fail(QN_EUNSUPPORTED, "'%s' hangs on a node that is not supported", item->name);
    QN_TRY(qn_compute_constant(m, item, &is_constant));
    if (is_constant)
        return QN_OK;
    m->has_open |= !m->is_fed;
    if (!m->is_fed)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s needs the elements of '%s', which depend on the inputs' elements; the "
                       "model can be run, but is not one fixed graph",
                       why, item->name);
    return qn_importer_cut(m, item);
}

/* ---- one node -------------------------------------------------------------------------------- */

static QnStatus bind_node(QnImporter *m, const QnOnnxDef *d, QnOnnxNode *n)
{
    *n = (QnOnnxNode){ .arena = m->arena,
                       .domain = d->domain,
                       .op = d->op,
                       .name = d->name,
                       .opset = qn_onnx_opset(m->scope->opset, m->scope->n_opset, d->domain),
                       .n_in = d->n_in,
                       .n_out = d->n_out,
                       .training = m->training,
                       .blocks = &m->blocks,
                       .inference = m->inference,
                       .importer = m };
    QnOnnxAttr *attr = qn_arena_array(m->arena, (size_t)d->n_attr + 1, sizeof *attr);
    bool *used = qn_arena_array(m->arena, (size_t)d->n_out + 1, sizeof *used);
    n->in = qn_arena_array(m->arena, (size_t)d->n_in + 1, sizeof(QnItem *));
    n->out = qn_arena_array(m->arena, (size_t)d->n_out + 1, sizeof(QnItem *));
    if (!attr || !used || !n->in || !n->out)
        return QN_ENOMEM;
    for (int i = 0; i < d->n_attr; i++)
        n->n_attr += qn_scope_attr(m->scope, &d->attr[i], &attr[n->n_attr]);
    for (int i = 0; i < d->n_out; i++)
        used[i] = d->out[i][0] != '\0';
    n->attr = attr;
    n->out_used = used;
    for (int i = 0; i < d->n_in; i++)
        if (d->in[i][0] && !qn_scope_find(m->scope, d->in[i], &n->in[i]))
            return qn_fail(QN_EFORMAT, "nothing makes its input '%s'", d->in[i]);
    return QN_OK;
}

/* A function's body sees its parameters alone. */
static QnStatus call_function(QnImporter *m, const QnOnnxFunction *f, QnOnnxNode *n)
{
    QnScope s, *caller = m->scope;
    if (++m->depth > DEPTH_MOST)
        return qn_fail(QN_EFORMAT, "graphs are nested more than %d deep: a function calls itself?",
                       DEPTH_MOST);
    QnStatus st = qn_scope_open(&s, &f->body, NULL);
    s.caller = caller;
    s.function = f;
    s.attr = n->attr;
    s.n_attr = n->n_attr;
    s.opset = f->n_opset ? f->opset : caller->opset;
    s.n_opset = f->n_opset ? f->n_opset : caller->n_opset;
    for (int i = 0; st == QN_OK && i < f->n_out; i++)
        st = qn_scope_hold(&s, f->out[i]);
    for (int i = 0; st == QN_OK && i < f->n_in; i++)
        st = qn_scope_set(&s, f->in[i], i < n->n_in ? n->in[i] : NULL);
    m->scope = &s;
    if (st == QN_OK)
        st = qn_importer_nodes(m, &f->body);
    for (int i = 0; st == QN_OK && i < f->n_out && i < n->n_out; i++)
        if (!qn_scope_find(&s, f->out[i], &n->out[i]))
            st = qn_fail(QN_EFORMAT, "nothing makes output '%s' of the function", f->out[i]);
    m->scope = caller;
    qn_scope_close(&s);
    m->depth--;
    return st;
}

static QnStatus call_mapping(QnImporter *m, const QnMapping *map, QnOnnxNode *n)
{
    char why[300];
    for (int round = 0; round < 70; round++) {
        n->g = m->graph;
        n->epoch = m->epoch;
        n->want = 0;
        size_t scope = strlen(m->graph->scope); /* a name of the file may hold dots */
        qn_scope_push(m->graph, n->name);
        QnStatus st = map->map->import ? map->map->import(n) : qn_mapping_plain(map, n);
        if (n->g == m->graph)
            m->graph->scope[scope] = '\0';
        if (st == QN_OK || !n->want)
            return st;
        snprintf(why, sizeof why, "node '%s' (%s)", n->name, n->op);
        for (int i = 0; i < n->n_in && i < 64; i++)
            if (n->want >> i & 1)
                QN_TRY(qn_importer_force(m, n->in[i], why));
    }
    return qn_fail(QN_EINTERNAL, "asks for its inputs again and again");
}

static QnStatus call_on_text(QnImporter *m, const QnMapping *map, QnOnnxNode *n)
{
    QnTextPool pool;
    QN_TRY(qn_text_number(n, &pool));
    QN_TRY(call_mapping(m, map, n));
    return qn_text_name(n, &pool);
}

/* A node whose operator or form is not supported is written down, and the walk goes on, so that all
 * are listed at once; what hangs on it is passed over. */
static QnStatus note_problem(QnImporter *m, const QnOnnxDef *d, int64_t opset, const char *why)
{
    qn_str_printf(&m->problems, "node '%s': %s%s%s-%lld: %s\n", d->name, d->domain,
                  d->domain[0] ? "." : "", d->op, (long long)opset, why);
    m->n_problems++;
    return m->problems.st;
}

/* An operator that has no row for this opset: which opsets have one, or what it may be a slip of.
 */
static QnStatus note_unknown(QnImporter *m, const QnOnnxDef *d, int64_t opset,
                             const QnMapping *near)
{
    char why[160] = "not supported";
    const char *name = near->map ? NULL : qn_mapping_nearest(d->op);
    if (near->map && near->map->until)
        snprintf(why, sizeof why, "not supported in this opset; in %d to %d it is",
                 near->map->since, near->map->until);
    else if (near->map)
        snprintf(why, sizeof why, "not supported in this opset; from %d on it is",
                 near->map->since);
    else if (name)
        snprintf(why, sizeof why, "not supported; the nearest that is: %s", name);
    return note_problem(m, d, opset, why);
}

/* What it reads and makes is held: a graph may end while it is under way. */
static QnStatus call(QnImporter *m, const QnMapping *map, QnOnnxNode *n)
{
    QnHeld in = { n->in, n->n_in, m->held };
    QnHeld out = { n->out, n->n_out, &in };
    const QnNode *last = m->graph->last;
    int64_t epoch = m->epoch;
    m->held = &out;
    QnStatus st = qn_text_is_move(n) ? call_on_text(m, map, n) : call_mapping(m, map, n);
    m->held = in.outer;
    QN_TRY(st);
    return qn_importer_check(m, m->epoch == epoch ? last : NULL);
}

static QnStatus run_node(QnImporter *m, const QnOnnxDef *d)
{
    QnOnnxNode n;
    QnMapping map, near;
    int64_t problems = m->n_problems;
    QN_TRY(qn_importer_step(m));
    QN_TRY(bind_node(m, d, &n));
    const QnOnnxFunction *f = qn_onnx_function(m->model, d->domain, d->op);
    if (!f && !qn_mapping_find(d->domain, d->op, n.opset, &map, &near)) {
        QN_TRY(note_unknown(m, d, n.opset, &near));
        goto passed_over;
    }
    for (int i = 0; i < n.n_in; i++)
        if (n.in[i] && qn_importer_is_unknown(n.in[i]))
            goto passed_over; /* made by a node that is not supported */
    if (f) {
        QN_TRY(call_function(m, f, &n));
    } else {
        if (m->batch_to && !strcmp(d->op, "Reshape"))
            QN_TRY(qn_importer_rebatch(m, &n));
        QnStatus st = call(m, &map, &n);
        if (st == QN_EUNSUPPORTED && qn_graph_check(m->graph) == QN_OK) {
            if (problems == m->n_problems) /* else it is noted where it lies, inside */
                QN_TRY(note_problem(m, d, n.opset, qn_error_last()->text));
            goto passed_over;
        }
        QN_TRY(st);
    }
    for (int i = 0; i < n.n_out; i++) {
        if (!d->out[i][0])
            continue;
        if (n.out[i] && n.out[i]->value && n.out[i]->epoch == m->epoch && n.out[i]->name == n.name)
            n.out[i]->name = d->out[i];
        QN_TRY(qn_scope_set(m->scope, d->out[i], n.out[i]));
    }
    m->made = n.out;
    return QN_OK;
passed_over:
    m->made = NULL;
    for (int i = 0; i < d->n_out; i++) {
        QnItem *nothing = qn_importer_item(m, d->out[i], NULL);
        QN_TRY(nothing ? QN_OK : QN_ENOMEM);
        QN_TRY(qn_scope_set(m->scope, d->out[i], nothing));
    }
    return QN_OK;
}

typedef struct Before { /* a node was run */
    const QnNode *last;
    int64_t n_problems;
    size_t n_text;
} Before;

/* Tells who imports what became of a node. */
static QnStatus show_node(QnImporter *m, int64_t number, const Before *b)
{
    const QnOnnxImportOptions *o = m->options;
    const char *why = "";
    bool refused = m->n_problems > b->n_problems;
    if (refused)
        why = qn_arena_strdup(m->arena, qn_str_text(&m->problems) + b->n_text);
    QnOnnxSeen seen = { .number = number,
                        .fate = refused && m->has_open ? QN_ONNX_OPEN
                                : refused              ? QN_ONNX_REFUSED
                                : !m->made             ? QN_ONNX_PASSED
                                                       : QN_ONNX_MADE,
                        .why = why,
                        .out = m->made,
                        .first = b->last ? b->last->next : m->graph->first };
    m->has_open = false;
    return why ? o->seen(o->seen_ctx, &seen) : QN_ENOMEM;
}

QnStatus qn_importer_nodes(QnImporter *m, const QnOnnxGraph *g)
{
    bool is_shown = m->options && m->options->seen && m->depth == 0;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const QnOnnxDef *d = &g->node[i];
        Before before = { m->graph->last, m->n_problems, m->problems.n };
        if (run_node(m, d) != QN_OK)
            return qn_fail_prefix(
                "node '%s' (%s-%lld)", d->name, d->op,
                (long long)qn_onnx_opset(m->scope->opset, m->scope->n_opset, d->domain));
        if (is_shown)
            QN_TRY(show_node(m, i, &before));
        qn_scope_used(m->scope, d);
    }
    return QN_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static QnStatus set_inits(QnImporter *m, QnScope *s, const QnOnnxGraph *g)
{
    for (int64_t i = 0; i < g->n_inits; i++) {
        QnItem *item = qn_importer_item(m, g->init[i].name, g->init[i].tensor);
        QN_TRY(item ? QN_OK : QN_ENOMEM);
        item->is_model = true;
        QN_TRY(qn_scope_set(s, g->init[i].name, item));
    }
    return QN_OK;
}

static QnStatus take_outputs(const QnScope *s, const QnOnnxGraph *g, QnItem **out)
{
    for (int64_t i = 0; i < g->n_outputs; i++)
        if (!qn_scope_find(s, g->output[i].name, &out[i]))
            return qn_fail(QN_EFORMAT, "nothing makes output '%s' of graph '%s'", g->output[i].name,
                           g->name);
    return QN_OK;
}

QnStatus qn_importer_graph(QnImporter *m, const QnOnnxGraph *g, QnItem *const *in, int64_t n_in,
                           QnItem **out)
{
    QnScope s, *outer = m->scope;
    if (n_in != g->n_inputs)
        return qn_fail(QN_EFORMAT, "graph '%s' has %lld inputs, %lld are expected", g->name,
                       (long long)g->n_inputs, (long long)n_in);
    if (++m->depth > DEPTH_MOST)
        return qn_fail(QN_EFORMAT, "graphs are nested more than %d deep", DEPTH_MOST);
    QnStatus st = qn_scope_open(&s, g, outer);
    if (st == QN_OK)
        st = set_inits(m, &s, g);
    for (int64_t i = 0; st == QN_OK && i < n_in; i++)
        st = qn_scope_set(&s, g->input[i].name, in[i]);
    m->scope = &s;
    if (st == QN_OK)
        st = qn_importer_nodes(m, g);
    if (st == QN_OK)
        st = take_outputs(&s, g, out);
    m->scope = outer;
    qn_scope_close(&s);
    m->depth--;
    return st;
}

/* ---- models ---------------------------------------------------------------------------------- */

QnStatus qn_importer_open(QnImporter *m, QnScope *s, const QnOnnxModel *model, QnDevice *d,
                          const QnOnnxLimits *limits)
{
    return qn_importer_enter(m, s, model, d, limits, qn_graph_new());
}

QnStatus qn_importer_enter(QnImporter *m, QnScope *s, const QnOnnxModel *model, QnDevice *d,
                           const QnOnnxLimits *limits, QnGraph *g)
{
    *m = (QnImporter){
        .model = model, .device = d, .arena = qn_arena_new(), .scope = s, .graph = g
    };
    QN_TRY(m->graph && m->arena ? QN_OK : QN_ENOMEM);
    qn_importer_limit(m, limits);
    QN_TRY(qn_scope_open(s, model->graph, NULL));
    s->opset = model->opset;
    s->n_opset = model->n_opset;
    return set_inits(m, s, model->graph);
}

void qn_importer_close(QnImporter *m, QnScope *s)
{
    qn_scope_close(s);
    qn_graph_free(m->graph);
    qn_str_fini(&m->problems);
    qn_onnx_blocks_free(&m->blocks);
    qn_arena_free(m->arena);
}

void qn_onnx_join_problems(const char *lines, QnStr *out)
{
    for (const char *p = lines; *p; p += strcspn(p, "\n"), p += *p == '\n')
        qn_str_printf(out, "%s%.*s", out->n ? "; " : "", (int)strcspn(p, "\n"), p);
}

QnStatus qn_importer_refuse(QnImporter *m, QnOnnxProblems *out)
{
    int64_t n = m->n_problems;
    const char *nodes = n == 1 ? "node is" : "nodes are";
    QnStr line = { 0 };
    if (out) {
        out->text = m->problems;
        out->n = n;
        m->problems = (QnStr){ 0 };
        return qn_fail(QN_EUNSUPPORTED, "%s: %lld %s not supported", m->model->path, (long long)n,
                       nodes);
    }
    qn_onnx_join_problems(qn_str_text(&m->problems), &line);
    QnStatus st = qn_fail(QN_EUNSUPPORTED, "%s: %lld %s not supported: %s", m->model->path,
                          (long long)n, nodes, qn_str_text(&line));
    qn_str_fini(&line);
    return st;
}

/* An item may have been in another run. */
static void begin_item(QnItem *item)
{
    item->value = NULL;
    item->epoch = -1;
    item->round = 0;
    for (int64_t i = 0; i < item->n; i++)
        begin_item(item->item[i]);
}

static QnStatus run_model(QnImporter *m, QnItem *const *in, QnArena *arena, QnItem **out,
                          QnOnnxProblems *problems)
{
    const QnOnnxGraph *g = m->model->graph;
    QnItem **made = qn_arena_array(m->arena, (size_t)g->n_outputs + 1, sizeof *made);
    if (!made)
        return QN_ENOMEM;
    m->fed = in;
    m->n_fed = g->n_inputs;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        if (!in[i])
            continue;
        QN_TRY(qn_importer_check_input(g->input[i].name, g->input[i].type, in[i]));
        begin_item(in[i]);
        in[i]->name = g->input[i].name;
        in[i]->is_fed = in[i]->kind == QN_ITEM_TENSOR;
        QN_TRY(qn_scope_set(m->scope, g->input[i].name, in[i]));
    }
    QN_TRY(qn_importer_nodes(m, g));
    QN_TRY(take_outputs(m->scope, g, made));
    if (m->n_problems)
        return qn_importer_refuse(m, problems);
    for (int64_t i = 0; i < g->n_outputs; i++)
        QN_TRY(qn_importer_finish(m, made[i]));
    for (int64_t i = 0; i < g->n_outputs; i++)
        QN_TRY(qn_importer_take(arena, made[i], &out[i]));
    return QN_OK;
}

QnStatus qn_importer_finish(QnImporter *m, QnItem *item)
{
    if (!item)
        return QN_OK;
    for (int64_t i = 0; i < item->n; i++)
        QN_TRY(qn_importer_finish(m, item->item[i]));
    return qn_importer_force(m, item, "an output");
}

QnStatus qn_onnx_run_with(const QnOnnxModel *model, QnDevice *d, QnItem *const *in, QnArena *arena,
                          QnItem **out, QnOnnxProblems *problems, const QnOnnxRunOptions *o)
{
    QnImporter m;
    QnScope s = { 0 };
    QnStatus st = qn_importer_open(&m, &s, model, d, o ? &o->limits : NULL);
    m.is_fed = true;
    m.plain = o && o->plain;
    m.choices = o ? o->choices : NULL;
    if (st == QN_OK)
        st = run_model(&m, in, arena, out, problems);
    if (st != QN_OK && st != QN_EUNSUPPORTED)
        qn_fail_prefix("%s", model->path);
    qn_importer_close(&m, &s);
    return st;
}

QnStatus qn_onnx_run(const QnOnnxModel *model, QnDevice *d, QnItem *const *in, QnArena *arena,
                     QnItem **out, QnOnnxProblems *problems)
{
    return qn_onnx_run_with(model, d, in, arena, out, problems, NULL);
}
