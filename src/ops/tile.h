/* Products of blocks through shared memory, for device text: tools/gen_ops puts this file in place
 * of its #include where it embeds an operator's text. A group of 256 items (y, x) = (lid / 16,
 * lid % 16) holds a block of 64 R rows by 64 W columns in its registers: each item rows
 * 64 r + 4 y + i and columns 64 w + 4 x + j, i and j below 4, at acc[(4 r + i) * 4 W + 4 w + j].
 * The factors come in slices of TILE_DEPTH, a[k][row] and b[k][column]. R, W and the pitches are
 * literals in every call: once the functions are inlined, loops unroll and acc needs no memory. */
#ifndef QN_OPS_TILE_H
#define QN_OPS_TILE_H

#define TILE_DEPTH     16
#define TILE_PITCH(n)  (64 * (n) + 4) /* floats from k to k + 1, a multiple of four */
#define TILE_FLOATS(n) (TILE_DEPTH * TILE_PITCH(n))
#define TILE_Y         (qn_lid() / 16 * 4)
#define TILE_X         (qn_lid() % 16 * 4)

#ifdef __OPENCL_VERSION__
#define TILE_FN          static inline /* inlined at every call, one kernel takes PoCL minutes */
#define TILE_EACH(i, to) for (int i = 0; i < (to); i++)
TILE_FN void qn_tile_get4(float *v, QN_LOCAL const float *p)
{
    for (int i = 0; i < 4; i++)
        v[i] = p[i];
}
/* Four neighbours, the first at a multiple of four. */
TILE_FN void qn_tile_load4(float *v, QN_GLOBAL const QN_T *p, qn_long i)
{
    for (int j = 0; j < 4; j++)
        v[j] = qn_load(p, i + j);
}
#else
#define TILE_FN          static __device__ __forceinline__
/* Over numbers of acc, at a kernel's end: what is not unrolled, for a body of many maps, puts acc
 * into memory. */
#define TILE_EACH(i, to) _Pragma("unroll") for (int i = 0; i < (to); i++)
TILE_FN void qn_tile_get4(float *v, QN_LOCAL const float *p)
{
    float4 q = *(const float4 *)p;
    v[0] = q.x;
    v[1] = q.y;
    v[2] = q.z;
    v[3] = q.w;
}
TILE_FN void qn_tile_load4(float *v, QN_GLOBAL const QN_T *p, qn_long i)
{
#if defined(QN_F16) || defined(QN_BF16)
    ushort4 q = *(const ushort4 *)(p + i);
    const QN_T t[4] = { q.x, q.y, q.z, q.w };
    for (int j = 0; j < 4; j++)
        v[j] = qn_load(t, j);
#else
    qn_tile_get4(v, p + i);
#endif
}
#endif

/* acc += a b over `depth` of k. */
TILE_FN void qn_tile_fma(float *acc, int R, int W, QN_LOCAL const float *a, int pitch_a,
                         QN_LOCAL const float *b, int pitch_b, int depth)
{
    int y = TILE_Y, x = TILE_X;
#ifdef __OPENCL_VERSION__ /* whose compilers take minutes for what is unrolled at every call */
#pragma unroll 1
#else
#pragma unroll 4
#endif
    for (int k = 0; k < depth; k++) {
        float av[8], bv[8];
#pragma unroll
        for (int r = 0; r < R; r++)
            qn_tile_get4(av + 4 * r, a + k * pitch_a + 64 * r + y);
#pragma unroll
        for (int w = 0; w < W; w++)
            qn_tile_get4(bv + 4 * w, b + k * pitch_b + 64 * w + x);
#pragma unroll
        for (int i = 0; i < 4 * R; i++) {
#pragma unroll
            for (int j = 0; j < 4 * W; j++)
                acc[i * 4 * W + j] += av[i] * bv[j];
        }
    }
}

/* An item's 4 R numbers of the slice at k0 of a matrix whose element (row, k) is at base + row *
 * row_step + k * k_step: four neighbours along the axis whose step is 1. Beyond its rows and depth
 * lies 0. */
