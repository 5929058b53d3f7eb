/* The table of a model's layers, and where its work and memory lie. */
#include "cli/inspect_onnx.h"

#include "base/chart.h"
#include "base/mem.h"
#include "base/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMNS = 36, MARKED = 5, BARS = 8, COLUMNS = 8 };

/* ---- the head -------------------------------------------------------------------------------- */

static const char *elem_name(int64_t elem)
{
    QnDtype dtype;
    return qn_onnx_dtype(elem, &dtype)    ? qn_dtype_name(dtype)
           : elem == QN_ONNX_DTYPE_STRING ? "strings"
           : elem                         ? "complex"
                                          : "?";
}

const char *qn_inspect_onnx_type(const QnOnnxType *t, QnArena *arena)
{
    static const char *const kinds[] = { "of unknown type", "tensor", "sequence",
                                         "optional",        "map",    "sparse" };
    if (t->kind == QN_ONNX_TYPE_SEQUENCE || t->kind == QN_ONNX_TYPE_OPTIONAL) {
        const char *of = t->of ? qn_inspect_onnx_type(t->of, arena) : "?";
        return of ? qn_arena_printf(arena, "%s(%s)", kinds[t->kind], of) : NULL;
    }
    if (t->kind != QN_ONNX_TYPE_TENSOR)
        return kinds[t->kind];
    if (t->rank < 0)
        return qn_arena_printf(arena, "%s[…]", elem_name(t->elem));
    const char *text = qn_arena_printf(arena, "%s[", elem_name(t->elem));
    for (int i = 0; text && i < t->rank; i++)
        text = t->dim[i] >= 0
                   ? qn_arena_printf(arena, "%s%s%lld", text, i ? "," : "", (long long)t->dim[i])
                   : qn_arena_printf(arena, "%s%s%s", text, i ? "," : "",
                                     t->dim_name[i] && t->dim_name[i][0] ? t->dim_name[i] : "?");
    return text ? qn_arena_printf(arena, "%s]", text) : NULL;
}

/* Old files list their weights among the inputs. */
static QnStatus print_values(const QnInspectOnnx *v, const char *head, const QnOnnxInfo *info,
                             int64_t n)
{
    int64_t width = 0;
    for (int64_t i = 0; i < n; i++)
        if (!qn_onnx_find_init(v->model->graph, info[i].name))
            width = QN_MAX(width, qn_str_columns(info[i].name));
    if (n)
        printf("%s\n", head);
    for (int64_t i = 0; i < n; i++) {
        const char *type = qn_inspect_onnx_type(info[i].type, v->arena);
        QN_TRY(type ? QN_OK : QN_ENOMEM);
        if (!qn_onnx_find_init(v->model->graph, info[i].name))
            printf("  %s%*s  %s\n", info[i].name, (int)(width - qn_str_columns(info[i].name)), "",
                   type);
    }
    return QN_OK;
}

