#include "base/mem.h"
#include "base/fault.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALL_ALIGN = 64, HUGE_ALIGN = 2 << 20, HUGE_FROM = 4 << 20, CHUNK_BYTES = 64 << 10 };

static _Atomic uint64_t alloc_count, alloc_bytes;

uint64_t qn_alloc_count(void)
{
    return atomic_load(&alloc_count);
}

uint64_t qn_alloc_bytes(void)
{
    return atomic_load(&alloc_bytes);
}

static bool may_alloc(size_t bytes)
{
    atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&alloc_bytes, bytes, memory_order_relaxed);
    return !qn_fault_hit();
}

static void *or_no_memory(void *p, size_t bytes)
{
    if (!p)
        qn_fail(QN_ENOMEM, "cannot allocate %zu bytes", bytes);
    return p;
}

void *qn_alloc(size_t bytes)
{
    return or_no_memory(may_alloc(bytes) ? calloc(1, bytes ? bytes : 1) : NULL, bytes);
}

void *qn_alloc_array(size_t count, size_t item_bytes)
{
    size_t bytes;
    if (qn_mul_overflow(count, item_bytes, &bytes)) {
        qn_fail(QN_ENOMEM, "%zu items of %zu bytes overflow the address space", count, item_bytes);
        return NULL;
    }
    return qn_alloc(bytes);
}

void *qn_realloc(void *p, size_t bytes)
{
    return or_no_memory(may_alloc(bytes) ? realloc(p, bytes ? bytes : 1) : NULL, bytes);
}

char *qn_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = qn_alloc(n);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

void qn_free(void *p)
{
    free(p);
}

static size_t aligned_size(size_t bytes, size_t align)
{
    return (bytes + align - 1) / align * align;
}

void *qn_alloc_aligned(size_t bytes)
{
    size_t align = bytes >= HUGE_FROM ? HUGE_ALIGN : SMALL_ALIGN;
    if (bytes > SIZE_MAX - align)
        return or_no_memory(NULL, bytes);
    size_t size = aligned_size(bytes ? bytes : 1, align);
    void *p = may_alloc(size) ? aligned_alloc(align, size) : NULL;
#ifdef MADV_HUGEPAGE
    if (p && align == HUGE_ALIGN)
        madvise(p, size, MADV_HUGEPAGE); /* advice only: a page fault a page is dear */
#endif
    return or_no_memory(p, bytes);
}

void qn_free_aligned(void *p, size_t bytes)
{
    (void)bytes;
    free(p);
}

QnStatus qn_grow(void **items, int64_t *cap, int64_t n, size_t item_bytes)
{
    if (n < *cap)
        return QN_OK;
    int64_t want = *cap ? *cap * 2 : 8;
    size_t bytes;
    if (qn_mul_overflow((size_t)want, item_bytes, &bytes))
        return qn_fail(QN_ENOMEM, "%lld items are too many", (long long)want);
    void *p = qn_realloc(*items, bytes);
    if (!p)
        return QN_ENOMEM;
    *items = p;
    *cap = want;
    return QN_OK;
}

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    QN_ALIGNED(16) unsigned char data[];
} Chunk;

struct QnArena {
    Chunk *chunks;
    size_t bytes, most; /* most 0: no limit */
};

QnArena *qn_arena_new(void)
{
    return qn_alloc(sizeof(QnArena));
}

void qn_arena_free(QnArena *arena)
{
    if (!arena)
        return;
    for (Chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        qn_free(c);
    }
    qn_free(arena);
}

void qn_arena_limit(QnArena *arena, size_t bytes)
{
    arena->most = bytes;
}

void *qn_arena_alloc(QnArena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return or_no_memory(NULL, bytes);
    size_t need = aligned_size(bytes ? bytes : 1, 16);
    Chunk *c = arena->chunks;
    if (!c || c->size - c->used < need) {
        size_t size = QN_MAX(need, (size_t)CHUNK_BYTES);
        if (arena->most && (size > arena->most || arena->bytes > arena->most - size)) {
            qn_fail(QN_ENOMEM, "%zu bytes are needed besides %zu; at most %zu may be taken", size,
                    arena->bytes, arena->most);
            return NULL;
        }
        c = qn_alloc(sizeof(Chunk) + size); /* zeroed, and never handed out twice */
        if (!c)
            return NULL;
        c->size = size;
        arena->bytes += size;
        bool keep_head = arena->chunks && size > CHUNK_BYTES; /* a big one leaves the head open */
        c->next = keep_head ? arena->chunks->next : arena->chunks;
        if (keep_head)
            arena->chunks->next = c;
        else
            arena->chunks = c;
    }
    void *p = c->data + c->used;
    c->used += need;
    return p;
}

void *qn_arena_array(QnArena *arena, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (qn_mul_overflow(count, item_bytes, &bytes))
        return or_no_memory(NULL, SIZE_MAX);
    return qn_arena_alloc(arena, bytes);
}

void *qn_arena_copy(QnArena *arena, const void *src, size_t bytes)
{
    void *p = qn_arena_alloc(arena, bytes);
    if (p && bytes)
        memcpy(p, src, bytes);
    return p;
}

char *qn_arena_strdup(QnArena *arena, const char *s)
{
    return qn_arena_copy(arena, s, strlen(s) + 1);
}

char *qn_arena_printf(QnArena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *s = n < 0 ? NULL : qn_arena_alloc(arena, (size_t)n + 1);
    if (!s)
        return NULL;
    va_start(args, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, args);
    va_end(args);
    return s;
}
