/* What the test of parity counts and notes, by operator and type, for each backend. */
#ifndef QN_TEST_OPS_PARITY_H
#define QN_TEST_OPS_PARITY_H

#include "ops/errors.h"
#include "ops/variants.h"

#include "backend/cpu/cpu.h"
#include "base/str.h"
#include "rt/devtext.h"

static const QnDtype types[] = {
    QN_DTYPE_F32,    QN_DTYPE_F16,        QN_DTYPE_BF16,   QN_DTYPE_F64,      QN_DTYPE_I8,
    QN_DTYPE_U8,     QN_DTYPE_I32,        QN_DTYPE_I64,    QN_DTYPE_BOOL,     QN_DTYPE_I16,
    QN_DTYPE_U16,    QN_DTYPE_U32,        QN_DTYPE_U64,    QN_DTYPE_F8E4M3FN, QN_DTYPE_F8E4M3FNUZ,
    QN_DTYPE_F8E5M2, QN_DTYPE_F8E5M2FNUZ, QN_DTYPE_F4E2M1, QN_DTYPE_I4,       QN_DTYPE_U4
};
enum { N_TYPES = QN_COUNT(types), N_FLOATS = 4, MAX_KERNELS = 512, MIN_CASES = 3000 };

typedef enum On { ON_CPU, ON_OPENCL, ON_CUDA, N_ON } On;
static const char *const on_name[N_ON] = { "CPU", "OpenCL", "CUDA" };

static Errors errors[N_ON][QN_COUNT(all_ops)][N_TYPES];
static int ran[QN_COUNT(all_ops)][N_TYPES][MAX_KERNELS]; /* on the CPU, by kernel */
static bool takes[QN_COUNT(all_ops)][N_TYPES];           /* the operator has the type */
static bool have[N_ON] = { [ON_CPU] = true };
static int64_t n_cases[N_ON]; /* each an operator, a sample or variant, and a type */

static inline int number_of(const QnOp *op)
{
    int o = 0;
    while (all_ops[o] != op)
        o++;
    return o;
}

static inline void *raw_of(const QnValue *v, const double *x)
{
    size_t bytes = (size_t)qn_type_bytes(&v->type);
    void *p = qn_alloc_aligned(bytes + 64);
    assert_non_null(p);
    if (x)
        qn_dtype_from_f64(v->type.dtype, x, p, value_count(v));
    return p;
}

static inline void free_raw(const QnValue *v, void *p)
{
    if (p)
        qn_free_aligned(p, (size_t)qn_type_bytes(&v->type) + 64);
}

/* Whether the node has to do with the type at all: that of arange, say, is an attribute. */
static inline bool is_about(const QnNode *n, QnDtype t)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && v->type.dtype == t)
            return true;
    }
    return false;
}

/* Number of the type that a case made for `f` is about: that, or its result's own. */
static inline int type_of(const QnNode *n, QnDtype f)
{
    QnDtype d = is_about(n, f) ? f : n->out[0].type.dtype;
    int t = 0;
    while (types[t] != d)
        t++;
    return t;
}

/* Why no device text runs the operator's first sample in the type; "": it does not have the type,
 * NULL: it runs. The text stays until the next call. */
static inline const char *refusal_of(int o, int t)
{
    static char why[QN_ERROR_TEXT_BYTES];
    const QnOp *op = all_ops[o];
    QnDeviceCall call;
    Case c;
    if (!case_try(&c, op, 0, types[t]))
        return "";
    const char *reason = is_about(c.node, types[t]) ? qn_devtext_refuses(c.node) : "";
    if (reason && op->call && !strncmp(reason, "its device text does not", 24)) {
        op->call(c.node, &call); /* says it in its own words */
        const char *colon = strstr(qn_error_last()->text, ": ");
        snprintf(why, sizeof why, "%s", colon ? colon + 2 : reason);
        reason = why;
    }
    case_close(&c);
    return reason;
}

static inline void check_backend(On on)
{
    int64_t runs = 0, failed = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int t = 0; t < N_TYPES; t++) {
            runs += errors[on][o][t].cases;
            failed += errors[on][o][t].failed;
        }
    }
    print_message("%s: %lld cases, %lld runs of kernels, %lld failures\n", on_name[on],
                  (long long)n_cases[on], (long long)runs, (long long)failed);
    assert_int_equal(failed, 0);
    assert_true(n_cases[on] >= MIN_CASES);
}

#endif
