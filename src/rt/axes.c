#include "rt/axes.h"

/* Logical axes of a type of rank `rank` in the order of memory. */
static void memory_order(const QnType *t, int rank, int order[QN_MAX_RANK])
{
    int lead = rank - t->shape.rank, n = 0;
    bool last = t->layout == QN_LAYOUT_CHANNELS_LAST && t->shape.rank >= 3;
    for (int d = 0; d < rank; d++) {
        if (!last || d != lead + 1)
            order[n++] = d;
    }
    if (last)
        order[n] = lead + 1;
}

static bool reads_axis(const QnType *in, const QnType *out, int axis)
{
    int d = axis - (out->shape.rank - in->shape.rank);
    return d >= 0 && in->shape.dim[d] != 1;
}

/* Whether all tensors lie in memory as the output does, so that neighbours may be joined. */
static bool same_order(const QnNode *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const QnType *t = &n->in[i]->type, *y = &n->out[0].type;
        if (t->layout != y->layout ||
            (t->layout != QN_LAYOUT_PLAIN && t->shape.rank != y->shape.rank))
            return false;
    }
    return true;
}

static bool joins(const QnAxes *a, int n_in, int axis)
{
    for (int i = 0; i < n_in; i++) {
        if (a->reads[i][axis] != a->reads[i][axis - 1])
            return false;
    }
    return axis > 0;
}

/* Neighbours of the output are neighbours of what is read along its last axis. */
static bool can_do_four(const QnNode *n, const QnAxes *a)
{
    int last = a->n - 1;
    for (int i = 0; i < n->n_in && last >= 0; i++) {
        int innermost = last;
        for (int k = 0; k < a->n; k++) {
            if (a->reads[i][a->order[i][k]])
                innermost = a->order[i][k];
        }
        if (a->reads[i][last] && innermost != last)
            return false;
    }
    return last >= 0;
}

/* Axes in the order of the output's memory; those of length 1 are left out. */
void qn_axes_find(const QnNode *n, QnAxes *a)
{
    const QnType *y = &n->out[0].type;
    int rank = y->shape.rank, out_order[QN_MAX_RANK] = { 0 }, place[QN_MAX_RANK] = { 0 };
    bool join = same_order(n);
    *a = (QnAxes){ 0 };
    memory_order(y, rank, out_order);
    for (int k = 0; k < rank; k++) {
        int d = out_order[k];
        place[d] = -1;
        if (y->shape.dim[d] == 1)
            continue;
        a->dim[a->n] = y->shape.dim[d];
        for (int i = 0; i < n->n_in; i++)
            a->reads[i][a->n] = reads_axis(&n->in[i]->type, y, d);
        if (join && a->n > 0 && joins(a, n->n_in, a->n)) {
            a->dim[a->n - 1] *= a->dim[a->n];
        } else {
            place[d] = a->n++;
        }
    }
    for (int i = 0; i < n->n_in; i++) {
        int order[QN_MAX_RANK] = { 0 }, m = 0;
        memory_order(&n->in[i]->type, rank, order);
        for (int k = 0; k < rank; k++) {
            if (place[order[k]] >= 0)
                a->order[i][m++] = place[order[k]];
        }
    }
    a->by_four = can_do_four(n, a);
}
