/* A planned step takes no memory from the C library: malloc and its kin are
 * replaced in this program, for all libraries that it loads, and count. labels:
 * train */
#include "toy.h"

#include "base/mem.h"

#include <errno.h>
#include <stdatomic.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_UNDEFINED__)
#define REPLACED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPLACED 0
#endif
#endif
#if !defined(REPLACED) && defined(__GLIBC__)
#define REPLACED 1
#elif !defined(REPLACED)
#define REPLACED 0
#endif

enum { STEPS = 10 };

static _Atomic int64_t calls;

#if REPLACED
/* glibc's own functions under the names that it keeps for those who replace
 * them. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

QN_API void *malloc(size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(bytes);
}

QN_API void *calloc(size_t n, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(n, bytes);
}

QN_API void *realloc(void *p, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(p, bytes);
}

QN_API void *memalign(size_t align, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(align, bytes);
}

QN_API void *aligned_alloc(size_t align, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(align, bytes);
}

QN_API int posix_memalign(void **out, size_t align, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    void *p = __libc_memalign(align, bytes);
    *out = p ? p : *out;
    return p ? 0 : ENOMEM;
}
#endif

#define CONV_NET                                                                                   \
    TOY_HEAD TOY_DATA ", 'model': {'layers': [{'conv': {'out': 16, 'kernel': "                     \
                      "3, 'bias': false}}, 'batch_norm', "                                         \
                      "'relu', {'max_pool': 2}, {'conv': {'out': 32, 'kernel': "                   \
                      "3, 'bias': false}}, "                                                       \
                      "'batch_norm', 'relu', {'max_pool': 2}, 'flatten', "                         \
                      "{'linear': 64}, 'relu', "                                                   \
                      "{'linear': 'outputs'}]}, 'train': {'epochs': 1, "                           \
                      "'batch': 16, 'lr': 0.01, "                                                  \
                      "'optimizer': {'name': 'adamw', 'weight_decay': 0.01}}}"

#define GPT                                                                                        \
    "{'task': 'language', 'data': {'format': 'text', 'train': 't.txt', "                           \
    "'window': 16}, "                                                                              \
    "'model': {'name': 'gpt2', 'layers': 2, 'heads': 2, 'width': 32, "                             \
    "'dropout': 0.1}, "                                                                            \
    "'train': {'steps': 20, 'batch': 8, 'lr': 0.01, "                                              \
    "'optimizer': {'name': 'adamw', 'clip_norm': 1}}}"

static int group_setup(void **state)
{
    char text[2000];
    for (int i = 0; i < 2000; i++)
        text[i] = "the cat\nsat on a mat. "[toy_noise((uint32_t)i) % 22];
    temp_file("t.txt", text, sizeof text);
    toy_images("a", 64);
    toy_images("b", 16);
    return 0;
}

/* Calls of the C library's allocator in ten steps after two. */
static int64_t calls_of(const char *text, const char *threads, const char *determinism)
{
    Toy t;
    QnStepResult r;
    char recipe[512];
    snprintf(recipe, sizeof recipe, "%s", toy_recipe("r.json", text));
    TOY_OPEN(&t, recipe, threads, determinism, NULL);
    int64_t rows = t.session->batch;
    size_t nx = qn_sample_x_bytes(&t.session->spec), ny = qn_sample_y_bytes(&t.session->spec);
    QnBatch b = { .x = calloc((size_t)rows, nx), .y = calloc((size_t)rows, ny), .count = rows };
    for (int64_t i = 0; i < rows; i++)
        assert_ok(qn_dataset_get(t.data.train, i, 0, 0, (char *)b.x + (size_t)i * nx,
                                 (char *)b.y + (size_t)i * ny));
    assert_ok(qn_session_step(t.session, &b, 0, 0.01, &r));
    assert_ok(qn_session_step(t.session, &b, 1, 0.01, &r));
    uint64_t own = qn_alloc_count();
    int64_t before = atomic_load(&calls);
    for (int64_t i = 2; i < 2 + STEPS; i++)
        assert_ok(qn_session_step(t.session, &b, i, 0.01, &r));
    int64_t n = atomic_load(&calls) - before;
    assert_int_equal(qn_alloc_count(), own);
    free(b.x);
    free(b.y);
    toy_close(&t);
    return n;
}

static void test_the_count_counts(void **state)
{
    if (!REPLACED)
        skip_because("malloc can be replaced only with glibc and without sanitizers");
    int64_t before = atomic_load(&calls);
    void *volatile p = malloc(10);
    p = realloc(p, 20);
    free(p);
    p = calloc(1, 10);
    free(p);
    p = aligned_alloc(64, 64);
    free(p);
    assert_int_equal(atomic_load(&calls) - before, 4);
    FILE *f = fopen("/dev/null", "r"); /* from inside of a library */
    assert_non_null(f);
    fclose(f);
    assert_true(atomic_load(&calls) - before > 4);
}

static void test_own_kernels_take_nothing(void **state)
{
    if (!REPLACED)
        skip_because("malloc can be replaced only with glibc and without sanitizers");
    static const char *const threads[] = { "train.threads=1", "train.threads=2" };
    for (int i = 0; i < QN_COUNT(threads); i++) {
        assert_int_equal(calls_of(CONV_NET, threads[i], "train.determinism=strict"), 0);
        assert_int_equal(calls_of(GPT, threads[i], "train.determinism=strict"), 0);
    }
}

/* oneDNN makes a list of arguments for every call; nothing of Quern's may come
 * on top. */
static void test_library_calls_take_little(void **state)
{
    if (!REPLACED)
        skip_because("malloc can be replaced only with glibc and without sanitizers");
    int64_t n = calls_of(CONV_NET, "train.threads=1", "train.determinism=run");
    print_message("%.1f calls of malloc a step\n", (double)n / STEPS);
#ifdef QN_HAVE_ONEDNN
    assert_true(n < STEPS * 300);
#else
    assert_int_equal(n, 0);
#endif
}
