#include "cli/docs.h"
#include "ops/registry.h"

#include <inttypes.h>

static const char *const kinds[] = {
    [QN_ATTR_INT] = "integer", [QN_ATTR_FLOAT] = "number", [QN_ATTR_BOOL] = "bool",
    [QN_ATTR_ENUM] = "word",   [QN_ATTR_DTYPE] = "dtype",  [QN_ATTR_STRING] = "text",
    [QN_ATTR_INTS] = "list",   [QN_ATTR_DIMS] = "dims",    [QN_ATTR_DATA] = "data",
    [QN_ATTR_BODY] = "body",
};

static void print_inputs(FILE *out, const QnOp *op)
{
    if (op->n_in_max == QN_MAX_IN)
        fprintf(out, "%d or more", op->n_in);
    else if (op->n_in_max > op->n_in)
        fprintf(out, "%d to %d", op->n_in, op->n_in_max);
    else
        fprintf(out, "%d", op->n_in);
}

static const char *gradient_of(const QnOp *op)
{
    return op->grad ? "yes" : op->traits & QN_NO_GRAD ? "none" : op->lower ? "of its parts" : "no";
}

static const char *form_of(const QnOp *op)
{
    return op->map ? "map" : op->lower && !op->ref ? "composite" : "full";
}

/* Text in a cell of a table. */
static void put(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void print_row(FILE *out, const QnOp *op)
{
    fprintf(out, op->n_fields ? "| [`%s`](#%s) | " : "| `%s` | ", op->name, op->name);
    print_inputs(out, op);
    fprintf(out, " | %s | %s | %s | ", form_of(op), gradient_of(op),
            op->map || op->device ? "yes" : "no");
    if (op->version != 1)
        fprintf(out, "(version %d) ", op->version);
    put(out, op->doc);
    fprintf(out, " |\n");
}

static void print_default(FILE *out, const QnAttrField *f)
{
    switch (f->kind) {
    case QN_ATTR_INT: fprintf(out, "%" PRId64, (int64_t)f->def); break;
    case QN_ATTR_FLOAT: fprintf(out, "%g", f->def); break;
    case QN_ATTR_BOOL: fprintf(out, f->def != 0 ? "true" : "false"); break;
    case QN_ATTR_ENUM: fprintf(out, "%s", f->names[(int)f->def]); break;
    case QN_ATTR_DTYPE: fprintf(out, "%s", qn_dtype_name((QnDtype)f->def)); break;
    default: break; /* empty */
    }
}

static void print_field(FILE *out, const QnAttrField *f)
{
    fprintf(out, "| `%s` | %s | ", f->name, kinds[f->kind]);
    print_default(out, f);
    fprintf(out, " | ");
    put(out, f->doc ? f->doc : "");
    if (f->names) {
        fprintf(out, "%sone of", f->doc ? "; " : "");
        for (int i = 0; f->names[i]; i++)
            fprintf(out, "%s %s", i ? "," : "", f->names[i]);
    }
    if (f->max >= 1e9 && f->min > -1e9)
        fprintf(out, "%sat least %g", f->doc ? "; " : "", f->min);
    else if ((f->min != 0 || f->max != 0) && f->max < 1e9)
        fprintf(out, "%s%g to %g", f->doc ? "; " : "", f->min, f->max);
    fprintf(out, " |\n");
}

void qn_docs_operators(FILE *out)
{
    int n;
    const QnOp *const *ops = qn_op_all(&n);
    fprintf(
        out,
        "# Operators\n\n"
        "Written by `./do docs` from the operators' descriptors (`src/ops`); `quern ops` prints "
        "the same in a\nterminal. The functions that build them are declared in "
        "`quern/ops.h`.\n\n"
        "A *map* computes each element from elements at the same place, and is fused with its "
        "neighbours. A\n*composite* is made of other operators. *Device text* is OpenCL C and "
        "CUDA C.\n\n"
        "%d operators.\n\n"
        "| operator | inputs | form | gradient | device text | what it does |\n"
        "|---|---|---|---|---|---|\n",
        n);
    for (int i = 0; i < n; i++)
        print_row(out, ops[i]);
    fprintf(out, "\n# Attributes\n\nEmpty lists, dims and texts are the defaults where none is "
                 "given.\n");
    for (int i = 0; i < n; i++) {
        if (!ops[i]->n_fields)
            continue;
        fprintf(out, "\n## %s\n\n| attribute | kind | default | meaning |\n|---|---|---|---|\n",
                ops[i]->name);
        for (int k = 0; k < ops[i]->n_fields; k++)
            print_field(out, &ops[i]->fields[k]);
    }
}
