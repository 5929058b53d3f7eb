#include "plan/split.h"

#include <math.h>
#include <string.h>

enum { SOME = 8, TWICE = 16 }; /* batches that are counted anyway */

enum { FIELDS = sizeof(QnPart) / sizeof(double) };

static double *field(QnPart *p, int i)
{
    return (double *)(void *)p + i;
}

/* a * x + b * y */
static QnPart combine(double x, QnPart a, double y, QnPart b)
{
    QnPart out;
    for (int i = 0; i < FIELDS; i++)
        *field(&out, i) = x * *field(&a, i) + y * *field(&b, i);
    return out;
}

QnPart qn_split_part(const QnPartLine *line, double batch)
{
    return combine(1, line->base, batch, line->slope);
}

/* ---- sums ---- */

/* Norms and sums of whole rows: each device of a tensor group has them all. */
static bool is_whole(const QnWork *w, double row_bytes)
{
    return strstr(w->op, "norm") || (!strcmp(w->op, "add") && w->written <= 1.05 * row_bytes);
}

static void add_product(QnPart *p, const QnWork *w, double tokens)
{
    double flops = w->count * w->flops;
    /* the tokens are not split: they are rows forward, depth in the gradient of the weights */
    bool by_depth = fabs(w->k - tokens) > 1 && w->k > 1.1 * w->n;
    p->gemm += flops;
    *(by_depth ? &p->depths : &p->columns) += flops / QN_MAX(w->k, 1);
    p->bytes += w->count * (w->read + w->written);
}

static void add_work(QnPart *p, const QnWork *w, double tokens, double row_bytes)
{
    double pairs = w->m * w->n * w->groups * w->count;
    if (!w->op) { /* small kernels that the graph does not have */
        p->kernels += w->count;
        return;
    }
    if (w->kind == QN_WORK_UPDATE || !strcmp(w->op, "cast"))
        return; /* once a step, not for each micro-batch */
    p->kernels += w->count;
    switch (w->kind) {
    case QN_WORK_GEMM:
    case QN_WORK_CONV:
    case QN_WORK_DEPTHWISE: add_product(p, w, tokens); return;
    case QN_WORK_ATTENTION:
        p->attention += w->count * w->flops;
        p->attention_full += pairs * w->k * (strstr(w->op, "grad") ? 8 : 4);
        p->scores += pairs;
        break;
    default: break;
    }
    if (w->kind != QN_WORK_ATTENTION && is_whole(w, row_bytes))
        p->bytes_whole += w->count * (w->read + w->written);
    else
        p->bytes += w->count * (w->read + w->written);
}

static QnPart sum_of(const QnCount *c, double width)
{
    QnPart p = { 0 };
    for (int64_t i = 0; i < c->n_work; i++)
        add_work(&p, &c->work[i], c->tokens, 2 * c->tokens * width);
    return p;
}

/* ---- what the graph says of itself ---- */

/* The least depth of a layer's products: what goes into them is as wide. */
static double width_of(const QnCount *c)
{
    double least = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].kind == QN_WORK_GEMM && c->work[i].count >= 2 &&
            (least == 0 || c->work[i].k < least))
            least = c->work[i].k;
    return floor(least);
}

static double classes_of(const QnCount *c)
{
    double most = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].op && !strncmp(c->work[i].op, "cross_entropy", 13))
            most = QN_MAX(most, c->work[i].written);
    return c->tokens > 0 ? most / (2 * c->tokens) : 0;
}

static double update_bytes_of(const QnCount *c)
{
    double bytes = 0;
    for (int64_t i = 0; i < c->n_work; i++)
        if (c->work[i].kind == QN_WORK_UPDATE)
            bytes += c->work[i].count * (c->work[i].read + c->work[i].written);
    return bytes / QN_MAX(c->params, 1);
}

/* ---- lines ---- */

typedef struct Counted {
    const QnCount *at[2]; /* by batch: SOME, TWICE */
} Counted;

static QnStatus count_both(QnCounts *counts, const QnModel *m, QnCountRequest *r, Counted *out)
{
    for (int i = 0; i < 2; i++) {
        r->batch = i ? TWICE : SOME;
        QN_TRY(qn_counts_get(counts, m, r, &out->at[i]));
    }
    return QN_OK;
}

