#include "test.h"

#include "base/fault.h"
#include "base/mem.h"

static void test_arena_zeroes_aligns_and_keeps(void **state)
{
    QnArena *arena = qn_arena_new();
    unsigned char *items[300];
    for (int i = 0; i < 300; i++) {
        size_t n = (size_t)(i * 37 % 9000);
        items[i] = qn_arena_alloc(arena, n);
        assert_non_null(items[i]);
        assert_int_equal((uintptr_t)items[i] % 16, 0);
        for (size_t j = 0; j < n; j++)
            assert_int_equal(items[i][j], 0);
        memset(items[i], i, n);
    }
    for (int i = 0; i < 300; i++)
        for (size_t j = 0; j < (size_t)(i * 37 % 9000); j++)
            assert_int_equal(items[i][j], i & 255);
    qn_arena_free(arena);
}

static void test_huge_sizes_are_refused(void **state)
{
    QnArena *arena = qn_arena_new();
    assert_null(qn_alloc_array(SIZE_MAX / 2, 4));
    assert_int_equal(qn_error_last()->code, QN_ENOMEM);
    assert_null(qn_arena_array(arena, SIZE_MAX / 2, 4));
    assert_null(qn_alloc_aligned(SIZE_MAX - 3));
    qn_arena_free(arena);
}

static void test_every_allocation_can_fail_once(void **state)
{
    qn_fault_arm(2);
    void *a = qn_alloc(8), *b = qn_alloc(8), *c = qn_alloc(8);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    assert_int_equal(qn_fault_events(), 3);
    qn_fault_arm(0);
    qn_free(a);
    qn_free(c);
}

static void test_grow_keeps_what_was_there(void **state)
{
    int *items = NULL;
    int64_t cap = 0;
    for (int n = 0; n < 1000; n++) {
        assert_ok(QN_GROW(items, cap, n));
        items[n] = n;
    }
    for (int n = 0; n < 1000; n++)
        assert_int_equal(items[n], n);
    qn_free(items);
}
