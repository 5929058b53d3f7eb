/* docs/onnx.md: which operators of ONNX are read, as what, and which are not. */
#include "cli/docs.h"

#include "base/str.h"
#include "onnx/mapping.h"
#include "onnx/spec.h"

#include <stdlib.h>
#include <string.h>

typedef struct Row { /* of the table; a mapping row each */
    QnMapping m;
} Row;

static const char *domain_of(const Row *r)
{
    return r->m.map->domain ? r->m.map->domain : "";
}

static int by_name(const void *a, const void *b)
{
    const Row *x = a, *y = b;
    int order = strcmp(domain_of(x), domain_of(y));
    order = order ? order : strcmp(x->m.map->name, y->m.map->name);
    return order ? order : x->m.map->since - y->m.map->since;
}

static bool is_same(const Row *a, const Row *b)
{
    return !strcmp(a->m.map->name, b->m.map->name) && !strcmp(domain_of(a), domain_of(b));
}

/* As it is read, or by any operator's own hand. */
static bool is_exported(const QnMapping *m)
{
    int n;
    const QnOp *const *ops = qn_op_all(&n);
    if (m->op && !m->op->onnx_put && !m->map->import)
        return true;
    for (int i = 0; i < n; i++)
        if (!m->map->domain && qn_str_is_listed(ops[i]->onnx_writes, m->map->name))
            return true;
    return false;
}

static void print_opsets(FILE *out, const Row *row, int n)
{
    for (int i = 0; i < n; i++) {
        const QnOnnxMap *m = row[i].m.map;
        int until = m->until;
        while (i + 1 < n && until && row[i + 1].m.map->since == until + 1)
            until = row[++i].m.map->until; /* rows that follow each other */
        fprintf(out, m->since == until ? "%d" : "%d–", m->since);
        if (until > m->since)
            fprintf(out, "%d", until);
        fprintf(out, i + 1 < n ? ", " : "");
    }
}

static void print_ours(FILE *out, const Row *row, int n)
{
    for (int i = 0; i < n; i++) {
        bool again = false;
        for (int k = 0; k < i; k++)
            again |= row[k].m.op == row[i].m.op;
        if (again)
            continue;
        fprintf(out, i ? ", " : "");
        fprintf(out, row[i].m.op ? "[`%s`](operators.md)" : "composition",
                row[i].m.op ? row[i].m.op->name : "");
    }
}

static void print_table(FILE *out, const Row *row, int n)
{
    fprintf(out, "| ONNX operator | domain | opsets | Quern's | written by `quern export` |\n"
                 "|---|---|---|---|---|\n");
    for (int i = 0, next; i < n; i = next) {
        bool exported = is_exported(&row[i].m);
        for (next = i + 1; next < n && is_same(&row[i], &row[next]); next++)
            exported |= is_exported(&row[next].m);
        fprintf(out, "| %s | %s | ", row[i].m.map->name, domain_of(&row[i]));
        print_opsets(out, row + i, next - i);
        fprintf(out, " | ");
        print_ours(out, row + i, next - i);
        fprintf(out, " | %s |\n", exported ? "yes" : "no");
    }
}

static bool is_read(const Row *row, int n, const char *domain, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(row[i].m.map->name, name) && !strcmp(domain_of(&row[i]), domain))
            return true;
    return false;
}

static void print_missing(FILE *out, const Row *row, int n)
{
    for (const QnOnnxDomain *d = qn_onnx_spec; d->name; d++) {
        int all = 0, missing = 0;
        for (; d->name[all]; all++)
            missing += !is_read(row, n, d->domain, d->name[all]);
        fprintf(out, "- %s: %d of %d are read", d->domain[0] ? d->domain : "the default domain",
                all - missing, all);
        for (int i = 0, k = 0; i < all; i++)
            if (!is_read(row, n, d->domain, d->name[i]))
                fprintf(out, "%s%s", k++ ? ", " : "; not ", d->name[i]);
        fprintf(out, ".\n");
    }
}

void qn_docs_onnx(FILE *out)
{
    int n = 0;
    QnMapping m;
    for (int64_t i = 0; qn_mapping_next(&i, &m);)
        n++;
    Row *row = qn_alloc_array((size_t)n + 1, sizeof *row);
    if (!row)
        return;
    n = 0;
    for (int64_t i = 0; qn_mapping_next(&i, &m);)
        row[n++] = (Row){ m };
    qsort(row, (size_t)n, sizeof *row, by_name);
    fprintf(out,
            "# ONNX operators\n\n"
            "Written by `./do docs` from the tables that the reader runs by. A *composition* is "
            "made of several of\nQuern's operators, or computed while the model is read, from "
            "elements that must be known then. The\nlast opset is the newest where none is "
            "given.\n\n");
    print_table(out, row, n);
    fprintf(out, "\n# Beside the specification\n\n"
                 "Of the operators that the specification names:\n\n");
    print_missing(out, row, n);
    fprintf(out,
            "\nOf the cases of ONNX's own suite that libonnx-testdata holds, those that do not "
            "pass stand with their\nreasons in "
            "[test/onnx/refused.txt](../test/onnx/refused.txt), which a test compares with "
            "what happens.\n`./do test-onnx-new` runs the cases of the newest release.\n");
    qn_free(row);
}
