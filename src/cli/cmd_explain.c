#include "cli/model_dims.h"
#include "cli/onnx_plan.h"
#include "cli/run_setup.h"
#include "ops/body.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

enum { SET, DEVICE, THREADS, EVAL, BATCH, DIM, INPUT, WHY, JSON };

static const QnOption options[] = {
    [SET] = { "--set", 0, QN_OPTION_MANY, "KEY=VALUE…", "change the recipe", 0, 0 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME",
                 "cpu (default), opencl:0 …, cuda:0 …, auto or null", 0, 0 },
    [THREADS] = { "--threads", 0, QN_OPTION_INT, "N", "threads; default: one a core", 1, 1024 },
    [EVAL] = { "--eval", 0, QN_OPTION_FLAG, NULL, "the evaluation plan, not the training step", 0,
               0 },
    [BATCH] = { "--batch", 0, QN_OPTION_INT, "N", "ONNX models: first dim of every input", 1,
                1 << 24 },
    [DIM] = QN_CLI_DIM_OPTION,
    [INPUT] = { "--input", 'i', QN_OPTION_MANY, "NAME=FILE",
                "ONNX models: an input that decides shapes or branches, .npy or .pb", 0, 0 },
    [WHY] = { "--why", 0, QN_OPTION_FLAG, NULL, "for each node why other kernels do not run", 0,
              0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a step", 0, 0 },
};

/* Calls fn for each kernel of the device that could have been meant but is not what runs. */
static void each_refusal(const QnDevice *d, const QnPlanStep *s,
                         void (*fn)(void *ctx, const QnKernel *k, const char *reason), void *ctx)
{
    for (int i = 0; i < d->backend->n_kernels; i++) {
        const QnKernel *k = d->backend->kernels[i];
        if (k == s->kernel || (k->op && k->op != s->node->op))
            continue;
        const char *reason = qn_select_reason(d, k, s->node);
        fn(ctx, k, reason ? reason : "would do; ranks lower, or was slower when measured");
    }
}

static void print_refusal(void *ctx, const QnKernel *k, const char *reason)
{
    fprintf(ctx, "        not %s: %s\n", k->name, reason);
}

static void json_refusal(void *ctx, const QnKernel *k, const char *reason)
{
    qn_json_put_string(ctx, k->name, reason);
}

/* The maps in a fused group, or the operator's name. */
static const char *what(const QnNode *n, char *text, size_t bytes)
{
    const QnBody *b = qn_body_of(n);
    size_t used = (size_t)snprintf(text, bytes, "%s", n->op->name);
    for (int i = 0; b && i < b->n_instr && used < bytes - 1; i++) {
        int k = snprintf(text + used, bytes - used, "%s%s%s", i ? " " : "(", b->instr[i].op->name,
                         i == b->n_instr - 1 ? ")" : "");
        used += QN_MIN((size_t)k, bytes - used);
    }
    return text;
}

typedef struct Widths {
    int op, kernel, type;
} Widths;

static Widths widths_of(const QnPlan *p)
{
    char op[200], type[QN_TYPE_TEXT_BYTES];
    Widths w = { 4, 6, 6 }; /* of the heads */
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep s = qn_plan_step(p, i);
        w.op = QN_MAX(w.op, (int)strlen(what(s.node, op, sizeof op)));
        w.kernel = QN_MAX(w.kernel, (int)strlen(s.kernel->name));
        if (s.node->n_out)
            w.type = QN_MAX(w.type, (int)strlen(qn_type_text(&s.node->out[0].type, type)));
    }
    w.op = QN_MIN(w.op, 32); /* one long group does not push all others aside */
    return w;
}

static void print_step(const QnArgs *a, const QnDevice *d, int64_t i, const QnPlanStep *s, Widths w)
{
    char op[200], type[QN_TYPE_TEXT_BYTES], flops[QN_STR_NUMBER], bytes[QN_STR_NUMBER];
    const QnNode *n = s->node;
    const char *written = s->inplace ? "in place" : s->out_offset < 0 ? "in state" : "";
    printf("%4lld  %-*s  %-*s  %-*s  %10s  %10s", (long long)i, w.op, what(n, op, sizeof op),
           w.kernel, s->kernel->name, w.type, n->n_out ? qn_type_text(&n->out[0].type, type) : "",
           qn_str_unit(flops, s->cost.flops, "FLOP"),
           qn_str_bytes(bytes, (uint64_t)(s->cost.bytes_read + s->cost.bytes_written)));
    if (n->name)
        printf("  %-8s  %s\n", written, n->name);
    else
        printf("%s%s\n", written[0] ? "  " : "", written);
    if (a->text[WHY])
        each_refusal(d, s, print_refusal, stdout);
}

