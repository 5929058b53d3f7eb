/* Convolutions of few channels: in the padded copy of a band the windows of neighbouring pixels lie
 * a fixed step apart, so that a register tile of them needs no pointers. */
#include "backend/cpu/isa/conv_band.h"

enum { VECS = QN_CONV_VECS, COLUMNS = QN_CONV_COLUMNS };

/* Rows of a window: n_runs of them, of `run` floats, `width` apart; windows are `step` apart. */
typedef struct Windows {
    int64_t n_runs, run, width, step, y_step;
    bool past; /* rows of y are whole cache lines, and too many for the caches */
} Windows;

QN_INLINE void store_tile(int mr, int nv, const Windows *w, QnVec s[QN_CONV_ROWS][VECS], float *y,
                          int n_rows, int64_t columns)
{
    if (columns < nv * VW) {
        QN_UNROLL for (int i = 0; i < mr; i++)
        {
            float *to = y + i * w->y_step;
            if (i < n_rows) {
                QN_UNROLL for (int j = 0; j < nv - 1; j++) qn_vec_store(to + j * VW, s[i][j]);
                qn_vec_store_lanes(to + (nv - 1) * VW, s[i][nv - 1], columns - (nv - 1) * VW);
            }
        }
        return;
    }
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        float *to = y + i * w->y_step;
        if (i < n_rows && w->past) {
            QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_stream(to + j * VW, s[i][j]);
        } else if (i < n_rows) {
            QN_UNROLL for (int j = 0; j < nv; j++) qn_vec_store(to + j * VW, s[i][j]);
        }
    }
}

/* mr pixels from x on, of which n_rows are stored; step: that of w, as a constant where it is 1. */
QN_INLINE void tile(int mr, int nv, int64_t step, const Windows *w, const float *x, const float *b,
                    const float *bias, float *y, int n_rows, int64_t columns)
{
    QnVec s[QN_CONV_ROWS][VECS];
    QN_UNROLL for (int i = 0; i < mr; i++)
    {
        QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] = qn_vec_load(bias + j * VW);
    }
    for (int64_t k = 0; k < w->n_runs; k++, x += w->width) {
        for (int64_t q = 0; q < w->run; q++, b += COLUMNS) {
            QnVec v[VECS];
            QN_UNROLL for (int j = 0; j < nv; j++) v[j] = qn_vec_load(b + j * VW);
            QN_UNROLL for (int i = 0; i < mr; i++)
            {
                QnVec a = qn_vec_set(x[i * step + q]);
                QN_UNROLL for (int j = 0; j < nv; j++) s[i][j] += a * v[j];
            }
        }
    }
    store_tile(mr, nv, w, s, y, n_rows, columns);
}

typedef void TileFn(const Windows *w, const float *x, const float *b, const float *bias, float *y,
                    int n_rows, int64_t columns);

#define TILE(m, v)                                                                                 \
    static void tile_##m##_##v(const Windows *w, const float *x, const float *b,                   \
                               const float *bias, float *y, int n_rows, int64_t columns)           \
    {                                                                                              \
        enum { M = QN_MIN(m, QN_CONV_MOST_ROWS(v)), V = QN_MIN(v, VECS) };                         \
        if (w->step == 1)                                                                          \
            tile(M, V, 1, w, x, b, bias, y, n_rows, columns);                                      \
        else                                                                                       \
            tile(M, V, w->step, w, x, b, bias, y, n_rows, columns);                                \
    }
#define TILES(m) TILE(m, 1) TILE(m, 2) TILE(m, 3) TILE(m, 4)
TILES(4)
TILES(6)
TILES(8)
TILES(10)
TILES(12)
TILES(14)

#define ROW_OF(m)                                                                                  \
    {                                                                                              \
        tile_##m##_1, tile_##m##_2, tile_##m##_3, tile_##m##_4                                     \
    }
static TileFn *const tiles[][4] = { ROW_OF(4),  ROW_OF(6),  ROW_OF(8),
                                    ROW_OF(10), ROW_OF(12), ROW_OF(14) };

/* Pixels of a tile, so that a row is cut into even parts. */
static int rows_for(int nv, int64_t out)
{
    int most = QN_CONV_MOST_ROWS(nv);
    int64_t n = QN_MAX((out + most - 1) / most, 1), rows = (out + n - 1) / n;
    return QN_MIN((int)QN_MAX(rows + rows % 2, 4), most);
}

void QN_ISA_NAME(qn_conv_rows)(const QnConvPass *p, const QnBand *b, const float *padded,
                               const float *packed, float *y, int64_t y_step, bool past)
{
    const QnConvAxis *outer = &p->axis[1], *inner = &p->axis[2];
    Windows w = { .n_runs = outer->k,
                  .run = inner->k * p->c,
                  .width = qn_band_padded_row(p) * p->c,
                  .step = inner->step * p->c,
                  .y_step = y_step,
                  .past = past };
    int64_t panel = qn_conv_panel(p, COLUMNS);
    for (int64_t o = b->begin; o < b->end; o++) {
        const float *x = padded + (o - b->begin) * outer->step * w.width;
        for (int64_t j = 0; j < p->m; j += COLUMNS) {
            const float *weights = packed + j / COLUMNS * panel;
            int64_t columns = QN_MIN((int64_t)COLUMNS, p->m - j);
            int nv = (int)((columns + VW - 1) / VW), rows = rows_for(nv, inner->out);
            TileFn *fn = tiles[(rows - 4) / 2][nv - 1];
            for (int64_t i = 0; i < inner->out; i += rows) {
                /* the last tile ends with the row, and meets the one before */
                int64_t at = QN_MAX(QN_MIN(i, inner->out - rows), 0);
                fn(&w, x + at * w.step, weights, weights + panel - COLUMNS,
                   y + ((o - b->begin) * inner->out + at) * y_step + j,
                   (int)QN_MIN(inner->out, rows), columns);
            }
        }
    }
}
