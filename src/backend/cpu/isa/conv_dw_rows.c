/* Gradient of a convolution of few input channels by its weights: each row of a window is a run of
 * floats in the padded copy of the band, broadcast against vectors of dy's channels. */
#include "backend/cpu/isa/conv_band.h"

/* sums[i][j] += sum over n pixels of x[pixel * x_step + i] * dy[pixel * dy_step + j], by mr numbers
 * of the run and nv vectors of channels; sums has m of those a row. */
QN_INLINE void tile(int mr, int nv, int64_t n, const float *x, int64_t x_step, const float *dy,
                    int64_t dy_step, float *sums, int64_t m)
{
    QnVec s[MR][NV];
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] = qn_vec_load(sums + i * m + j * VW);
    }
    for (int64_t t = 0; t < n; t++, x += x_step, dy += dy_step) {
        QnVec y[NV];
        QN_UNROLL for (int j = 0; j < nv; j++) y[j] = qn_vec_load(dy + j * VW);
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            QnVec a = qn_vec_set(x[i]);
            QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += a * y[j];
        }
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_store(sums + i * m + j * VW, s[i][j]);
    }
}

typedef void TileFn(int64_t n, const float *x, int64_t x_step, const float *dy, int64_t dy_step,
                    float *sums, int64_t m);

#define TILE(r, v)                                                                                 \
    static void tile_##r##_##v(int64_t n, const float *x, int64_t x_step, const float *dy,         \
                               int64_t dy_step, float *sums, int64_t m)                            \
    {                                                                                              \
        tile(QN_MIN(r, MR), QN_MIN(v, NV), n, x, x_step, dy, dy_step, sums, m);                    \
    }
#define TILES(r) TILE(r, 1) TILE(r, 2) TILE(r, 3)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
TILES(7)
TILES(9)
TILES(12)

#define ROW(r)                                                                                     \
    {                                                                                              \
        tile_##r##_1, tile_##r##_2, tile_##r##_3                                                   \
    }
static TileFn *const tiles[][3] = { ROW(1), ROW(2), ROW(3), ROW(4), ROW(5),
                                    ROW(6), ROW(7), ROW(9), ROW(12) };
static const int tile_rows[] = { 1, 2, 3, 4, 5, 6, 7, 9, 12 };

/* The largest tile of at most n rows. */
static int tile_for(int64_t n)
{
    int f = QN_COUNT(tile_rows) - 1;
    while (tile_rows[f] > QN_MIN(n, (int64_t)MR))
        f--;
    return f;
}

/* One row of output pixels with one row of their windows, a run of `run` floats each. */
static void add_run(int64_t run, int64_t m, int64_t n, const float *x, int64_t x_step,
                    const float *dy, int64_t dy_step, float *sums)
{
    for (int64_t i = 0; i < run;) {
        int f = tile_for(run - i);
        for (int64_t j = 0; j < m; j += NR) {
            int nv = (int)(QN_MIN((int64_t)NR, m - j) / VW);
            tiles[f][nv - 1](n, x + i, x_step, dy + j, dy_step, sums + i * m + j, m);
        }
        i += tile_rows[f];
    }
}

void QN_ISA_NAME(qn_conv_dw_rows)(const QnConvPass *p, const QnBand *b, const float *padded,
                                  const float *dy, int64_t dy_step, float *sums)
{
    const QnConvAxis *a = &p->axis[1], *inner = &p->axis[2];
    int64_t width = qn_band_padded_row(p) * p->c, run = inner->k * p->c;
    for (int64_t o = 0; o < b->end - b->begin; o++) {
        for (int64_t k = 0; k < a->k; k++)
            add_run(run, p->m, inner->out, padded + (o * a->step + k) * width, inner->step * p->c,
                    dy + o * inner->out * dy_step, dy_step, sums + k * run * p->m);
    }
}
