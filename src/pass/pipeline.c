#include "pass/pipeline.h"
#include "base/str.h"
#include "ir/print.h"

#include <string.h>

static const QnPassEntry passes[] = {
    { "lower", qn_pass_lower, QN_O0 },
    { "dce", qn_pass_dce, QN_O1 },
    { "cse", qn_pass_cse, QN_O1 },
    { "simplify", qn_pass_simplify, QN_O1 },
    { "fold", qn_pass_fold, QN_O1 },
    { "simplify", qn_pass_simplify, QN_O1 }, /* each brings together what the other works on */
    { "fold", qn_pass_fold, QN_O1 },
    { "cse", qn_pass_cse, QN_O1 },
    { "dce", qn_pass_dce, QN_O1 },
    { "trim", qn_pass_trim, QN_O1 },
    { "fold_scale", qn_pass_fold_scale, QN_O1 },
    { "epilogue", qn_pass_epilogue, QN_O1 },
    { "fold", qn_pass_fold, QN_O1 }, /* biases that came together */
    { "fuse_loss", qn_pass_fuse_loss, QN_O1 },
    { "fuse_norm_grad", qn_pass_fuse_norm_grad, QN_O1 },
    { "fuse_norm_relu", qn_pass_fuse_norm_relu, QN_O2 },
    { "split_norm", qn_pass_split_norm, QN_O2 },
    { "fuse", qn_pass_fuse, QN_O1 },
    { "fuse_sum", qn_pass_fuse_sum, QN_O1 },
    { "recompute", qn_pass_recompute, QN_O1 },
    { "layout", qn_pass_layout, QN_O2 },
    { "fuse_conv", qn_pass_fuse_conv, QN_O2 },
    { "fuse_matmul", qn_pass_fuse_matmul, QN_O2 },
    { "fuse_norm", qn_pass_fuse_norm, QN_O2 },
    { "schedule", qn_pass_schedule, QN_O2 },
};

const QnPassEntry *qn_pipeline_passes(int *n)
{
    *n = QN_COUNT(passes);
    return passes;
}

const QnPassEntry *qn_pipeline_find(const char *name)
{
    for (int i = 0; i < QN_COUNT(passes); i++) {
        if (!strcmp(passes[i].name, name))
            return &passes[i];
    }
    return NULL;
}

static QnStatus check_list(const char *list)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        char name[32] = "";
        memcpy(name, list, QN_MIN(n, sizeof name - 1));
        if (!qn_pipeline_find(name))
            return qn_fail(QN_EARG, "no pass is named '%s'", name);
        list += n + (list[n] == ',');
    }
    return QN_OK;
}

static QnStatus dump(QnGraph *g, const QnPipelineOptions *o, const char *pass)
{
    QnStr text = { 0 };
    if (!o->dump)
        return QN_OK;
    QnStatus st = qn_graph_print(g, &text);
    if (st == QN_OK)
        o->dump(o->dump_ctx, pass, qn_str_text(&text));
    qn_str_fini(&text);
    return st;
}

static QnStatus run_one(QnGraph *g, const QnPipelineOptions *o, const QnPassEntry *e)
{
    bool verify = o->verify;
#ifndef NDEBUG
    verify = true;
#endif
    QN_TRY(e->run(g, o));
    QN_TRY(qn_graph_check(g));
    if (verify)
        QN_TRY(qn_graph_verify(g));
    return dump(g, o, e->name);
}

QnStatus qn_pipeline_run(QnGraph *g, const QnPipelineOptions *o)
{
    static const QnPipelineOptions all = { .level = QN_O2 };
    o = o ? o : &all;
    QN_TRY(check_list(o->off));
    QN_TRY(qn_graph_check(g));
    qn_graph_number(g);
    if (o->report)
        *o->report = (QnPipelineReport){ .nodes_before = g->n_nodes };
    QN_TRY(dump(g, o, "input"));
    for (int i = 0; i < QN_COUNT(passes); i++) {
        if (passes[i].level > o->level || qn_str_is_listed(o->off, passes[i].name))
            continue;
        if (run_one(g, o, &passes[i]) != QN_OK)
            return qn_fail_prefix("pass %s", passes[i].name);
    }
    qn_graph_number(g);
    if (o->report)
        o->report->nodes_after = g->n_nodes;
    return QN_OK;
}
