/* Memory. All of the library's heap memory passes here, so that failures can be injected
 * (base/fault.h) and allocations counted. */
#ifndef QN_BASE_MEM_H
#define QN_BASE_MEM_H

#include "base/status.h"

/* NULL with QN_ENOMEM recorded on failure; qn_alloc's memory is zeroed. free(NULL) is fine. */
void *qn_alloc(size_t bytes);
void *qn_alloc_array(size_t count, size_t item_bytes); /* refuses a product that overflows */
void *qn_realloc(void *p, size_t bytes);               /* grown part is not zeroed */
char *qn_strdup(const char *s);
/* qn_free is in quern/base.h. */

/* Aligned to 64 bytes (or to 2 MiB and advised for huge pages from 4 MiB on); not zeroed.
 * Freed by qn_free_aligned with the same size. */
void *qn_alloc_aligned(size_t bytes);
void qn_free_aligned(void *p, size_t bytes);

/* Calls of the allocators above since the process started, for tests. */
uint64_t qn_alloc_count(void);
uint64_t qn_alloc_bytes(void); /* that they asked for, all together */

/* Growable array helper: makes room for one more item of `*items` (capacity `*cap`, `n` used). */
QnStatus qn_grow(void **items, int64_t *cap, int64_t n, size_t item_bytes);
/* e.g. QN_TRY(QN_GROW(list->items, list->cap, list->n)); items may be NULL at first. */
#define QN_GROW(items, cap, n) qn_grow((void **)&(items), &(cap), (n), sizeof *(items))

/* Arena: a bump allocator freed whole. Not thread-safe; one owner. */
typedef struct QnArena QnArena;
QnArena *qn_arena_new(void);
void qn_arena_free(QnArena *arena); /* NULL is fine */
/* Refuses (ENOMEM) what would make it hold more than so many bytes. */
void qn_arena_limit(QnArena *arena, size_t bytes);
void *qn_arena_alloc(QnArena *arena, size_t bytes); /* zeroed, 16-byte aligned; NULL: ENOMEM */
void *qn_arena_array(QnArena *arena, size_t count, size_t item_bytes);
void *qn_arena_copy(QnArena *arena, const void *src, size_t bytes);
char *qn_arena_strdup(QnArena *arena, const char *s);
char *qn_arena_printf(QnArena *arena, const char *fmt, ...) QN_PRINTF(2, 3);

#endif
