#include "cli/docs.h"

#include <stdio.h>
#include <string.h>

typedef struct Page {
    const char *name;
    void (*print)(FILE *out);
} Page;

static const Page pages[] = {
    { "onnx.md", qn_docs_onnx },
    { "operators.md", qn_docs_operators },
    { "quern.1", qn_docs_manual },
};

static int run(QnArgs *a)
{
    for (int i = 0; i < QN_COUNT(pages); i++) {
        if (!a->n_positional)
            puts(pages[i].name);
        else if (!strcmp(a->positional[0], pages[i].name))
            pages[i].print(stdout);
    }
    return QN_EXIT_OK;
}

const QnCommand qn_cmd_docs = {
    .name = "docs",
    .summary = "Print a page of docs/ that is made from tables; without a name, list them",
    .usage = "[PAGE]",
    .max_positional = 1,
    .hidden = true,
    .run = run,
};
