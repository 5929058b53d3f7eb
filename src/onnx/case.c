/* Cases as ONNX's test suites store them. */
#include "onnx/check.h"

#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const qn_case_names[QN_CASE_COUNT] = { "pass", "different", "unsupported", "failed" };

bool qn_case_is_random(const QnOnnxGraph *g)
{
    static const char *const ops[] = { "RandomNormal",     "RandomUniform",
                                       "RandomNormalLike", "RandomUniformLike",
                                       "Bernoulli",        "Multinomial",
                                       "Dropout" };
    for (int64_t i = 0; i < g->n_nodes; i++) {
        for (size_t k = 0; k < QN_COUNT(ops); k++)
            if (!strcmp(g->node[i].op, ops[k]))
                return true;
        for (int k = 0; k < g->node[i].n_attr; k++)
            if (g->node[i].attr[k].kind == QN_ONNX_GRAPH && g->node[i].attr[k].graph &&
                qn_case_is_random(g->node[i].attr[k].graph))
                return true;
    }
    return false;
}

static QnStatus value_path(const char *set, const char *what, int64_t i, char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "%s/%s_%lld.pb", set, what, (long long)i);
    return n > 0 && (size_t)n < bytes ? QN_OK : qn_fail(QN_EARG, "%s: the path is too long", set);
}

static QnStatus read_values(const char *set, const char *what, const QnOnnxInfo *info, int64_t n,
                            QnArena *arena, QnItem **out)
{
    char path[4096];
    for (int64_t i = 0; i < n; i++) {
        QN_TRY(value_path(set, what, i, path, sizeof path));
        if (qn_file_exists(path))
            QN_TRY(qn_onnx_read_value(path, info[i].type, arena, &out[i]));
    }
    return QN_OK;
}

/* Old models list their initialisers among the inputs: files are then numbered without them, which
 * the number of files tells. */
QnStatus qn_case_inputs(const QnOnnxGraph *g, const char *set, QnArena *arena, QnItem **in)
{
    char path[4096];
    int64_t files = 0, open = 0;
    QnOnnxInfo *info = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *info);
    QnItem **value = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *value);
    if (!info || !value)
        return QN_ENOMEM;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        QN_TRY(value_path(set, "input", i, path, sizeof path));
        files += qn_file_exists(path);
        if (!qn_onnx_find_init(g, g->input[i].name))
            info[open++] = g->input[i];
    }
    if (files != open)
        return read_values(set, "input", g->input, g->n_inputs, arena, in);
    QN_TRY(read_values(set, "input", info, open, arena, value));
    for (int64_t i = 0, k = 0; i < g->n_inputs; i++)
        if (!qn_onnx_find_init(g, g->input[i].name))
            in[i] = value[k++];
    return QN_OK;
}

static QnStatus check_set(const QnOnnxModel *m, const char *set, QnDevice *d,
                          const QnTolerance *tol, QnArena *arena, QnDifference *diff,
                          QnOnnxProblems *problems)
{
    const QnOnnxGraph *g = m->graph;
    QnItem **in = qn_arena_array(arena, (size_t)g->n_inputs + 1, sizeof *in);
    QnItem **want = qn_arena_array(arena, (size_t)g->n_outputs + 1, sizeof *want);
    QnItem **got = qn_arena_array(arena, (size_t)g->n_outputs + 1, sizeof *got);
    if (!in || !want || !got)
        return QN_ENOMEM;
    QN_TRY(qn_case_inputs(g, set, arena, in));
    QN_TRY(read_values(set, "output", g->output, g->n_outputs, arena, want));
    QN_TRY(qn_onnx_run(m, d, in, arena, got, problems));
    bool random = qn_case_is_random(g);
    for (int64_t i = 0; i < g->n_outputs; i++) {
        QnDifference one = { .is_equal = true };
        if (!want[i])
            continue;
        qn_item_compare(got[i], want[i], tol, g->output[i].name, &one);
        if (!one.is_equal && random) {
            one = (QnDifference){ .is_equal = true };
            qn_item_compare_random(got[i], want[i], g->output[i].name, &one);
        }
        if (diff->is_equal && !one.is_equal) {
            memcpy(diff->text, one.text, sizeof diff->text);
            diff->is_equal = false;
        }
        diff->largest = QN_MAX(diff->largest, one.largest);
        diff->n_different += one.n_different;
        diff->n_compared += one.n_compared;
    }
    return QN_OK;
}

QnStatus qn_case_check(const QnOnnxModel *m, const char *set, QnDevice *d, const QnTolerance *tol,
                       QnDifference *diff, QnOnnxProblems *problems)
{
    static const QnTolerance usual = { .rtol = 1e-3, .atol = 1e-7 };
    QnArena *arena = qn_arena_new();
    *diff = (QnDifference){ .is_equal = true };
    QnStatus st =
        arena ? check_set(m, set, d, tol ? tol : &usual, arena, diff, problems) : QN_ENOMEM;
    qn_arena_free(arena);
    return st;
}

static void say(QnCase *c, QnCaseResult result, const char *text)
{
    c->result = result;
    snprintf(c->text, sizeof c->text, "%s", text);
    for (char *p = c->text; *p; p++) /* one line */
        if (*p == '\n')
            *p = p[1] ? ';' : '\0';
}

static void run_set(const QnOnnxModel *m, const char *set, QnDevice *d, const QnTolerance *tol,
                    QnCase *c)
{
    QnDifference diff;
    QnOnnxProblems problems = { 0 };
    QnStatus st = qn_case_check(m, set, d, tol, &diff, &problems);
    if (st == QN_EUNSUPPORTED)
        say(c, QN_CASE_UNSUPPORTED,
            problems.n ? qn_str_text(&problems.text) : qn_error_last()->text);
    else if (st != QN_OK)
        say(c, QN_CASE_FAILED, qn_error_last()->text);
    else if (!diff.is_equal)
        say(c, QN_CASE_DIFFERENT, diff.text);
    qn_str_fini(&problems.text);
}

static int is_set(const struct dirent *e)
{
    return !strncmp(e->d_name, "test_data_set_", 14);
}

void qn_case_run(const char *folder, QnDevice *d, const QnTolerance *tol, QnCase *out)
{
    char path[4096];
    struct dirent **sets = NULL;
    QnOnnxModel *m = NULL;
    *out = (QnCase){ .result = QN_CASE_PASS };
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    QnStatus st = qn_onnx_read(path, &m);
    if (st != QN_OK) {
        say(out, st == QN_EUNSUPPORTED ? QN_CASE_UNSUPPORTED : QN_CASE_FAILED,
            qn_error_last()->text);
        return;
    }
    out->opset = qn_onnx_opset(m->opset, m->n_opset, "");
    if (m->graph->n_nodes)
        snprintf(out->op, sizeof out->op, "%s", m->graph->node[m->graph->n_nodes - 1].op);
    int n = scandir(folder, &sets, is_set, alphasort);
    if (n <= 0)
        say(out, QN_CASE_FAILED, "the folder has no test_data_set_*");
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, sets[i]->d_name);
        if (out->result == QN_CASE_PASS)
            run_set(m, path, d, tol, out);
        free(sets[i]);
    }
    free(sets);
    qn_onnx_free(m);
}
