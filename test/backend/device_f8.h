/* Floats of 8 bits on a device: every code and every 16-bit number through casts, and matrices
 * rounded, transposed and remembered in one pass, bit for bit as the reference has them. */
#ifndef QN_TEST_BACKEND_DEVICE_F8_H
#define QN_TEST_BACKEND_DEVICE_F8_H

#include "test.h"

#include "base/float8.h"
#include "ops/f8.h"
#include "ops/ops.h"
#include "pass/pipeline.h"
#include "rt/plan.h"

#include <math.h>
#include <string.h>

typedef struct F8Plan {
    QnGraph *g;
    QnStore *store;
    QnPlan *p;
} F8Plan;

/* Of a graph as built; no node runs on the host. */
static inline void f8_open(F8Plan *f, QnDevice *d, QnGraph *g)
{
    QnPipelineOptions o = qn_device_passes(d);
    o.verify = true;
    f->g = g;
    f->store = qn_store_new(d);
    assert_ok(qn_pipeline_run(g, &o));
    assert_ok(qn_store_add(f->store, g));
    assert_ok(qn_store_alloc(f->store));
    assert_ok(qn_store_fill(f->store, 1));
    assert_ok(qn_plan_new(g, d, f->store, NULL, &f->p));
    for (int64_t i = 0; i < qn_plan_n_steps(f->p); i++) {
        QnPlanStep s = qn_plan_step(f->p, i);
        if (strstr(s.kernel->name, ".host"))
            fail_msg("%s runs on the host", s.node->op->name);
    }
}

static inline void f8_close(F8Plan *f)
{
    qn_plan_free(f->p);
    qn_store_free(f->store);
    qn_graph_free(f->g);
}

/* ---- casts ---- */

static inline void check_f8_decoding(QnDevice *d, QnDtype f8)
{
    uint8_t codes[256];
    float got[256];
    F8Plan f;
    QnFloat8 format = QN_FLOAT8_COUNT;
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", f8, &QN_SHAPE(256));
    assert_ok(qn_graph_output(g, "y", qn_cast(g, x, QN_DTYPE_F32)));
    f8_open(&f, d, g);
    assert_true(qn_dtype_float8(f8, &format));
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    assert_ok(qn_plan_write(f.p, "x", codes, sizeof codes));
    assert_ok(qn_plan_run(f.p));
    assert_ok(qn_plan_read(f.p, "y", got, sizeof got));
    for (int i = 0; i < 256; i++) {
        double want = qn_float8_decode(format, codes[i]);
        if (!(got[i] == (float)want || (isnan(got[i]) && isnan(want))) ||
            (!isnan(want) && !signbit(got[i]) != !signbit(want)))
            fail_msg("%s code %02x is %g, not %g", qn_dtype_name(f8), i, (double)got[i], want);
    }
    f8_close(&f);
}

/* Every number of a 16-bit type, one more than fours divide. */
static inline void check_f8_encoding(QnDevice *d, QnDtype from, QnDtype f8)
{
    enum { N = 65537 };
    static uint16_t x[N];
    static uint8_t got[N];
    F8Plan f;
    QnFloat8 format = QN_FLOAT8_COUNT;
    QnGraph *g = qn_graph_new();
    assert_ok(qn_graph_output(g, "y", qn_cast(g, qn_input(g, "x", from, &QN_SHAPE(N)), f8)));
    f8_open(&f, d, g);
    assert_true(qn_dtype_float8(f8, &format));
    for (int i = 0; i < N; i++)
        x[i] = (uint16_t)i;
    assert_ok(qn_plan_write(f.p, "x", x, sizeof x));
    assert_ok(qn_plan_run(f.p));
    assert_ok(qn_plan_read(f.p, "y", got, sizeof got));
    for (int i = 0; i < N; i++) {
        double v;
        qn_dtype_to_f64(from, &x[i], &v, 1);
        uint8_t want = qn_float8_encode(format, qn_float8_bound(format, v, true));
        bool nan = isnan(v) && isnan(qn_float8_decode(format, got[i]));
        if (got[i] != want && !nan)
            fail_msg("%s: %g becomes %02x, not %02x", qn_dtype_name(f8), v, got[i], want);
    }
    f8_close(&f);
}

