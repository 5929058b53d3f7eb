/* Winograd's convolution: a block of tiles is transformed, multiplied with the transformed filters
 * point by point, and transformed back, all in a worker's scratch memory. */
#include "backend/cpu/isa/winograd_maps.h"

#include <string.h>

static int64_t columns_of(const QnWinograd *s)
{
    return qn_winograd_panels(s, NR) * NR;
}

static int64_t scratch(const QnWinograd *s)
{
    return QN_WINOGRAD_POINTS * s->block * (s->c + columns_of(s)) + s->c;
}

/* ---- filters ---- */

static void load_taps(const QnWinograd *s, const float *w, int64_t c, int64_t m0, int64_t n,
                      float g[9][NR])
{
    for (int64_t j = 0; j < n; j++) {
        const float *from = w + c * s->wc + (m0 + j) * s->wm;
        for (int k = 0; k < 9; k++)
            g[k][j] = from[s->flip ? 8 - k : k];
    }
}

static void pack(const QnWinograd *s, const float *w, float *u, int64_t unit)
{
    QN_ALIGNED(64) float g[9][NR] = { { 0 } };
    int64_t m0 = unit * NR, n = QN_MIN((int64_t)NR, s->m - m0);
    int64_t point = columns_of(s) * s->c;
    for (int64_t c = 0; c < s->c; c++) {
        float *to = u + (unit * s->c + c) * NR;
        load_taps(s, w, c, m0, n, g);
        for (int v = 0; v < NV; v++) {
            QnVec taps[9], points[QN_WINOGRAD_POINTS];
            QN_UNROLL for (int k = 0; k < 9; k++) taps[k] = qn_vec_load(g[k] + v * VW);
            QN_WINO_BOTH(wino_taps, 3, 6, taps, points);
            for (int k = 0; k < QN_WINOGRAD_POINTS; k++)
                qn_vec_store(to + k * point + v * VW, points[k]);
        }
    }
}

/* ---- images in: v [36][c / VW][block][VW], so that a register tile's rows are VW apart ---- */

static void transform_in(const QnWinograd *s, const float *x, const float *zeros, int64_t t0,
                         int64_t n, float *v)
{
    int64_t point = s->block * s->c;
    for (int64_t t = 0; t < n; t++) {
        const float *at[QN_WINOGRAD_POINTS];
        wino_sources(s, wino_tile(s, t0 + t), x, zeros, at);
        for (int64_t c = 0; c < s->c; c += VW) {
            QnVec d[QN_WINOGRAD_POINTS], points[QN_WINOGRAD_POINTS];
            float *to = v + (c / VW * s->block + t) * VW;
            QN_UNROLL for (int k = 0; k < QN_WINOGRAD_POINTS; k++) d[k] = qn_vec_load(at[k] + c);
            QN_WINO_BOTH(wino_pixels, 6, 6, d, points);
            for (int k = 0; k < QN_WINOGRAD_POINTS; k++)
                qn_vec_store(to + k * point, points[k]);
        }
    }
}

/* ---- products: p[i][j] = sum over channels of v[i] * u[j], mr tiles by nv vectors ---- */

QN_INLINE void products(int mr, int nv, int64_t c, const float *v, int64_t v_step, const float *u,
                        float *p, int64_t p_step)
{
    QnVec s[MR][NV] = { { { 0 } } };
    for (int64_t k = 0; k < c; k += VW, v += v_step) {
        for (int t = 0; t < VW; t++, u += NR) {
            QnVec y[NV];
            QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(u + j * VW);
            QN_UNROLL for (int i = 0; i < mr; i++)
            {
                QnVec x = qn_vec_set(v[i * VW + t]);
                QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += x * y[j];
            }
        }
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_store(p + i * p_step + j * VW, s[i][j]);
    }
}

/* The last panel may be half full: its other vectors are not computed. */
static void panel(const QnWinograd *s, int64_t n, const float *v, const float *u, float *p,
                  int64_t m)
{
    int64_t step = columns_of(s);
    int vectors = (int)QN_MIN((int64_t)NV, (m + VW - 1) / VW);
    for (int64_t t = 0; t < n; t += MR) {
        if (vectors == NV)
            products(MR, NV, s->c, v + t * VW, s->block * VW, u, p + t * step, step);
        else if (vectors == 2)
            products(MR, QN_MIN(2, NV), s->c, v + t * VW, s->block * VW, u, p + t * step, step);
        else
            products(MR, 1, s->c, v + t * VW, s->block * VW, u, p + t * step, step);
    }
}