TILE_FN void qn_tile_fetch(float *v, int R, QN_GLOBAL const QN_T *p, qn_long base, qn_long row0,
                           qn_long rows, qn_long row_step, qn_long k0, qn_long depth,
                           qn_long k_step)
{
    bool deep = k_step == 1;
    bool by4 = ((base | (deep ? row_step : k_step)) & 3) == 0 && (deep || row_step == 1);
    int lid = qn_lid();
#pragma unroll
    for (int r = 0; r < R; r++) {
        qn_long row = row0 + 64 * r + (deep ? lid / 4 : lid % 16 * 4);
        qn_long k = k0 + (deep ? lid % 4 * 4 : lid / 16);
        qn_long at = base + row * row_step + k * k_step, step = deep ? 1 : row_step;
        qn_long left = deep ? (row < rows ? depth - k : 0) : (k < depth ? rows - row : 0);
        if (by4 && left >= 4) {
            qn_tile_load4(v + 4 * r, p, at);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[4 * r + j] = j < left ? qn_load(p, at + j * step) : 0.0f;
        }
    }
}

/* Into the slice t[k][row] what qn_tile_fetch gave; deep: its k_step was 1. */
TILE_FN void qn_tile_put(QN_LOCAL float *t, const float *v, int R, bool deep)
{
    int lid = qn_lid();
#pragma unroll
    for (int i = 0; i < 4 * R; i++) {
        int k = deep ? lid % 4 * 4 + i % 4 : lid / 16;
        int row = deep ? lid / 4 : lid % 16 * 4 + i % 4;
        t[k * TILE_PITCH(R) + i / 4 * 64 + row] = v[i];
    }
}

/* acc += the block at (row0, col0) of a b over k0 <= k < depth. */
TILE_FN void qn_tile_product(float *acc, int R, int W, QN_LOCAL float *ta, QN_LOCAL float *tb,
                             QN_GLOBAL const QN_T *a, qn_long a_base, qn_long row0, qn_long rows,
                             qn_long am, qn_long ak, QN_GLOBAL const QN_T *b, qn_long b_base,
                             qn_long col0, qn_long cols, qn_long bn, qn_long bk, qn_long k0,
                             qn_long depth)
{
    float va[8], vb[8];
    qn_tile_fetch(va, R, a, a_base, row0, rows, am, k0, depth, ak);
    qn_tile_fetch(vb, W, b, b_base, col0, cols, bn, k0, depth, bk);
    for (qn_long k = k0; k < depth; k += TILE_DEPTH) {
        qn_tile_put(ta, va, R, ak == 1);
        qn_tile_put(tb, vb, W, bk == 1);
        QN_SYNC();
        if (k + TILE_DEPTH < depth) { /* on its way while this slice is multiplied */
            qn_tile_fetch(va, R, a, a_base, row0, rows, am, k + TILE_DEPTH, depth, ak);
            qn_tile_fetch(vb, W, b, b_base, col0, cols, bn, k + TILE_DEPTH, depth, bk);
        }
        qn_tile_fma(acc, R, W, ta, TILE_PITCH(R), tb, TILE_PITCH(W), TILE_DEPTH);
        QN_SYNC();
    }
}

/* acc += a b, where a is in shared memory already, 64 deep and 64 rows, and b's slices from k0 on
 * come as in qn_tile_product. What a was written with needs no barrier before. */
TILE_FN void qn_tile_product_of(float *acc, int W, QN_LOCAL const float *a, QN_LOCAL float *tb,
                                QN_GLOBAL const QN_T *b, qn_long b_base, qn_long col0, qn_long cols,
                                qn_long k0, qn_long depth, qn_long bk)
{
    float vb[8];
    qn_tile_fetch(vb, W, b, b_base, col0, cols, 1, k0, depth, bk);
    for (int k = 0; k < 64; k += TILE_DEPTH) {
        qn_tile_put(tb, vb, W, bk == 1);
        QN_SYNC();
        if (k + TILE_DEPTH < 64)
            qn_tile_fetch(vb, W, b, b_base, col0, cols, 1, k0 + k + TILE_DEPTH, depth, bk);
        qn_tile_fma(acc, 1, W, a + k * TILE_PITCH(1), TILE_PITCH(1), tb, TILE_PITCH(W), TILE_DEPTH);
        QN_SYNC();
    }
}

#endif