/* Between all numbers of 8 bits and their neighbours in f32: where rounding turns. */
static inline void check_f8_ties(QnDevice *d, QnDtype f8)
{
    enum { EACH = 4, N = 256 * EACH };
    static float x[N];
    static uint8_t got[N];
    F8Plan f;
    QnFloat8 format = QN_FLOAT8_COUNT;
    QnGraph *g = qn_graph_new();
    QnValue *v = qn_input(g, "x", QN_DTYPE_F32, &QN_SHAPE(N));
    assert_ok(qn_graph_output(g, "y", qn_cast(g, v, f8)));
    f8_open(&f, d, g);
    assert_true(qn_dtype_float8(f8, &format));
    for (int i = 0; i < 256; i++) {
        float a = (float)qn_float8_decode(format, (uint8_t)i);
        float b = (float)qn_float8_decode(format, (uint8_t)(i + 1));
        float tie = a + (b - a) / 2,
              some[EACH] = { a, tie, nextafterf(tie, a), nextafterf(tie, b) };
        memcpy(x + i * EACH, some, sizeof some);
    }
    assert_ok(qn_plan_write(f.p, "x", x, sizeof x));
    assert_ok(qn_plan_run(f.p));
    assert_ok(qn_plan_read(f.p, "y", got, sizeof got));
    for (int i = 0; i < N; i++) {
        uint8_t want = qn_float8_encode(format, qn_float8_bound(format, (double)x[i], true));
        if (got[i] != want && !isnan(x[i]))
            fail_msg("%s: %.9g becomes %02x, not %02x", qn_dtype_name(f8), (double)x[i], got[i],
                     want);
    }
    f8_close(&f);
}

static inline void check_f8_casts(QnDevice *d)
{
    static const QnDtype types[] = { QN_DTYPE_F8E4M3FN, QN_DTYPE_F8E5M2 };
    for (int i = 0; i < 2; i++) {
        check_f8_decoding(d, types[i]);
        check_f8_encoding(d, QN_DTYPE_BF16, types[i]);
        check_f8_encoding(d, QN_DTYPE_F16, types[i]);
        check_f8_ties(d, types[i]);
    }
}

/* ---- matrices ---- */

typedef struct F8Matrix {
    int64_t rows, cols;
    QnDtype from, to;
} F8Matrix;

/* Numbers of many sizes, the largest in the last row and column; step 2 has a NaN. */
static inline float f8_element(const F8Matrix *m, int step, int64_t i)
{
    float size = ldexpf(1, (int)(i * 7 % 23) - 16);
    if (step == 2 && i == m->cols + 1)
        return NAN;
    return i == m->rows * m->cols - 1 ? (float)(-3 - step) : size * sinf((float)(i + step));
}

static inline void f8_feed(F8Plan *f, const F8Matrix *m, int step, float *x)
{
    int64_t n = m->rows * m->cols;
    size_t item = qn_dtype_bytes(m->from);
    char *narrow = malloc((size_t)n * item);
    for (int64_t i = 0; i < n; i++)
        x[i] = f8_element(m, step, i);
    qn_dtype_from_f32(m->from, x, narrow, n);
    qn_dtype_to_f32(m->from, narrow, x, n);
    assert_ok(qn_plan_write(f->p, "x", narrow, (size_t)n * item));
    free(narrow);
}

/* The history and the scale by hand. */
static inline double f8_scale_now(const float *history, const float *x, int64_t n, double most)
{
    double seen = 0, now = 0;
    for (int i = 0; i < QN_F8_HISTORY; i++)
        seen = fmax(seen, history[i]);
    for (int64_t i = 0; i < n; i++)
        now = fmax(now, fabs(x[i]));
    return exp2(floor(log2(most / (seen > 0 ? seen : now))));
}

