/* What every unit test includes first: cmocka (whose header wants these four before it) and a few
 * checks that print Quern's error record when they fail. */
#ifndef QN_TEST_TEST_H
#define QN_TEST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

/* The call must succeed. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        QnStatus st_ = (call);                                                                     \
        if (st_ != QN_OK)                                                                          \
            fail_msg("%s: %s: %s", #call, qn_status_name(st_), qn_error_last()->text);             \
    } while (0)

/* The call must fail with this status and a text that contains `words`. */
#define assert_fails(call, status, words)                                                          \
    do {                                                                                           \
        QnStatus st_ = (call);                                                                     \
        if (st_ != (status))                                                                       \
            fail_msg("%s: %s, expected %s", #call, qn_status_name(st_), qn_status_name(status));   \
        if (!strstr(qn_error_last()->text, (words)))                                               \
            fail_msg("%s: no \"%s\" in \"%s\"", #call, (words), qn_error_last()->text);            \
    } while (0)

#define assert_contains(text, words)                                                               \
    do {                                                                                           \
        if (!strstr((text), (words)))                                                              \
            fail_msg("no \"%s\" in \"%s\"", (words), (text));                                      \
    } while (0)

/* Leaves the test, saying why; it then counts as skipped, not as passed. */
#define skip_because(...)                                                                          \
    do {                                                                                           \
        print_message("skipped: " __VA_ARGS__);                                                    \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

#endif
