#include "cli/cli.h"
#include "ops/registry.h"

#include <stdio.h>
#include <string.h>

static const QnOption options[] = {
    { .name = "--json", .kind = QN_OPTION_FLAG, .help = "one JSON object an operator" },
};

static const char *gradient_of(const QnOp *op)
{
    return op->grad ? "yes" : op->traits & QN_NO_GRAD ? "none" : op->lower ? "lowered" : "no";
}

static const char *form_of(const QnOp *op)
{
    return op->map ? "map" : op->lower && !op->ref ? "composite" : "full";
}

static QnStatus print_json(const QnOp *op)
{
    QnStr text = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &text, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "name", op->name);
    qn_json_put_int(&w, "version", op->version);
    qn_json_put_string(&w, "doc", op->doc);
    qn_json_put_string(&w, "form", form_of(op));
    qn_json_put_string(&w, "gradient", gradient_of(op));
    qn_json_put_bool(&w, "device_text", op->device != NULL);
    qn_json_key(&w, "attributes");
    qn_json_open_array(&w);
    for (int i = 0; i < op->n_fields; i++) {
        qn_json_open_object(&w);
        qn_json_put_string(&w, "name", op->fields[i].name);
        qn_json_put_string(&w, "doc", op->fields[i].doc ? op->fields[i].doc : "");
        qn_json_close(&w);
    }
    qn_json_close(&w);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&text);
    qn_str_fini(&text);
    return st;
}

static void print_one(const QnOp *op)
{
    printf("%s: %s\n  form %s, gradient %s, version %d, ", op->name, op->doc, form_of(op),
           gradient_of(op), op->version);
    if (op->n_in_max == QN_MAX_IN)
        printf("%d or more inputs\n", op->n_in);
    else if (op->n_in_max > op->n_in)
        printf("%d to %d inputs\n", op->n_in, op->n_in_max);
    else
        printf("%d input%s\n", op->n_in, op->n_in == 1 ? "" : "s");
    for (int i = 0; i < op->n_fields; i++)
        printf("  %-16s %s\n", op->fields[i].name, op->fields[i].doc ? op->fields[i].doc : "");
}

static QnStatus unknown_operator(const char *name, const QnOp *const *ops, int n)
{
    const char **names = qn_alloc_array((size_t)n, sizeof *names);
    for (int i = 0; names && i < n; i++)
        names[i] = ops[i]->name;
    const char *near = names ? qn_str_nearest(name, names, n) : NULL;
    qn_free(names);
    if (near)
        return qn_fail(QN_EUSAGE, "no operator '%s'; did you mean '%s'? quern ops lists them", name,
                       near);
    return qn_fail(QN_EUSAGE, "no operator '%s'; quern ops lists them", name);
}

static int run(QnArgs *a)
{
    int n;
    const QnOp *const *ops = qn_op_all(&n);
    if (a->n_positional) {
        const QnOp *op = qn_op_find(a->positional[0]);
        if (!op) {
            unknown_operator(a->positional[0], ops, n);
            return qn_cli_fail(a);
        }
        if (a->json)
            return print_json(op) == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
        print_one(op);
        return QN_EXIT_OK;
    }
    if (!a->json)
        printf("%-20s %-10s %-8s %s\n", "operator", "form", "gradient", "what it does");
    for (int i = 0; i < n; i++) {
        if (!a->json)
            printf("%-20s %-10s %-8s %s\n", ops[i]->name, form_of(ops[i]), gradient_of(ops[i]),
                   ops[i]->doc);
        else if (print_json(ops[i]) != QN_OK)
            return qn_cli_fail(a);
    }
    if (!a->json)
        printf("%d operators\n", n);
    return QN_EXIT_OK;
}

const QnCommand qn_cmd_ops = {
    .name = "ops",
    .summary = "List the operators, or describe one",
    .usage = "[NAME] [--json]",
    .examples = "  quern ops\n  quern ops conv\n  quern ops --json | head -1\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .max_positional = 1,
    .run = run,
};
