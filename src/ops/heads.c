#include "ops/heads.h"

#include "ops/norm.h"

#include <math.h>

QnStatus qn_heads_check(QnInfer *c, const char *op, int i, int m)
{
    const QnShape *q = &c->in[i]->shape, *k = &c->in[i + 1]->shape, *v = &c->in[i + 2]->shape;
    char a[QN_TYPE_TEXT_BYTES], b[QN_TYPE_TEXT_BYTES], d[QN_TYPE_TEXT_BYTES];
    bool fits = q->rank == 4 && k->rank == 4 && v->rank == 4;
    for (int x = 0; fits && x < 4; x++) {
        QnDim dq = q->dim[x], dk = k->dim[x], dv = v->dim[x];
        if (x == 0 || x == 3) /* batch, and length of q and k */
            fits = dq == dk || dq < 0 || dk < 0;
        if (x < 3) /* batch, heads, keys */
            fits &= dk == dv || dk < 0 || dv < 0;
        if (x == 1)
            fits &= dq < 0 || dk < 0 || (dk > 0 && dq % dk == 0);
    }
    if (!fits)
        return qn_fail(QN_ESHAPE,
                       "%s: q %s, k %s, v %s; they must be (B,H,T,D), (B,G,S,D) and "
                       "(B,G,S,E), G a divisor of H",
                       op, qn_shape_text(q, a), qn_shape_text(k, b), qn_shape_text(v, d));
    if (!qn_norm_has(c, m))
        return QN_OK;
    const QnShape *mask = &c->in[m]->shape,
                  full = QN_SHAPE(q->dim[0], q->dim[1], q->dim[2], k->dim[2]);
    fits = mask->rank <= 4;
    for (int x = 1; fits && x <= mask->rank; x++) {
        QnDim e = mask->dim[mask->rank - x], want = full.dim[4 - x];
        fits = e == 1 || e == want || e < 0 || want < 0;
    }
    if (!fits)
        return qn_fail(QN_ESHAPE, "%s: the mask %s does not broadcast to %s", op,
                       qn_shape_text(mask, a), qn_shape_text(&full, b));
    return QN_OK;
}

QnHeads qn_heads_make(const QnHeadsAttr *a, const QnShape *q, const QnShape *k, const QnShape *v,
                      const QnShape *mask)
{
    QnHeads h = { .b = q->dim[0],
                  .h = q->dim[1],
                  .hkv = k->dim[1],
                  .t = q->dim[2],
                  .s = k->dim[2],
                  .d = q->dim[3],
                  .e = v->dim[3],
                  .causal = a->causal };
    h.scale = a->scale > 0 ? a->scale : 1 / sqrt((double)h.d);
    int64_t tight[QN_MAX_RANK];
    if (mask)
        qn_shape_strides(mask, tight);
    for (int i = 0; mask && i < mask->rank; i++)
        h.mask[4 - mask->rank + i] = mask->dim[i] == 1 ? 0 : tight[i];
    return h;
}

double qn_heads_pairs(const QnHeads *h)
{
    double n = 0;
    for (int64_t t = 0; h->causal && t < h->t; t++)
        n += (double)QN_MIN(QN_MAX(t + h->s - h->t + 1, 0), h->s);
    return (double)(h->b * h->h) * (h->causal ? n : (double)(h->t * h->s));
}

void qn_heads_args(const QnHeads *h, QnDeviceCall *c)
{
    const int64_t v[] = { h->b, h->h,       h->hkv,     h->t,       h->s,       h->d,
                          h->e, h->mask[0], h->mask[1], h->mask[2], h->mask[3], h->causal };
    for (int i = 0; i < QN_COUNT(v); i++)
        qn_device_int(c, v[i]);
    qn_device_float(c, h->scale);
}

double qn_heads_score(const QnHeads *h, const double *q, const double *k, const double *mask,
                      int64_t row, int64_t s)
{
    int64_t t = row % h->t, head = row / h->t % h->h, b = row / h->t / h->h;
    if (h->causal && s > t + h->s - h->t)
        return -INFINITY;
    const double *kr = k + ((b * h->hkv + head / (h->h / h->hkv)) * h->s + s) * h->d;
    double dot = 0;
    for (int64_t i = 0; i < h->d; i++)
        dot += q[row * h->d + i] * kr[i];
    int64_t at = b * h->mask[0] + head * h->mask[1] + t * h->mask[2] + s * h->mask[3];
    return dot * h->scale + (mask ? mask[at] : 0);
}
