#include "ops/rank.h"

#include "ops/ops.h"
#include "ops/whole.h"

#include <math.h>

/* A row's elements: floats, or integers (then x is NULL). */
typedef struct Row {
    const double *x;
    int64_t stride;
    const int64_t *whole;
    QnDtype dtype;
    bool descending;
} Row;

static bool goes_before(const Row *r, int64_t i, int64_t j)
{
    if (!r->x)
        return r->descending ? qn_whole_less(r->dtype, r->whole[j], r->whole[i])
                             : qn_whole_less(r->dtype, r->whole[i], r->whole[j]);
    double a = r->x[i * r->stride], b = r->x[j * r->stride];
    if (isnan(a) || isnan(b))
        return r->descending ? isnan(a) && !isnan(b) : !isnan(a) && isnan(b);
    return r->descending ? a > b : a < b;
}

/* Merge sort: stable, and n log n whatever the input. order: the indices of the n elements,
 * smallest first or with `descending` greatest first; NaN counts as the greatest. */
static void sort_row(const Row *r, int64_t n, int64_t *order, int64_t *scratch)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = QN_MIN(lo + width, n), hi = QN_MIN(lo + 2 * width, n);
            int64_t i = lo, j = mid, at = lo;
            while (at < hi) {
                bool right = i == mid || (j < hi && goes_before(r, order[j], order[i]));
                scratch[at++] = order[right ? j++ : i++];
            }
        }
        memcpy(order, scratch, (size_t)n * sizeof *order);
    }
}

QnStatus qn_rank_ref(const QnRefArgs *a, int axis, int64_t k, bool descending)
{
    if (qn_shape_count(&a->out_type[0]->shape) == 0)
        return QN_OK;
    QnRows r = qn_util_rows(&a->in_type[0]->shape, axis);
    int64_t *order = qn_alloc_array((size_t)r.n * 3 + 1, sizeof *order);
    if (!order)
        return QN_ENOMEM;
    int64_t *whole = order + 2 * r.n;
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t from = row / r.inner * r.n * r.inner + row % r.inner;
        int64_t to = row / r.inner * k * r.inner + row % r.inner;
        Row keys = { a->in[0] + from, r.inner, whole, a->in_type[0]->dtype, descending };
        for (int64_t i = 0; i < r.n && qn_whole_is(a); i++)
            whole[i] = qn_whole_at(a, 0, from + i * r.inner);
        if (qn_whole_is(a))
            keys.x = NULL;
        sort_row(&keys, r.n, order, order + r.n);
        for (int64_t i = 0; i < k; i++) {
            a->out[0][to + i * r.inner] = a->in[0][from + order[i] * r.inner];
            qn_whole_put(a, 1, to + i * r.inner, order[i]);
        }
    }
    qn_free(order);
    return QN_OK;
}

QnValue *qn_rank_grad(QnGraph *g, QnNode *n, QnValue *dy, int64_t axis)
{
    const QnType *t = &n->in[0]->type;
    if (!dy)
        return NULL;
    QnValue *zeros = qn_full(g, 0, t->dtype, &t->shape);
    return qn_scatter_elements(g, zeros, &n->out[1], dy, axis, QN_SCATTER_ADD);
}
