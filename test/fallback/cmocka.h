/* The part of cmocka's interface that the tests use, for machines without cmocka (another
 * architecture's, for one). Failures print and leave the test; nothing is mocked. */
#ifndef QN_TEST_FALLBACK_CMOCKA_H
#define QN_TEST_FALLBACK_CMOCKA_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test;
    CMFixtureFunction setup, teardown;
};

#define cmocka_unit_test(f) cmocka_unit_test_setup_teardown(f, NULL, NULL)
#define cmocka_unit_test_setup_teardown(f, s, t)                                                   \
    {                                                                                              \
#f, f, s, t                                                                                \
    }
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
    fallback_run(name, tests, (int)(sizeof(tests) / sizeof *(tests)), setup, teardown)

enum { FALLBACK_FAILED = 1, FALLBACK_SKIPPED };

static jmp_buf fallback_leave;

__attribute__((unused, noreturn, format(printf, 3, 4))) static void
fallback_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("%s:%d: ", file, line);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    longjmp(fallback_leave, FALLBACK_FAILED);
}

#define print_message(...) printf(__VA_ARGS__)
#define print_error(...)   printf(__VA_ARGS__)
#define skip()             longjmp(fallback_leave, FALLBACK_SKIPPED)
#define fail_msg(...)      fallback_fail(__FILE__, __LINE__, __VA_ARGS__)
#define fail()             fail_msg("failed")

#define assert_true(x)                                                                             \
    do {                                                                                           \
        if (!(x))                                                                                  \
            fail_msg("not true: %s", #x);                                                          \
    } while (0)
#define assert_false(x)    assert_true(!(x))
#define assert_null(p)     assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)

#define fallback_compare(a, op, b)                                                                 \
    do {                                                                                           \
        unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b);             \
        if (!(a_ op b_))                                                                           \
            fail_msg("%s " #op " %s does not hold: %lld, %lld", #a, #b, (long long)a_,             \
                     (long long)b_);                                                               \
    } while (0)
#define assert_int_equal(a, b)     fallback_compare(a, ==, b)
#define assert_int_not_equal(a, b) fallback_compare(a, !=, b)
#define assert_ptr_equal(a, b)     assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b) assert_true((const void *)(a) != (const void *)(b))
#define assert_in_range(x, low, high)                                                              \
    do {                                                                                           \
        fallback_compare(x, >=, low);                                                              \
        fallback_compare(x, <=, high);                                                             \
    } while (0)

#define assert_float_equal(a, b, epsilon)                                                          \
    do {                                                                                           \
        double fa_ = (double)(a), fb_ = (double)(b);                                               \
        if (!(fabs(fa_ - fb_) <= (double)(epsilon)))                                               \
            fail_msg("%s and %s differ: %.9g, %.9g", #a, #b, fa_, fb_);                            \
    } while (0)
#define assert_double_equal assert_float_equal

#define assert_string_equal(a, b)                                                                  \
    do {                                                                                           \
        const char *sa_ = (a), *sb_ = (b);                                                         \
        if (strcmp(sa_, sb_) != 0)                                                                 \
            fail_msg("\"%s\" != \"%s\"", sa_, sb_);                                                \
    } while (0)
#define assert_string_not_equal(a, b)    assert_true(strcmp((a), (b)) != 0)
#define assert_memory_equal(a, b, n)     assert_true(memcmp((a), (b), (n)) == 0)
#define assert_memory_not_equal(a, b, n) assert_true(memcmp((a), (b), (n)) != 0)

/* 0: passed, otherwise how the test was left. */
static int fallback_run_one(const struct CMUnitTest *test, void **state)
{
    int how = setjmp(fallback_leave);
    if (how == 0)
        test->test(state);
    return how;
}

__attribute__((unused)) static int fallback_run(const char *name, const struct CMUnitTest *tests,
                                                int n, CMFixtureFunction setup,
                                                CMFixtureFunction teardown)
{
    static const char *const words[] = { "OK", "FAILED", "SKIPPED" };
    int failed = 0;
    void *group = NULL;
    if (setup && setup(&group) != 0) {
        printf("%s: the group's setup failed\n", name);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        void *state = group;
        int how = tests[i].setup && tests[i].setup(&state) != 0 ? FALLBACK_FAILED : 0;
        if (how == 0)
            how = fallback_run_one(&tests[i], &state);
        if (tests[i].teardown && tests[i].teardown(&state) != 0)
            how = FALLBACK_FAILED;
        printf("[ %s ] %s.%s\n", words[how], name, tests[i].name);
        fflush(stdout);
        failed += how == FALLBACK_FAILED;
    }
    if (teardown && teardown(&group) != 0)
        failed++;
    printf("%s: %d of %d failed\n", name, failed, n);
    return failed;
}

#endif