static QnStatus json_step(const QnDevice *d, int64_t i, const QnPlanStep *s)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    char op[200], type[QN_TYPE_TEXT_BYTES];
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_int(&w, "step", i);
    qn_json_put_string(&w, "op", what(s->node, op, sizeof op));
    qn_json_put_string(&w, "name", s->node->name ? s->node->name : "");
    qn_json_put_string(&w, "kernel", s->kernel->name);
    qn_json_put_string(&w, "type", s->node->n_out ? qn_type_text(&s->node->out[0].type, type) : "");
    qn_json_put_double(&w, "flops", s->cost.flops);
    qn_json_put_double(&w, "bytes_read", s->cost.bytes_read);
    qn_json_put_double(&w, "bytes_written", s->cost.bytes_written);
    qn_json_put_int(&w, "workspace_bytes", (int64_t)s->workspace_bytes);
    qn_json_put_bool(&w, "in_place", s->inplace);
    qn_json_put_int(&w, "launched", s->n_launched);
    qn_json_key(&w, "refused");
    qn_json_open_object(&w);
    each_refusal(d, s, json_refusal, &w);
    qn_json_close(&w);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

static void print_totals(const QnPlan *p, const QnCost *total)
{
    QnPlanMemory m = qn_plan_memory(p);
    char flops[QN_STR_NUMBER], bytes[QN_STR_NUMBER], arena[QN_STR_NUMBER], bound[QN_STR_NUMBER],
        state[QN_STR_NUMBER], constant[QN_STR_NUMBER];
    printf("%lld steps, %s, %s moved; arena %s (no plan of this order could take less than "
           "%s), states %s, constants %s\n",
           (long long)qn_plan_n_steps(p), qn_str_unit(flops, total->flops, "FLOP"),
           qn_str_bytes(bytes, (uint64_t)(total->bytes_read + total->bytes_written)),
           qn_str_bytes(arena, (uint64_t)m.arena_bytes),
           qn_str_bytes(bound, (uint64_t)m.bound_bytes),
           qn_str_bytes(state, (uint64_t)m.state_bytes),
           qn_str_bytes(constant, (uint64_t)m.constant_bytes));
    int64_t launches = 0;
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++)
        launches += qn_plan_step(p, i).n_launched > 0;
    if (launches < qn_plan_n_steps(p))
        printf("%lld launches: steps in a row that are of one kernel share one\n",
               (long long)launches);
}

static QnStatus explain(const QnArgs *a, const QnDevice *d, const QnPlan *p)
{
    QnCost total = { 0 };
    Widths w = widths_of(p);
    if (!a->json)
        printf("step  %-*s  %-*s  %-*s  %10s  %10s  %-8s  %s\n", w.op, "node", w.kernel, "kernel",
               w.type, "result", "computes", "moves", "written", "layer");
    for (int64_t i = 0; i < qn_plan_n_steps(p); i++) {
        QnPlanStep step = qn_plan_step(p, i);
        total.flops += step.cost.flops;
        total.bytes_read += step.cost.bytes_read;
        total.bytes_written += step.cost.bytes_written;
        if (a->json)
            QN_TRY(json_step(d, i, &step));
        else
            print_step(a, d, i, &step, w);
    }
    if (!a->json)
        print_totals(p, &total);
    return QN_OK;
}

static int explain_model(const QnArgs *a)
{
    QnOnnxPlan p;
    QnOnnxPlanOptions o = { .device = a->text[DEVICE],
                            .threads = a->number[THREADS],
                            .batch = a->number[BATCH],
                            .dim_option = DIM,
                            .input_option = INPUT };
    QnStatus st = qn_onnx_plan_open(a, &o, &p);
    if (st == QN_OK)
        st = explain(a, p.device, p.plan);
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail_model(a, &p.problems);
    qn_onnx_plan_close(&p);
    return code;
}

static int run(QnArgs *a)
{
    QnSetup s;
    char threads[64];
    bool is_model = qn_cli_is_onnx(a->positional[0]);
    if (is_model && (a->text[SET] || a->text[EVAL])) {
        qn_fail(QN_EUSAGE, "--set and --eval are for recipes");
        return qn_cli_fail(a);
    }
    if (!is_model && (a->text[BATCH] || a->text[DIM] || a->text[INPUT])) {
        qn_fail(QN_EUSAGE, "--batch, --dim and --input are for ONNX models");
        return qn_cli_fail(a);
    }
    if (is_model)
        return explain_model(a);
    if (a->text[THREADS] && a->n_many < QN_ARGS_MAX) {
        snprintf(threads, sizeof threads, "train.threads=%lld", (long long)a->number[THREADS]);
        a->many[a->n_many++] = threads;
    }
    QnStatus st = qn_setup_open(&s, a->positional[0], a->many, a->n_many,
                                &(QnDeviceWish){ .name = a->text[DEVICE], .log = &a->log },
                                &(QnSessionOptions){ .training = true });
    if (st != QN_OK)
        return qn_cli_fail(a);
    st = explain(a, s.device, a->text[EVAL] ? s.session->eval_plan : s.session->train_plan);
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_explain = {
    .name = "explain",
    .summary = "Show what a recipe's step or an ONNX model runs: nodes, kernels, costs, memory",
    .usage = "RECIPE|MODEL.onnx [options]",
    .examples = "  quern explain recipes/fashion-mnist-demo.yaml\n"
                "  quern explain recipes/fashion-mnist-demo.yaml --why | less\n"
                "  quern explain model.onnx --batch 8 --why\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
