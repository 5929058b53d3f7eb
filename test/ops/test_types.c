/* The inferred type is what the reference writes: every element of every output, nothing beside it,
 * the same for the same input. */
#include "ops/harness.h"

enum { GUARD = 16 };

/* A NaN with a payload that no arithmetic makes. */
static double mark(void)
{
    uint64_t bits = UINT64_C(0x7ff8dead00beef01);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static bool is_mark(double x)
{
    double m = mark();
    return !memcmp(&x, &m, sizeof m);
}

static void run_guarded(const Case *c, double *whole[QN_MAX_OUT])
{
    double *out[QN_MAX_OUT] = { 0 };
    for (int i = 0; i < c->node->n_out; i++) {
        int64_t n = value_count(&c->node->out[i]);
        whole[i] = new_doubles(n + 2 * GUARD);
        for (int64_t j = 0; j < n + 2 * GUARD; j++)
            whole[i][j] = mark();
        out[i] = whole[i] + GUARD;
    }
    case_run(c, out);
}

static void check_bands(const Case *c, double *const whole[QN_MAX_OUT])
{
    for (int i = 0; i < c->node->n_out; i++) {
        QnDtype dtype = c->node->out[i].type.dtype;
        int64_t n = value_count(&c->node->out[i]);
        for (int64_t j = 0; j < GUARD; j++) {
            if (!is_mark(whole[i][j]) || !is_mark(whole[i][GUARD + n + j]))
                fail_msg("%s: writes beside output %d", c->name, i);
        }
        for (int64_t j = 0; j < n; j++) {
            double y = whole[i][GUARD + j];
            if (is_mark(y))
                fail_msg("%s: element %lld of output %d is not written", c->name, (long long)j, i);
            if (dtype == QN_DTYPE_BOOL && !c->op->map && y != 0 && y != 1)
                fail_msg("%s: element %lld of a bool output is %g", c->name, (long long)j, y);
        }
    }
}

static void test_reference_writes_what_is_inferred(void **state)
{
    int cases = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        for (int k = 0; k < op->n_samples && op_has_value(op); k++) {
            Case c;
            double *first[QN_MAX_OUT] = { 0 }, *again[QN_MAX_OUT] = { 0 };
            case_open(&c, op, k, QN_DTYPE_F32);
            run_guarded(&c, first);
            check_bands(&c, first);
            run_guarded(&c, again);
            for (int i = 0; i < c.node->n_out; i++)
                assert_memory_equal(first[i], again[i],
                                    (size_t)(value_count(&c.node->out[i]) + 2 * GUARD) *
                                        sizeof(double));
            free_outputs(first);
            free_outputs(again);
            assert_ok(qn_graph_verify(c.g));
            case_close(&c);
            cases++;
        }
    }
    print_message("%d samples of %d operators\n", cases, QN_COUNT(all_ops));
}

/* Every operator either takes a floating dtype or refuses it in words, but not for its shapes. */
static void test_dtypes_are_taken_or_refused(void **state)
{
    static const QnDtype dtypes[] = { QN_DTYPE_F64, QN_DTYPE_F16, QN_DTYPE_BF16 };
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        for (int k = 0; k < all_ops[o]->n_samples; k++) {
            for (int d = 0; d < QN_COUNT(dtypes); d++) {
                Case c;
                if (case_try(&c, all_ops[o], k, dtypes[d]))
                    case_close(&c);
                else if (qn_error_last()->code != QN_EDTYPE)
                    fail_msg("%s, sample %d, %s: %s", all_ops[o]->name, k, qn_dtype_name(dtypes[d]),
                             qn_error_last()->text);
            }
        }
    }
}
