/* Whatever bytes come: an error with a place, or a graph whose text reads back as itself. */
#include "base/str.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/registry.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    QnGraph *g, *again;
    if (qn_graph_parse((const char *)data, n, qn_op_find, &g) != QN_OK) {
        must(strstr(qn_error_last()->text, "line ") != NULL);
        return 0;
    }
    QnStr a = { 0 }, b = { 0 };
    must(qn_graph_verify(g) == QN_OK);
    if (qn_graph_print(g, &a) == QN_OK && a.n > 0) {
        must(qn_graph_parse(a.s, a.n, qn_op_find, &again) == QN_OK);
        must(qn_graph_print(again, &b) == QN_OK && a.n == b.n && !memcmp(a.s, b.s, a.n));
        qn_graph_free(again);
    }
    qn_str_fini(&a);
    qn_str_fini(&b);
    qn_graph_free(g);
    return 0;
}
