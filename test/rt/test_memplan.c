/* The memory planner: blocks that are alive together never overlap, and the arena is near the bound
 * below which nothing can go. */
#include "test.h"
#include "rt/memplan.h"

enum { MOST = 200 };

static uint64_t next(uint64_t *rng)
{
    *rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *rng >> 33;
}

static void make(uint64_t *rng, QnLife *l, int64_t n, int64_t steps)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t first = (int64_t)(next(rng) % (uint64_t)steps);
        int64_t length = (int64_t)(next(rng) % (next(rng) % 8 ? 4 : (uint64_t)steps));
        l[i] = (QnLife){ .bytes = (int64_t)(next(rng) % 5000) + (next(rng) % 10 == 0 ? 100000 : 0),
                         .first = first,
                         .last = QN_MIN(first + length, steps - 1) };
    }
}

/* The bound the slow way: the most bytes alive at any step. */
static int64_t most_alive(const QnLife *l, int64_t n, int64_t steps)
{
    int64_t most = 0;
    for (int64_t t = 0; t < steps; t++) {
        int64_t now = 0;
        for (int64_t i = 0; i < n; i++)
            now += l[i].first <= t && t <= l[i].last ? l[i].bytes : 0;
        most = QN_MAX(most, now);
    }
    return most;
}

static void check(const QnLife *l, int64_t n, int64_t total)
{
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(l[i].offset % QN_ARENA_ALIGN, 0);
        assert_true(l[i].offset >= 0 && l[i].offset + l[i].bytes <= total);
        for (int64_t k = 0; k < i; k++) {
            bool together = l[i].first <= l[k].last && l[k].first <= l[i].last;
            bool apart = l[i].offset + l[i].bytes <= l[k].offset ||
                         l[k].offset + l[k].bytes <= l[i].offset || !l[i].bytes || !l[k].bytes;
            assert_true(!together || apart);
        }
    }
}

static void test_random_lives(void **state)
{
    QnLife l[MOST];
    uint64_t rng = 1;
    double gap = 0;
    int plans = 500;
    for (int i = 0; i < plans; i++) {
        int64_t n = 1 + (int64_t)(next(&rng) % MOST), steps = 1 + (int64_t)(next(&rng) % 60);
        int64_t total, bound;
        make(&rng, l, n, steps);
        assert_ok(qn_memplan(l, n, QN_ARENA_ALIGN, &total, &bound));
        check(l, n, total);
        assert_int_equal(bound, most_alive(l, n, steps));
        assert_true(total >= bound);
        gap += bound ? (double)total / (double)bound - 1 : 0;
    }
    print_message("arena over bound: %.2f %% on average\n", 100 * gap / plans);
    assert_true(gap / plans < 0.12);
}

static void test_nothing_and_one(void **state)
{
    int64_t total = -1, bound = -1;
    assert_ok(qn_memplan(NULL, 0, QN_ARENA_ALIGN, &total, &bound));
    assert_true(total == 0 && bound == 0);
    QnLife one = { .bytes = 65, .first = 3, .last = 3, .offset = -1 };
    assert_ok(qn_memplan(&one, 1, QN_ARENA_ALIGN, &total, &bound));
    assert_true(one.offset == 0 && total == 128 && bound == 65);
}
