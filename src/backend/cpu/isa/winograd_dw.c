/* Gradient of a convolution by its filters, by Winograd's algorithm turned around: images and
 * gradients of outputs are transformed, multiplied over the tiles point by point, and the sums
 * transformed back to 3x3 taps. */
#include "backend/cpu/isa/winograd_maps.h"

#include <string.h>

void QN_ISA_NAME(qn_winograd_dw_tiles)(const QnWinograd *s, const float *x, const float *dy,
                                       float *v, float *e, int64_t first, int64_t t0, int64_t t1);
void QN_ISA_NAME(qn_winograd_dw_products)(const QnWinograd *s, const float *v, const float *e,
                                          int64_t n, bool add, float *sums, int64_t unit);
void QN_ISA_NAME(qn_winograd_dw_finish)(const QnWinograd *s, const float *sums, float *dw,
                                        int64_t unit);

/* ---- tiles ---- */

static const float zeros[VW] = { 0 };

static void transform_x(const QnWinograd *s, const float *x, int64_t tile, float *v)
{
    const float *at[QN_WINOGRAD_POINTS];
    int64_t point = s->block * s->c;
    wino_sources(s, wino_tile(s, tile), x, NULL, at);
    for (int64_t c = 0; c < s->c; c += VW) {
        QnVec d[QN_WINOGRAD_POINTS], points[QN_WINOGRAD_POINTS];
        QN_UNROLL for (int k = 0; k < QN_WINOGRAD_POINTS; k++) d[k] =
            qn_vec_load(at[k] ? at[k] + c : zeros);
        QN_WINO_BOTH(wino_pixels, 6, 6, d, points);
        for (int k = 0; k < QN_WINOGRAD_POINTS; k++)
            qn_vec_store(v + k * point + c, points[k]);
    }
}

static void transform_dy(const QnWinograd *s, const float *dy, int64_t tile, float *e)
{
    WinoTile t = wino_tile(s, tile);
    const float *from = dy + ((t.image * s->out_h + t.y) * s->out_w + t.x) * s->m;
    int64_t rows = s->out_h - t.y, columns = s->out_w - t.x, point = s->block * s->m;
    for (int64_t m = 0; m < s->m; m += VW) {
        QnVec d[16], points[QN_WINOGRAD_POINTS];
        QN_UNROLL for (int i = 0; i < 4; i++)
        {
            QN_UNROLL for (int j = 0; j < 4; j++) d[i * 4 + j] =
                qn_vec_load(i < rows && j < columns ? from + (i * s->out_w + j) * s->m + m : zeros);
        }
        QN_WINO_BOTH(wino_outputs_back, 4, 6, d, points);
        for (int k = 0; k < QN_WINOGRAD_POINTS; k++)
            qn_vec_store(e + k * point + m, points[k]);
    }
}

void QN_ISA_NAME(qn_winograd_dw_tiles)(const QnWinograd *s, const float *x, const float *dy,
                                       float *v, float *e, int64_t first, int64_t t0, int64_t t1)
{
    for (int64_t t = t0; t < t1; t++) {
        transform_x(s, x, t, v + (t - first) * s->c);
        transform_dy(s, dy, t, e + (t - first) * s->m);
    }
}

/* ---- products: sums[i][j] (+)= sum over n tiles of v[tile][i] * e[tile][j] ---- */

typedef struct Operands {
    const float *v, *e;
    float *sums;
    int64_t c, m, n; /* steps of v, of e and sums; tiles */
    bool add;
} Operands;

QN_INLINE void tile(int mr, int nv, const Operands *o, int64_t i0, int64_t j0)
{
    QnVec s[MR][NV];
    const float *v = o->v + i0, *e = o->e + j0;
    float *sums = o->sums + i0 * o->m + j0;
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] =
            o->add ? qn_vec_load(sums + i * o->m + j * VW) : qn_vec_set(0);
    }
    for (int64_t t = 0; t < o->n; t++, v += o->c, e += o->m) {
        QnVec y[NV];
        QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(e + j * VW);
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QnVec x = qn_vec_set(v[i]);
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += x * y[j];
        }
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_store(sums + i * o->m + j * VW, s[i][j]);
    }
}

typedef void TileFn(const Operands *o, int64_t i0, int64_t j0);

#define TILE(r, v)                                                                                 \
    static void tile_##r##_##v(const Operands *o, int64_t i0, int64_t j0)                          \
    {                                                                                              \
        tile(QN_MIN(r, MR), QN_MIN(v, NV), o, i0, j0);                                             \
    }
TILE(4, 1)
TILE(4, 2)
TILE(4, 3)
TILE(6, 1)
TILE(6, 2)
TILE(6, 3)
TILE(8, 1)
TILE(8, 2)
TILE(8, 3)
TILE(12, 1)
TILE(12, 2)
TILE(12, 3)

static TileFn *const tiles[][3] = { { tile_4_1, tile_4_2, tile_4_3 },
                                    { tile_6_1, tile_6_2, tile_6_3 },
                                    { tile_8_1, tile_8_2, tile_8_3 },
                                    { tile_12_1, tile_12_2, tile_12_3 } };
static const int tile_rows[] = { 4, 6, 8, 12 };

/* Sixteen channels are 12 + 4, 8 + 8, 6 + 6 + 4 or four times 4 rows. */
static int tallest(int64_t left)
{
    int i = QN_COUNT(tile_rows) - 1;
    while (i > 0 && (tile_rows[i] > left || tile_rows[i] > MR))
        i--;
    return i;
}

void QN_ISA_NAME(qn_winograd_dw_products)(const QnWinograd *s, const float *v, const float *e,
                                          int64_t n, bool add, float *sums, int64_t unit)
{
    Operands o = { .v = v + unit * s->block * s->c,
                   .e = e + unit * s->block * s->m,
                   .sums = sums + unit * s->c * s->m,
                   .c = s->c,
                   .m = s->m,
                   .n = n,
                   .add = add };
    for (int64_t j = 0; j < s->m; j += NR) {
        int vectors = (int)(QN_MIN((int64_t)NR, s->m - j) / VW);
        for (int64_t c = 0; c < s->c; c += QN_WINOGRAD_CHANNELS) {
            for (int64_t i = 0; i < QN_WINOGRAD_CHANNELS;) {
                int f = tallest(QN_WINOGRAD_CHANNELS - i);
                tiles[f][vectors - 1](&o, c + i, j);
                i += tile_rows[f];
            }
        }
    }
}

/* ---- taps ---- */

void QN_ISA_NAME(qn_winograd_dw_finish)(const QnWinograd *s, const float *sums, float *dw,
                                        int64_t unit)
{
    int64_t m1 = QN_MIN(s->m, (unit + 1) * NR), point = s->c * s->m;
    for (int64_t m = unit * NR; m < m1; m += VW) {
        for (int64_t c = 0; c < s->c; c++) {
            QnVec points[QN_WINOGRAD_POINTS], taps[9];
            QN_ALIGNED(64) float t[9][VW];
            QN_UNROLL for (int k = 0; k < QN_WINOGRAD_POINTS; k++) points[k] =
                qn_vec_load(sums + k * point + c * s->m + m);
            QN_WINO_BOTH(wino_taps_back, 6, 3, points, taps);
            for (int k = 0; k < 9; k++)
                qn_vec_store(t[k], taps[k]);
            for (int i = 0; i < VW; i++) {
                float *to = dw + ((m + i) * s->c + c) * 9;
                for (int k = 0; k < 9; k++)
                    to[k] = t[k][i];
            }
        }
    }
}
