#include "ops/rank.h"

#include "ops/ops.h"

#include <math.h>

static bool goes_before(double a, double b, bool descending)
{
    if (isnan(a) || isnan(b))
        return descending ? isnan(a) && !isnan(b) : !isnan(a) && isnan(b);
    return descending ? a > b : a < b;
}

/* Merge sort: stable, and n log n whatever the input. */
void qn_rank_sort(const double *x, int64_t n, int64_t stride, bool descending, int64_t *order,
                  int64_t *scratch)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = QN_MIN(lo + width, n), hi = QN_MIN(lo + 2 * width, n);
            int64_t i = lo, j = mid, at = lo;
            while (at < hi) {
                bool right = i == mid || (j < hi && goes_before(x[order[j] * stride],
                                                                x[order[i] * stride], descending));
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
    int64_t *order = qn_alloc_array((size_t)r.n * 2 + 1, sizeof *order);
    if (!order)
        return QN_ENOMEM;
    for (int64_t row = 0; row < r.outer * r.inner; row++) {
        int64_t from = row / r.inner * r.n * r.inner + row % r.inner;
        int64_t to = row / r.inner * k * r.inner + row % r.inner;
        qn_rank_sort(a->in[0] + from, r.n, r.inner, descending, order, order + r.n);
        for (int64_t i = 0; i < k; i++) {
            a->out[0][to + i * r.inner] = a->in[0][from + order[i] * r.inner];
            a->out[1][to + i * r.inner] = (double)order[i];
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