static inline void f8_move(float *history, const float *x, int64_t n)
{
    float now = 0, seen = 0;
    for (int i = 0; i < QN_F8_HISTORY; i++)
        seen = fmaxf(seen, history[i]);
    for (int64_t i = 0; i < n; i++)
        now = isnan(x[i]) || isnan(now) ? NAN : fmaxf(now, fabsf(x[i]));
    memmove(history + 1, history, (QN_F8_HISTORY - 1) * sizeof *history);
    history[0] = isnan(now) ? seen : now;
}

static inline void f8_compare(F8Plan *f, const F8Matrix *m, const float *x, double scale)
{
    int64_t n = m->rows * m->cols;
    uint8_t *y = malloc((size_t)n), *t = malloc((size_t)n);
    QnFloat8 format = QN_FLOAT8_COUNT;
    assert_true(qn_dtype_float8(m->to, &format));
    assert_ok(qn_plan_read(f->p, "y", y, (size_t)n));
    assert_ok(qn_plan_read(f->p, "t", t, (size_t)n));
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i] * scale;
        uint8_t want = qn_float8_encode(format, qn_float8_bound(format, v, true));
        uint8_t turned = t[i % m->cols * m->rows + i / m->cols];
        if ((y[i] != want || turned != want) && !isnan(v))
            fail_msg("%lldx%lld: element %lld, %g, is %02x and transposed %02x, not %02x",
                     (long long)m->rows, (long long)m->cols, (long long)i, v, y[i], turned, want);
    }
    free(y);
    free(t);
}

static inline void check_f8_matrix(QnDevice *d, const F8Matrix *m)
{
    F8Plan f;
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", m->from, &QN_SHAPE(m->rows, m->cols));
    QnF8Operand q = qn_f8_operand(g, x, "h", m->to, true);
    assert_ok(qn_graph_output(g, "y", q.straight));
    assert_ok(qn_graph_output(g, "t", q.turned));
    assert_ok(qn_graph_output(g, "inverse", q.inverse));
    f8_open(&f, d, g);
    float *elements = malloc((size_t)(m->rows * m->cols) * sizeof *elements);
    float history[QN_F8_HISTORY] = { 0 }, kept[QN_F8_HISTORY], inverse;
    double most = m->to == QN_DTYPE_F8E5M2 ? 57344 : 448;
    for (int step = 0; step < 4; step++) {
        f8_feed(&f, m, step, elements);
        assert_ok(qn_plan_run(f.p));
        double scale = f8_scale_now(history, elements, m->rows * m->cols, most);
        assert_ok(qn_plan_read(f.p, "inverse", &inverse, sizeof inverse));
        assert_true((double)inverse == 1 / scale);
        f8_compare(&f, m, elements, scale);
        f8_move(history, elements, m->rows * m->cols);
        assert_ok(qn_store_read(f.store, qn_store_find(f.store, "h"), kept));
        assert_memory_equal(kept, history, sizeof kept);
    }
    free(elements);
    f8_close(&f);
}

/* Tiles whole and cut, rows that fours divide and not. */
static inline void check_f8_matrices(QnDevice *d)
{
    static const F8Matrix matrices[] = {
        { 64, 64, QN_DTYPE_F32, QN_DTYPE_F8E4M3FN }, { 130, 68, QN_DTYPE_BF16, QN_DTYPE_F8E5M2 },
        { 67, 129, QN_DTYPE_F32, QN_DTYPE_F8E5M2 },  { 1, 300, QN_DTYPE_BF16, QN_DTYPE_F8E4M3FN },
        { 300, 3, QN_DTYPE_F32, QN_DTYPE_F8E4M3FN }, { 48, 208, QN_DTYPE_BF16, QN_DTYPE_F8E4M3FN },
    };
    for (int i = 0; i < QN_COUNT(matrices); i++)
        check_f8_matrix(d, &matrices[i]);
}

#endif
