#include "ops/registry.h"
#include "ops/ops_list.h"

#include <string.h>

static const QnOp *const all[] = {
#define QN_X(name) &qn_op_##name,
    QN_OP_LIST(QN_X)
#undef QN_X
};

const QnOp *const *qn_op_all(int *n)
{
    *n = QN_COUNT(all);
    return all;
}

const QnOp *qn_op_find(const char *name)
{
    int lo = 0, hi = QN_COUNT(all); /* the generated list is sorted */
    while (lo < hi) {
        int mid = (lo + hi) / 2, order = strcmp(all[mid]->name, name);
        if (order == 0)
            return all[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const char *qn_op_name(const QnOp *op)
{
    return op->name;
}

const char *qn_op_doc(const QnOp *op)
{
    return op->doc;
}
