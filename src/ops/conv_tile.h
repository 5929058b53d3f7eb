/* Convolutions as products of blocks (ops/tile.h), for device text: one factor is gathered from an
 * image while it goes to shared memory. Element (k, column) of it lies at base + at[k] + the cell
 * (e, g, h) of the image, each the sum of a part that k decides and one that the column does, and
 * is 0 outside the image. What k decides is worked out once a group, for a slice ahead. */
#ifndef QN_OPS_CONV_TILE_H
#define QN_OPS_CONV_TILE_H

#define CONV_ARGS                                                                                  \
    qn_long n, qn_long c, qn_long m, qn_long groups, qn_long i0, qn_long i1, qn_long i2,           \
        qn_long k0, qn_long k1, qn_long k2, qn_long o0, qn_long o1, qn_long o2, qn_long s0,        \
        qn_long s1, qn_long s2, qn_long p0, qn_long p1, qn_long p2, qn_long d0, qn_long d1,        \
        qn_long d2

/* An item's four elements of the slice: of column lid % 64 those of k = lid / 64 + 4 i, of which
 * `at` and `cell` say where. */
TILE_FN void qn_conv_fetch(float *v, QN_GLOBAL const QN_T *p, qn_long base,
                           QN_LOCAL const qn_long *at, QN_LOCAL const int *cell, bool have, int e,
                           int g, int h, int x0, int x1, int x2)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int k = qn_lid() / 64 + 4 * i;
        int a = e + cell[k], b = g + cell[k + 16], d = h + cell[k + 32];
        bool in = have && a >= 0 && a < x0 && b >= 0 && b < x1 && d >= 0 && d < x2;
        v[i] = in ? qn_load(p, base + at[k] + ((qn_long)a * x1 + b) * x2 + d) : 0.0f;
    }
}

/* The same where neighbours in memory are neighbours along k: of k = lid % 16 those of columns
 * lid / 16 + 16 i, whose parts are in tables too, base[column] and side[column + 0, 64, 128]. */
TILE_FN void qn_conv_fetch_deep(float *v, QN_GLOBAL const QN_T *p, QN_LOCAL const qn_long *at,
                                QN_LOCAL const int *cell, QN_LOCAL const qn_long *base,
                                QN_LOCAL const int *side, int x0, int x1, int x2)
{
    int k = qn_lid() % 16, e = cell[k], g = cell[k + 16], h = cell[k + 32];
    qn_long image = at[k];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int q = qn_lid() / 16 + 16 * i;
        int a = e + side[q], b = g + side[q + 64], d = h + side[q + 128];
        bool in = a >= 0 && a < x0 && b >= 0 && b < x1 && d >= 0 && d < x2;
        v[i] = in ? qn_load(p, image + base[q] + ((qn_long)a * x1 + b) * x2 + d) : 0.0f;
    }
}

/* Into the slice t[k][column] what qn_conv_fetch gave, or with `deep` qn_conv_fetch_deep. */
TILE_FN void qn_conv_put(QN_LOCAL float *t, const float *v, bool deep)
{
    int lid = qn_lid();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int k = deep ? lid % 16 : lid / 64 + 4 * i, q = deep ? lid / 16 + 16 * i : lid % 64;
        t[k * TILE_PITCH(1) + q] = v[i];
    }
}

/* Shared memory of CONV_PRODUCT; at has an entry for each k of two slices, cell three. */
#define CONV_SHARED(R)                                                                             \
    QN_SHARED float ta[TILE_FLOATS(R)], tb[TILE_FLOATS(1)];                                        \
    QN_SHARED qn_long at[32];                                                                      \
    QN_SHARED int cell[96];

/* acc += a b over from <= k < to. DECODE(k, slot, side) fills the tables' entry `slot` (cell's at
 * 48 * side + slot of 16, 32, 48) for one k, FETCH_A(k, side) and FETCH_B(side) get va and vb. What
 * is decoded while a slice is multiplied is for the slice after the next, so that nobody waits for
 * its divisions. With no k between them nothing reads the tables, which DECODE may then leave as it
 * found them. */
#define CONV_PRODUCT(R, from, to, DECODE, FETCH_A, DEEP_A, FETCH_B, DEEP_B)                        \
    float acc[16 * R], va[4 * R], vb[4];                                                           \
    for (int i = 0; i < 16 * R; i++)                                                               \
        acc[i] = 0.0f;                                                                             \
    if (from < to && lid < 2 * TILE_DEPTH)                                                         \
        DECODE(from + lid, lid % TILE_DEPTH, lid / TILE_DEPTH);                                    \
    QN_SYNC();                                                                                     \
    if (from < to) {                                                                               \
        FETCH_A(from, 0);                                                                          \
        FETCH_B(0);                                                                                \
    }                                                                                              \
    int side = 0;                                                                                  \
    for (qn_long kk = from; kk < to; kk += TILE_DEPTH) {                                           \
        qn_tile_put(ta, va, R, DEEP_A);                                                            \
        qn_conv_put(tb, vb, DEEP_B);                                                               \
        side = 1 - side;                                                                           \
        QN_SYNC();                                                                                 \
        if (kk + TILE_DEPTH < to) {                                                                \
            FETCH_A(kk + TILE_DEPTH, side);                                                        \
            FETCH_B(side);                                                                         \
        }                                                                                          \
        if (lid < TILE_DEPTH)                                                                      \
            DECODE(kk + 2 * TILE_DEPTH + lid, lid, 1 - side);                                      \
        qn_tile_fma(acc, R, 1, ta, TILE_PITCH(R), tb, TILE_PITCH(1), TILE_DEPTH);                  \
        QN_SYNC();                                                                                 \
    }

#endif
