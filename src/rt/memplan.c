#include "rt/memplan.h"

#include <stdlib.h>

static int64_t round_up(int64_t bytes, int64_t align)
{
    return (bytes + align - 1) / align * align;
}

static int by_size(const void *a, const void *b)
{
    const QnLife *x = *(QnLife *const *)a, *y = *(QnLife *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool overlap_in_time(const QnLife *a, const QnLife *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* placed[] is sorted by offset; inserts x at the lowest gap that fits. */
static void place(QnLife **placed, int64_t n, QnLife *x, int64_t align)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const QnLife *p = placed[i];
        if (!overlap_in_time(p, x))
            continue;
        if (p->offset - at >= x->bytes)
            break;
        at = QN_MAX(at, p->offset + round_up(p->bytes, align));
    }
    x->offset = at;
    int64_t i = n;
    for (; i > 0 && placed[i - 1]->offset > at; i--)
        placed[i] = placed[i - 1];
    placed[i] = x;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    if (x[0] != y[0])
        return x[0] < y[0] ? -1 : 1;
    return x[1] > y[1] ? -1 : x[1] < y[1]; /* at one step: births before deaths */
}

static QnStatus lower_bound(const QnLife *lives, int64_t n, int64_t *bound)
{
    int64_t(*event)[2] = qn_alloc_array((size_t)n * 2 + 1, sizeof *event);
    if (!event)
        return QN_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        event[2 * i][0] = lives[i].first;
        event[2 * i][1] = lives[i].bytes;
        event[2 * i + 1][0] = lives[i].last + 1;
        event[2 * i + 1][1] = -lives[i].bytes;
    }
    qsort(event, (size_t)n * 2, sizeof *event, by_time);
    int64_t now = 0, most = 0;
    for (int64_t i = 0; i < 2 * n;) {
        int64_t step = event[i][0];
        for (; i < 2 * n && event[i][0] == step; i++)
            now += event[i][1];
        most = QN_MAX(most, now);
    }
    *bound = most;
    qn_free(event);
    return QN_OK;
}

QnStatus qn_memplan(QnLife *lives, int64_t n, int64_t align, int64_t *total, int64_t *bound)
{
    QnLife **order = qn_alloc_array((size_t)n + 1, sizeof *order);
    QnLife **placed = qn_alloc_array((size_t)n + 1, sizeof *placed);
    QnStatus st = order && placed ? lower_bound(lives, n, bound) : QN_ENOMEM;
    if (st != QN_OK)
        goto done;
    for (int64_t i = 0; i < n; i++)
        order[i] = &lives[i];
    qsort(order, (size_t)n, sizeof *order, by_size);
    *total = 0;
    for (int64_t i = 0; i < n; i++) {
        place(placed, i, order[i], align);
        *total = QN_MAX(*total, order[i]->offset + round_up(order[i]->bytes, align));
    }
done:
    qn_free(order);
    qn_free(placed);
    return st;
}
