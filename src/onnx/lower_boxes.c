/* NonMaxSuppression: how many boxes it keeps hangs on their numbers, so that the host computes it.
 */
#include "onnx/mapping.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct Box {
    double y0, x0, y1, x1;
} Box;

typedef struct Candidate {
    double score;
    int64_t at;
} Candidate;

typedef struct Nms {
    int64_t batches, classes, boxes, most;
    double iou, score;
    bool has_score, by_centre;
    double *box, *scores; /* (batches,boxes,4), (batches,classes,boxes) */
    Candidate *candidate; /* boxes of them */
    int64_t *kept;        /* of one class */
    int64_t *out;         /* triples */
    int64_t n_out, cap_out;
} Nms;

static Box box_at(const Nms *s, int64_t batch, int64_t i)
{
    const double *b = s->box + (batch * s->boxes + i) * 4;
    if (s->by_centre)
        return (Box){ b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2 };
    return (Box){ QN_MIN(b[0], b[2]), QN_MIN(b[1], b[3]), QN_MAX(b[0], b[2]), QN_MAX(b[1], b[3]) };
}

static double area(const Box *b)
{
    return QN_MAX(b->y1 - b->y0, 0) * QN_MAX(b->x1 - b->x0, 0);
}

static double overlap(const Box *a, const Box *b)
{
    Box both = { QN_MAX(a->y0, b->y0), QN_MAX(a->x0, b->x0), QN_MIN(a->y1, b->y1),
                 QN_MIN(a->x1, b->x1) };
    double common = area(&both), all = area(a) + area(b) - common;
    return common > 0 && all > 0 ? common / all : 0;
}

/* By falling scores, equal ones by their number. */
static int compare(const void *a, const void *b)
{
    const Candidate *p = a, *q = b;
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    return p->at < q->at ? -1 : p->at > q->at;
}

static QnStatus keep(Nms *s, int64_t batch, int64_t class, int64_t at)
{
    if (s->n_out == s->cap_out) {
        int64_t cap = QN_MAX(2 * s->cap_out, 64);
        int64_t *more = qn_realloc(s->out, (size_t)cap * 3 * sizeof *more);
        if (!more)
            return QN_ENOMEM;
        s->out = more;
        s->cap_out = cap;
    }
    int64_t *to = s->out + 3 * s->n_out++;
    to[0] = batch;
    to[1] = class;
    to[2] = at;
    return QN_OK;
}

static QnStatus run_class(Nms *s, int64_t batch, int64_t class)
{
    const double *score = s->scores + (batch * s->classes + class) * s->boxes;
    int64_t n = 0, n_kept = 0;
    for (int64_t i = 0; i < s->boxes; i++)
        if (score[i] == score[i] && (!s->has_score || score[i] > s->score))
            s->candidate[n++] = (Candidate){ score[i], i };
    if (n)
        qsort(s->candidate, (size_t)n, sizeof *s->candidate, compare);
    for (int64_t i = 0; i < n && n_kept < s->most; i++) {
        Box b = box_at(s, batch, s->candidate[i].at);
        bool free = true;
        for (int64_t k = 0; free && k < n_kept; k++) {
            Box other = box_at(s, batch, s->kept[k]);
            free = overlap(&b, &other) <= s->iou;
        }
        if (!free)
            continue;
        s->kept[n_kept++] = s->candidate[i].at;
        QN_TRY(keep(s, batch, class, s->candidate[i].at));
    }
    return QN_OK;
}

static QnStatus read_inputs(QnOnnxNode *n, Nms *s)
{
    const QnTensor *boxes = n->in[0]->known, *scores = n->in[1]->known;
    const QnShape *b = &boxes->type.shape, *c = &scores->type.shape;
    if (boxes->text || scores->text || b->rank != 3 || c->rank != 3 || b->dim[2] != 4 ||
        b->dim[0] != c->dim[0] || b->dim[1] != c->dim[2])
        return qn_fail(QN_ESHAPE, "boxes must be (N,boxes,4), scores (N,classes,boxes)");
    s->batches = b->dim[0];
    s->boxes = b->dim[1];
    s->classes = c->dim[1];
    s->by_centre = qn_onnx_int(n, "center_point_box", 0) != 0;
    if (qn_onnx_has(n, 2))
        QN_TRY(qn_onnx_in_int(n, 2, &s->most));
    if (qn_onnx_has(n, 3))
        QN_TRY(qn_onnx_in_double(n, 3, &s->iou));
    s->has_score = qn_onnx_has(n, 4);
    if (s->has_score)
        QN_TRY(qn_onnx_in_double(n, 4, &s->score));
    int64_t n_box = qn_shape_count(b), n_score = qn_shape_count(c);
    s->box = qn_arena_array(n->arena, (size_t)n_box + 1, sizeof *s->box);
    s->scores = qn_arena_array(n->arena, (size_t)n_score + 1, sizeof *s->scores);
    s->candidate = qn_arena_array(n->arena, (size_t)s->boxes + 1, sizeof *s->candidate);
    s->kept = qn_arena_array(n->arena, (size_t)s->boxes + 1, sizeof *s->kept);
    if (!s->box || !s->scores || !s->candidate || !s->kept)
        return QN_ENOMEM;
    qn_dtype_to_f64(boxes->type.dtype, boxes->data, s->box, n_box);
    qn_dtype_to_f64(scores->type.dtype, scores->data, s->scores, n_score);
    return QN_OK;
}

static QnStatus import_nms(QnOnnxNode *n)
{
    Nms s = { 0 };
    QnStatus st = QN_OK;
    for (int i = 0; i < 5; i++) {
        if (i >= 2 && !qn_onnx_has(n, i))
            continue;
        QnStatus wait = qn_onnx_known(n, i) ? QN_OK : qn_onnx_wait();
        if (wait != QN_OK && wait != QN_ENOTFOUND)
            return wait;
    }
    if (n->want)
        return qn_onnx_wait();
    QN_TRY(read_inputs(n, &s));
    for (int64_t b = 0; st == QN_OK && b < s.batches; b++)
        for (int64_t c = 0; st == QN_OK && c < s.classes; c++)
            st = run_class(&s, b, c);
    QnTensor *t = st == QN_OK ? qn_onnx_tensor(n, QN_DTYPE_I64, &QN_SHAPE(s.n_out, 3)) : NULL;
    if (t && s.n_out)
        memcpy((void *)t->data, s.out, (size_t)s.n_out * 3 * sizeof *s.out);
    qn_free(s.out);
    return st == QN_OK ? qn_onnx_out_known(n, 0, t) : st;
}

const QnOnnxMap qn_onnx_boxes[] = {
    { "NonMaxSuppression", NULL, 10, 0, import_nms, NULL },
    { 0 },
};