/* ---- images out ---- */

static void store_tile(const QnWinograd *s, const QnWinogradRun *r, WinoTile t, int64_t m,
                       const QnVec pixel[16])
{
    QnVec bias = r->bias ? qn_vec_load(r->bias + m) : qn_vec_set(0), zero = qn_vec_set(0);
    int64_t rows = QN_MIN((int64_t)QN_WINOGRAD_TILE, s->out_h - t.y);
    int64_t columns = QN_MIN((int64_t)QN_WINOGRAD_TILE, s->out_w - t.x);
    int64_t first = ((t.image * s->out_h + t.y) * s->out_w + t.x) * s->m + m;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            int64_t at = first + (i * s->out_w + j) * s->m;
            QnVec v = pixel[i * QN_WINOGRAD_TILE + j] + bias;
            if (r->more)
                v += qn_vec_load(r->more + at);
            if (s->relu) /* NaN passes, as it does through the operator */
                v = qn_vec_pick(v < zero, zero, v);
            qn_vec_store(r->y + at, v);
        }
    }
}

static void transform_out(const QnWinograd *s, const QnWinogradRun *r, const float *p, int64_t t0,
                          int64_t n)
{
    int64_t step = columns_of(s), point = s->block * step;
    for (int64_t t = 0; t < n; t++) {
        WinoTile tile = wino_tile(s, t0 + t);
        for (int64_t m = 0; m < s->m; m += VW) {
            QnVec points[QN_WINOGRAD_POINTS], pixels[16];
            const float *from = p + t * step + m;
            QN_UNROLL for (int k = 0; k < QN_WINOGRAD_POINTS; k++) points[k] =
                qn_vec_load(from + k * point);
            QN_WINO_BOTH(wino_outputs, 6, 4, points, pixels);
            store_tile(s, r, tile, m, pixels);
        }
    }
}

static void block(const QnWinograd *s, const QnWinogradRun *r, int64_t unit, float *work)
{
    int64_t t0 = unit * s->block, n = QN_MIN(s->block, s->tiles - t0);
    int64_t whole = (n + MR - 1) / MR * MR, columns = columns_of(s);
    float *v = work, *p = v + QN_WINOGRAD_POINTS * s->block * s->c;
    float *zeros = p + QN_WINOGRAD_POINTS * s->block * columns;
    memset(zeros, 0, (size_t)s->c * sizeof *zeros);
    transform_in(s, r->x, zeros, t0, n, v);
    for (int64_t row = 0; whole > n && row < QN_WINOGRAD_POINTS * s->c / VW; row++)
        memset(v + (row * s->block + n) * VW, 0, (size_t)((whole - n) * VW) * sizeof *v);
    for (int64_t k = 0; k < QN_WINOGRAD_POINTS; k++) {
        for (int64_t m = 0; m < s->m; m += NR)
            panel(s, whole, v + k * s->block * s->c, r->u + (k * columns + m) * s->c,
                  p + k * s->block * columns + m, s->m - m);
    }
    transform_out(s, r, p, t0, n);
}

void QN_ISA_NAME(qn_winograd_dw_tiles)(const QnWinograd *s, const float *x, const float *dy,
                                       float *v, float *e, int64_t first, int64_t t0, int64_t t1);
void QN_ISA_NAME(qn_winograd_dw_products)(const QnWinograd *s, const float *v, const float *e,
                                          int64_t n, bool add, float *sums, int64_t unit);
void QN_ISA_NAME(qn_winograd_dw_finish)(const QnWinograd *s, const float *sums, float *dw,
                                        int64_t unit);

const QnWinogradFns QN_ISA_NAME(qn_winograd_fns) = {
    .mr = MR,
    .nr = NR,
    .pack = pack,
    .scratch = scratch,
    .block = block,
    .dw_tiles = QN_ISA_NAME(qn_winograd_dw_tiles),
    .dw_products = QN_ISA_NAME(qn_winograd_dw_products),
    .dw_finish = QN_ISA_NAME(qn_winograd_dw_finish),
};
