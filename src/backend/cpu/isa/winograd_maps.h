/* The small linear maps of Winograd's algorithm on vectors of channels; see backend/cpu/winograd.h.
 * With the points 0, a, -a, b, -b, infinity, where a b = 1. */
#ifndef QN_BACKEND_CPU_ISA_WINOGRAD_MAPS_H
#define QN_BACKEND_CPU_ISA_WINOGRAD_MAPS_H

#include "backend/cpu/isa/simd.h"
#include "backend/cpu/winograd.h"

#define QN_WINO_A  (2.0f / 3.0f)
#define QN_WINO_B  (3.0f / 2.0f)
#define QN_WINO_A2 (QN_WINO_A * QN_WINO_A)
#define QN_WINO_B2 (QN_WINO_B * QN_WINO_B)
#define QN_WINO_CA (1.0f / (2.0f * QN_WINO_A2 * (QN_WINO_A2 - QN_WINO_B2)))
#define QN_WINO_CB (1.0f / (2.0f * QN_WINO_B2 * (QN_WINO_B2 - QN_WINO_A2)))

/* Six pixels: the columns of B. Steps are in vectors. */
QN_INLINE void wino_pixels(const QnVec *d, int step, QnVec *t, int t_step)
{
    QnVec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
          d5 = d[5 * step];
    QnVec even_a = d4 - QN_WINO_B2 * d2, odd_a = QN_WINO_A * (d3 - QN_WINO_B2 * d1);
    QnVec even_b = d4 - QN_WINO_A2 * d2, odd_b = QN_WINO_B * (d3 - QN_WINO_A2 * d1);
    t[0] = d0 - (QN_WINO_A2 + QN_WINO_B2) * d2 + d4;
    t[t_step] = even_a + odd_a;
    t[2 * t_step] = even_a - odd_a;
    t[3 * t_step] = even_b + odd_b;
    t[4 * t_step] = even_b - odd_b;
    t[5 * t_step] = d1 - (QN_WINO_A2 + QN_WINO_B2) * d3 + d5;
}

/* Three taps: the rows of G. */
QN_INLINE void wino_taps(const QnVec *g, int step, QnVec *u, int u_step)
{
    QnVec g0 = g[0], g1 = g[step], g2 = g[2 * step];
    QnVec even_a = QN_WINO_CA * (g0 + QN_WINO_A2 * g2), odd_a = QN_WINO_CA * QN_WINO_A * g1;
    QnVec even_b = QN_WINO_CB * (g0 + QN_WINO_B2 * g2), odd_b = QN_WINO_CB * QN_WINO_B * g1;
    u[0] = g0;
    u[u_step] = even_a + odd_a;
    u[2 * u_step] = even_a - odd_a;
    u[3 * u_step] = even_b + odd_b;
    u[4 * u_step] = even_b - odd_b;
    u[5 * u_step] = g2;
}

/* Six points to four pixels: the columns of A. */
QN_INLINE void wino_outputs(const QnVec *m, int step, QnVec *y, int y_step)
{
    QnVec sum_a = m[step] + m[2 * step], diff_a = m[step] - m[2 * step];
    QnVec sum_b = m[3 * step] + m[4 * step], diff_b = m[3 * step] - m[4 * step];
    y[0] = m[0] + sum_a + sum_b;
    y[y_step] = QN_WINO_A * diff_a + QN_WINO_B * diff_b;
    y[2 * y_step] = QN_WINO_A2 * sum_a + QN_WINO_B2 * sum_b;
    y[3 * y_step] = QN_WINO_A2 * QN_WINO_A * diff_a + QN_WINO_B2 * QN_WINO_B * diff_b + m[5 * step];
}

/* The transpose: four gradients of pixels to six of points. */
QN_INLINE void wino_outputs_back(const QnVec *y, int step, QnVec *t, int t_step)
{
    QnVec y0 = y[0], y1 = y[step], y2 = y[2 * step], y3 = y[3 * step];
    QnVec even_a = y0 + QN_WINO_A2 * y2, odd_a = QN_WINO_A * (y1 + QN_WINO_A2 * y3);
    QnVec even_b = y0 + QN_WINO_B2 * y2, odd_b = QN_WINO_B * (y1 + QN_WINO_B2 * y3);
    t[0] = y0;
    t[t_step] = even_a + odd_a;
    t[2 * t_step] = even_a - odd_a;
    t[3 * t_step] = even_b + odd_b;
    t[4 * t_step] = even_b - odd_b;
    t[5 * t_step] = y3;
}

/* The transpose: six gradients of points to three of taps. */
QN_INLINE void wino_taps_back(const QnVec *m, int step, QnVec *g, int g_step)
{
    QnVec sum_a = QN_WINO_CA * (m[step] + m[2 * step]);
    QnVec diff_a = QN_WINO_CA * QN_WINO_A * (m[step] - m[2 * step]);
    QnVec sum_b = QN_WINO_CB * (m[3 * step] + m[4 * step]);
    QnVec diff_b = QN_WINO_CB * QN_WINO_B * (m[3 * step] - m[4 * step]);
    g[0] = m[0] + sum_a + sum_b;
    g[g_step] = diff_a + diff_b;
    g[2 * g_step] = QN_WINO_A2 * sum_a + QN_WINO_B2 * sum_b + m[5 * step];
}

/* One map along both axes of a square of `from` x `from` vectors, rows first. */
#define QN_WINO_BOTH(map, from, to, in, out)                                                       \
    do {                                                                                           \
        QnVec half_[(to) * (from)];                                                                \
        QN_UNROLL for (int i_ = 0; i_ < (from); i_++) map((in) + i_, (from), half_ + i_, (from));  \
        QN_UNROLL for (int i_ = 0; i_ < (to); i_++)                                                \
            map(half_ + i_ * (from), 1, (out) + i_ * (to), 1);                                     \
    } while (0)

/* ---- where a tile lies ---- */

typedef struct WinoTile {
    int64_t image, y, x; /* of its first written pixel */
} WinoTile;

QN_INLINE WinoTile wino_tile(const QnWinograd *s, int64_t tile)
{
    int64_t in_image = tile % (s->rows * s->columns);
    return (WinoTile){ tile / (s->rows * s->columns), in_image / s->columns * QN_WINOGRAD_TILE,
                       in_image % s->columns * QN_WINOGRAD_TILE };
}

/* The 36 pixels that a tile reads; outside the image, `zeros`. */
QN_INLINE void wino_sources(const QnWinograd *s, WinoTile t, const float *x, const float *zeros,
                            const float *at[QN_WINOGRAD_POINTS])
{
    for (int i = 0; i < 6; i++) {
        int64_t row = t.y - s->top + i;
        bool is_in = row >= 0 && row < s->in_h;
        for (int j = 0; j < 6; j++) {
            int64_t column = t.x - s->left + j;
            at[i * 6 + j] = is_in && column >= 0 && column < s->in_w
                                ? x + ((t.image * s->in_h + row) * s->in_w + column) * s->c
                                : zeros;
        }
    }
}

#endif
