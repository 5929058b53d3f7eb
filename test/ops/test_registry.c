/* The generated list of operators: sorted, complete, found by name. */
#include "test.h"
#include "ops/registry.h"

extern const QnOp qn_op_add;

static void test_sorted_and_found(void **state)
{
    int n;
    const QnOp *const *all = qn_op_all(&n);
    assert_true(n > 40);
    for (int i = 0; i < n; i++) {
        assert_ptr_equal(qn_op_find(all[i]->name), all[i]);
        assert_true(i == 0 || strcmp(all[i - 1]->name, all[i]->name) < 0);
    }
    assert_ptr_equal(qn_op_find("add"), &qn_op_add);
}

static void test_unknown_names(void **state)
{
    static const char *const names[] = { "", "ad", "addx", "zzz", "Add" };
    for (int i = 0; i < QN_COUNT(names); i++)
        assert_null(qn_op_find(names[i]));
}