static QnPartLine line_of(const Counted *c, double width)
{
    QnPart a = sum_of(c->at[0], width), b = sum_of(c->at[1], width);
    QnPartLine line;
    line.slope = combine(1.0 / (TWICE - SOME), b, -1.0 / (TWICE - SOME), a);
    line.base = combine(1, a, -SOME, line.slope);
    return line;
}

static QnPartLine combine_lines(double x, QnPartLine a, double y, QnPartLine b)
{
    return (QnPartLine){ combine(x, a.base, y, b.base), combine(x, a.slope, y, b.slope) };
}

static double kept_of(const Counted *c)
{
    return (c->at[1]->activations - c->at[0]->activations) / (TWICE - SOME);
}

static void set_flops(QnSplit *s)
{
    double n = (double)QN_MAX(s->layers, 0);
    QnPart layer = combine(1, s->layer_forward.slope, 1, s->layer_backward.slope);
    QnPart ends = combine(1, s->ends_forward.slope, 1, s->ends_backward.slope);
    s->flops = n * (layer.gemm + layer.attention_full) + ends.gemm + ends.attention_full;
}

static QnStatus split_whole(QnSplit *s, QnCounts *counts, QnCountRequest *r)
{
    Counted step, forward;
    QN_TRY(count_both(counts, s->model, r, &step));
    r->train = false;
    QN_TRY(count_both(counts, s->model, r, &forward));
    s->ends_forward = line_of(&forward, 0);
    s->ends_backward = combine_lines(1, line_of(&step, 0), -1, s->ends_forward);
    s->ends_params = step.at[0]->params;
    s->ends_kept = kept_of(&step);
    s->update_bytes = update_bytes_of(step.at[0]);
    set_flops(s);
    return QN_OK;
}

static QnStatus split_layers(QnSplit *s, QnArena *arena, QnCounts *counts, QnCountRequest *r)
{
    Counted few, more, few_forward, more_forward;
    QnModel *two = qn_arena_copy(arena, s->model, sizeof *two);
    QnModel *three = qn_arena_copy(arena, s->model, sizeof *three);
    if (!two || !three)
        return QN_ENOMEM;
    int at = s->model->family->layers - 1;
    s->layers = s->model->size[at];
    two->size[at] = 2;
    three->size[at] = 3;
    QN_TRY(count_both(counts, two, r, &few));
    QN_TRY(count_both(counts, three, r, &more));
    r->train = false;
    QN_TRY(count_both(counts, two, r, &few_forward));
    QN_TRY(count_both(counts, three, r, &more_forward));
    s->width = width_of(few_forward.at[0]);
    s->classes = classes_of(few.at[0]);
    QnPartLine f2 = line_of(&few_forward, s->width), f3 = line_of(&more_forward, s->width);
    QnPartLine s2 = line_of(&few, s->width), s3 = line_of(&more, s->width);
    s->layer_forward = combine_lines(1, f3, -1, f2);
    s->ends_forward = combine_lines(3, f2, -2, f3);
    s->layer_backward = combine_lines(1, combine_lines(1, s3, -1, s2), -1, s->layer_forward);
    s->ends_backward = combine_lines(1, combine_lines(3, s2, -2, s3), -1, s->ends_forward);
    s->layer_params = more.at[0]->params - few.at[0]->params;
    s->ends_params = few.at[0]->params - 2 * s->layer_params;
    s->layer_kept = kept_of(&more) - kept_of(&few);
    s->ends_kept = QN_MAX(0, kept_of(&few) - 2 * s->layer_kept);
    s->update_bytes = update_bytes_of(few.at[0]);
    set_flops(s);
    return QN_OK;
}

QnStatus qn_split_open(QnSplit *s, QnArena *arena, QnCounts *counts, const QnModel *m,
                       int64_t sequence, int low)
{
    *s = (QnSplit){ .model = m, .sequence = m->family->image ? 0 : sequence };
    if (!m->family->image && !s->sequence)
        s->sequence = m->family->sequence;
    QnCountRequest r = { .train = true, .low = low, .sequence = s->sequence };
    bool layered = m->family->layers && m->size[m->family->layers - 1] >= 2;
    return layered ? split_layers(s, arena, counts, &r) : split_whole(s, counts, &r);
}