static QnStatus print_head(const QnInspectOnnx *v)
{
    const QnOnnxModel *m = v->model;
    printf("%s: ONNX, IR version %lld, opset", m->path, (long long)m->ir_version);
    for (int i = 0; i < m->n_opset; i++)
        printf("%s %s%s%lld", i ? "," : "", m->opset[i].domain, m->opset[i].domain[0] ? " " : "",
               (long long)m->opset[i].version);
    if (m->producer && m->producer[0])
        printf(", by %s %s", m->producer, m->producer_version ? m->producer_version : "");
    printf("\n");
    for (int64_t i = 0; i < m->n_meta; i++)
        printf("  %s: %s\n", m->meta[2 * i], m->meta[2 * i + 1]);
    if (m->n_functions)
        printf("  %lld functions\n", (long long)m->n_functions);
    QN_TRY(print_values(v, "inputs", m->graph->input, m->graph->n_inputs));
    return print_values(v, "outputs", m->graph->output, m->graph->n_outputs);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The end of a long name says more than its beginning. */
static const char *shorten(QnArena *arena, const char *name)
{
    int64_t over = qn_str_columns(name) - NAME_COLUMNS;
    if (over <= 0)
        return name;
    for (over++; over > 0 && *name; over--) /* a code point at a time */
        do
            name++;
        while (((unsigned char)*name & 0xC0) == 0x80);
    return qn_arena_printf(arena, "…%s", name);
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

typedef double Measure(const QnLayer *l);
static double flops(const QnLayer *l)
{
    return l->flops;
}
static double memory(const QnLayer *l)
{
    return (double)(l->memory + l->weights_bytes);
}

/* What a layer must have to be among the largest, and the sum of all. */
static QnStatus find_largest(const QnInspectOnnx *v, Measure *of, double *least, double *sum)
{
    int64_t n = v->model->graph->n_nodes;
    double *x = qn_arena_array(v->arena, (size_t)n + MARKED, sizeof *x);
    if (!x)
        return QN_ENOMEM;
    *sum = 0;
    for (int64_t i = 0; i < n; i++)
        *sum += x[i] = of(&v->layer[i]);
    qsort(x, (size_t)n, sizeof *x, descending);
    *least = x[QN_MIN(n, (int64_t)MARKED) - (n > 0)];
    return QN_OK;
}

typedef struct Marks {
    double least_flops, flops, least_memory, memory;
} Marks;

static const char *mark(const QnInspectOnnx *v, const QnLayer *l, const Marks *m)
{
    const char *arrow = qn_term_unicode() ? "◀" : "<";
    bool f = l->flops > 0 && l->flops >= m->least_flops && l->flops >= 0.01 * m->flops;
    bool b = memory(l) > 0 && memory(l) >= m->least_memory && memory(l) >= 0.01 * m->memory;
    double pf = f ? 100 * l->flops / m->flops : 0, pb = b ? 100 * memory(l) / m->memory : 0;
    if (l->fate == QN_ONNX_REFUSED)
        return "not supported";
    return f && b
               ? qn_arena_printf(v->arena, "%s %.0f %% of FLOPs, %.0f %% of memory", arrow, pf, pb)
           : f ? qn_arena_printf(v->arena, "%s %.0f %% of FLOPs", arrow, pf)
           : b ? qn_arena_printf(v->arena, "%s %.0f %% of memory", arrow, pb)
               : "";
}

static bool is_hidden(const QnLayer *l)
{
    return l->is_constant && l->fate == QN_ONNX_MADE && !l->parameters;
}

static QnStatus fill_row(const QnInspectOnnx *v, const QnLayer *l, const Marks *m,
                         const char **cell)
{
    char text[QN_STR_NUMBER];
    QnArena *a = v->arena;
    bool known = l->fate == QN_ONNX_MADE;
    cell[0] = shorten(a, l->def->name[0] ? l->def->name : l->def->n_out ? l->def->out[0] : "");
    cell[1] = l->def->op;
    cell[2] = known ? l->type : "?";
    cell[3] = l->parameters ? qn_arena_strdup(a, qn_str_count(text, l->parameters)) : "";
    cell[4] = l->flops > 0 ? qn_arena_strdup(a, qn_str_unit(text, l->flops, "FLOP")) : "";
    cell[5] = l->moved > 0 ? qn_arena_strdup(a, qn_str_bytes(text, (uint64_t)l->moved)) : "";
    cell[6] = known ? qn_arena_strdup(a, qn_str_bytes(text, (uint64_t)l->memory)) : "";
    cell[7] = mark(v, l, m);
    for (int k = 0; k < COLUMNS; k++)
        if (!cell[k])
            return QN_ENOMEM;
    return QN_OK;
}

static QnStatus print_table(const QnInspectOnnx *v, const Marks *m, bool all, int64_t *hidden)
{
    static const char *const head[COLUMNS] = { "layer",    "operator", "output", "parameters",
                                               "computes", "moves",    "result", "" };
    int64_t n = v->model->graph->n_nodes, rows = 1;
    if (n > INT32_MAX / 16)
        return qn_fail(QN_EUNSUPPORTED, "%lld nodes are more than a table shows", (long long)n);
    const char **cell = qn_arena_array(v->arena, (size_t)(n + 1) * COLUMNS, sizeof *cell);
    if (!cell)
        return QN_ENOMEM;
    memcpy(cell, head, sizeof head);
    for (int64_t i = 0; i < n; i++) {
        if (!all && is_hidden(&v->layer[i]))
            continue;
        QN_TRY(fill_row(v, &v->layer[i], m, cell + rows * COLUMNS));
        rows++;
    }
    *hidden = n + 1 - rows;
    printf("\n");
    qn_cli_table(stdout, cell, COLUMNS, (int)rows, "lllrrrrl");
    return QN_OK;
}

/* ---- pictures -------------------------------------------------------------------------------- */

typedef struct Kind { /* of operator */
    const char *op;
    double sum;
    int64_t n;
} Kind;

static int largest_first(const void *a, const void *b)
{
    return descending(&((const Kind *)a)->sum, &((const Kind *)b)->sum);
}

static QnStatus sum_kinds(const QnInspectOnnx *v, Measure *of, Kind **out, int *n_out)
{
    int64_t n = v->model->graph->n_nodes;
    Kind *kind = qn_arena_array(v->arena, (size_t)n + 1, sizeof *kind);
    int n_kinds = 0, k;
    if (!kind)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        const char *op = v->layer[i].def->op;
        for (k = 0; k < n_kinds && strcmp(kind[k].op, op) != 0; k++)
            ;
        n_kinds += k == n_kinds;
        kind[k].op = op;
        kind[k].sum += of(&v->layer[i]);
        kind[k].n++;
    }
    qsort(kind, (size_t)n_kinds, sizeof *kind, largest_first);
    *out = kind;
    *n_out = n_kinds;
    return QN_OK;
}

static QnStatus print_bars(const QnInspectOnnx *v, const char *head, Measure *of, double sum)
{
    QnChartBar bars[BARS];
    QnChartText how = { .width = QN_MIN(qn_term_width(stdout), 78),
                        .height = 1,
                        .unicode = qn_term_unicode(),
                        .color = qn_term_color(stdout) };
    QnStr text = { 0 };
    Kind *kind;
    int n_kinds, n = 0;
    if (!(sum > 0) || how.width < 40)
        return QN_OK;
    QN_TRY(sum_kinds(v, of, &kind, &n_kinds));
    for (; n < BARS && n < n_kinds && kind[n].sum >= 0.005 * sum; n++) {
        bars[n] = (QnChartBar){
            .label = kind[n].op,
            .value = kind[n].sum,
            .text = qn_arena_printf(v->arena, "%3.0f %%, %lld nodes", 100 * kind[n].sum / sum,
                                    (long long)kind[n].n),
        };
        QN_TRY(bars[n].text ? QN_OK : QN_ENOMEM);
    }
    qn_chart_bars(&text, bars, n, sum, &how);
    QnStatus st = text.st;
    if (st == QN_OK)
        printf("\n%s\n%s", head, qn_str_text(&text));
    qn_str_fini(&text);
    return st;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void print_totals(const QnInspectOnnx *v, int64_t hidden)
{
    char count[QN_STR_NUMBER], bytes[QN_STR_NUMBER], work[QN_STR_NUMBER], moved[QN_STR_NUMBER];
    printf("\n%lld nodes", (long long)v->model->graph->n_nodes);
    if (hidden)
        printf(" (%lld that are computed while the model is read are not shown; --all shows them)",
               (long long)hidden);
    printf("\n%s parameters, %s; %s and %s moved a run\n", qn_str_count(count, v->parameters),
           qn_str_bytes(bytes, (uint64_t)v->weights_bytes), qn_str_unit(work, v->flops, "FLOP"),
           qn_str_bytes(moved, (uint64_t)v->moved));
    if (!v->unplanned)
        printf("planned peak %s: %s of values, %s of constants\n",
               qn_str_bytes(bytes, (uint64_t)v->memory.planned_peak_bytes),
               qn_str_bytes(work, (uint64_t)v->memory.arena_bytes),
               qn_str_bytes(moved, (uint64_t)v->memory.constant_bytes));
    if (v->assumed[0])
        printf("open dims are taken to be 1, the first is '%s'; --dim NAME=N and --batch N give "
               "others\n",
               v->assumed);
}

static void print_problems(const QnInspectOnnx *v)
{
    int64_t n = v->model->graph->n_nodes;
    for (int64_t i = 0; i < n && v->n_open; i++)
        if (v->layer[i].fate == QN_ONNX_OPEN) {
            printf("\n%lld node%s elements that only a run can tell, first '%s' (%s); what "
                   "hangs on them is not\nknown here. The model runs piece by piece; --input "
                   "NAME=FILE gives "
                   "such inputs.\n",
                   (long long)v->n_open, v->n_open == 1 ? " needs" : "s need",
                   v->layer[i].def->name, v->layer[i].def->op);
            break;
        }
    if (v->unplanned && !v->n_open && !v->n_refused)
        printf("\nnot one fixed graph: %s\n", v->unplanned);
    if (v->n_refused)
        printf("\n%lld %s not supported:\n", (long long)v->n_refused,
               v->n_refused == 1 ? "node is" : "nodes are");
    for (int64_t i = 0; i < n && v->n_refused; i++)
        if (v->layer[i].fate == QN_ONNX_REFUSED)
            printf("  node '%s': %s%s%s-%lld: %s\n", v->layer[i].def->name, v->layer[i].def->domain,
                   v->layer[i].def->domain[0] ? "." : "", v->layer[i].def->op,
                   (long long)qn_onnx_opset(v->model->opset, v->model->n_opset,
                                            v->layer[i].def->domain),
                   v->layer[i].why);
}

QnStatus qn_inspect_onnx_print(const QnInspectOnnx *v, bool all)
{
    Marks m;
    int64_t hidden = 0;
    QN_TRY(find_largest(v, flops, &m.least_flops, &m.flops));
    QN_TRY(find_largest(v, memory, &m.least_memory, &m.memory));
    QN_TRY(print_head(v));
    QN_TRY(print_table(v, &m, all, &hidden));
    print_totals(v, hidden);
    QN_TRY(print_bars(v, "FLOPs by operator", flops, m.flops));
    QN_TRY(print_bars(v, "memory by operator: weights and results", memory, m.memory));
    print_problems(v);
    return QN_OK;
}
