/* The tables of docs/parity.md. */
#ifndef QN_TEST_OPS_PARITY_TABLE_H
#define QN_TEST_OPS_PARITY_TABLE_H

#include "ops/parity.h"

enum { MAX_REASONS = 26 };

/* ---- which kernel runs what ---- */

static inline void print_head(QnStr *s)
{
    qn_str_add(s, "# Kernels by operator and type\n\nMeasured with");
    qn_str_printf(s, " the instruction set %s", qn_cpu_isa_best());
#ifdef QN_HAVE_ONEDNN
    qn_str_add(s, ", oneDNN");
#endif
#ifdef QN_HAVE_XSMM
    qn_str_add(s, ", libxsmm");
#endif
    qn_str_add(s, have[ON_OPENCL] ? ", OpenCL" : "");
    qn_str_add(s, have[ON_CUDA] ? ", CUDA" : "");
    qn_str_add(s,
               ".\n\n"
               "Written by `./do docs` from a test that runs every sample of every operator, and "
               "variants of it\nin other shapes (long, odd, of size 1 and 0, broadcast, with axes "
               "counted from the other end, with\ninfinities, NaNs and subnormal numbers), through "
               "every kernel that accepts it and compares with\nthe float64 reference: what stands "
               "here has passed.");
    for (int on = 0; on < N_ON; on++) {
        if (have[on])
            qn_str_printf(s, "%s%lld on %s", on ? ", " : " Cases: ", (long long)n_cases[on],
                          on ? on_name[on] : "the CPU");
    }
    qn_str_add(s, "; none failed.\n\n");
}

static inline void print_kernels_head(QnStr *s)
{
    qn_str_add(
        s, "The kernel that comes first by rank stands first. *ref* is the reference, slow but "
           "right; *parts*:\nthe operator is lowered to others; *none*: nothing runs it; an empty "
           "cell: it does not take the\ntype, or its samples are for f32 alone. OpenCL C runs on\n"
           "whatever device there is, such as PoCL on a CPU.\n\n"
           "| operator | f32 | f16 | bf16 | f64 | other types | OpenCL C |\n"
           "|---|---|---|---|---|---|---|\n");
}

/* Kernels that ran, by falling rank. */
static inline void print_cell(QnStr *s, int o, int t)
{
    int n = 0;
    const QnOp *op = all_ops[o];
    for (int rank = 1000; rank >= 0; rank--) {
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++) {
            const QnKernel *k = qn_backend_cpu.kernels[i];
            if (k->rank != rank || !ran[o][t][i] || (rank == 0 && n))
                continue;
            const char *name = !strncmp(k->name, "cpu.", 4) ? k->name + 4 : k->name;
            qn_str_printf(s, "%s%s", n++ ? ", " : "", rank == 0 ? "*ref*" : name);
        }
    }
    if (!n && takes[o][t])
        qn_str_add(s, op->lower ? "*parts*" : "*none*");
}

/* Types from `first` on; "all" if it is all of them, "integers" if of i8 to u64. */
static inline void print_types(QnStr *s, const bool *any, int first)
{
    bool takes_all = first > 0, takes_ints = true;
    for (int t = N_FLOATS; t < N_TYPES; t++) {
        takes_all &= any[t];
        takes_ints &= any[t] || !qn_dtype_is_int(types[t]) || qn_dtype_is_storage(types[t]);
    }
    for (int t = first; t < N_FLOATS; t++)
        qn_str_printf(s, "%s%s", any[t] ? " " : "", any[t] ? qn_dtype_name(types[t]) : "");
    if (takes_all || takes_ints)
        qn_str_add(s, takes_all ? " all" : " integers");
    for (int t = N_FLOATS; t < N_TYPES && !takes_all; t++) {
        bool named = takes_ints && qn_dtype_is_int(types[t]) && !qn_dtype_is_storage(types[t]);
        if (any[t] && !named)
            qn_str_printf(s, " %s", qn_dtype_name(types[t]));
    }
}

static inline void print_kernels_row(QnStr *s, int o)
{
    const QnOp *op = all_ops[o];
    bool on_cpu[N_TYPES] = { false }, on_device[N_TYPES] = { false };
    qn_str_printf(s, "| `%s` |", op->name);
    for (int t = 0; t < N_FLOATS; t++) {
        qn_str_add(s, " ");
        print_cell(s, o, t);
        qn_str_add(s, " |");
    }
    for (int t = 0; t < N_TYPES; t++) {
        on_device[t] = errors[ON_OPENCL][o][t].cases > 0;
        on_cpu[t] = op->lower && takes[o][t];
        for (int i = 0; i < qn_backend_cpu.n_kernels; i++)
            on_cpu[t] |= ran[o][t][i] > 0;
    }
    print_types(s, on_cpu, N_FLOATS);
    qn_str_add(s, " |");
    print_types(s, on_device, 0);
    qn_str_add(s, op->lower && !op->ref && !op->device ? " *parts* |\n" : " |\n");
}

/* ---- errors and refusals ---- */

static char *reasons[MAX_REASONS];
static int n_reasons;

static inline char reason_letter(const char *why)
{
    int i = 0;
    while (i < n_reasons && strcmp(reasons[i], why) != 0)
        i++;
    if (i == n_reasons) {
        assert_true(n_reasons < MAX_REASONS);
        reasons[n_reasons] = qn_strdup(why);
        assert_non_null(reasons[n_reasons++]);
    }
    return (char)('a' + i);
}

static inline void print_errors_head(QnStr *s)
{
    qn_str_add(s, "\n## Errors\n\n"
                  "The worst over all cases and kernels, in units of the last "
                  "place of the reference's own value (of what\n"
                  "cancels to less, in those of a thousandth of the output's "
                  "largest), then relative to 1 + |reference|.\n"
                  "Integers and bools are compared exactly, and so is f64 on "
                  "the CPU, which is the reference's own\n"
                  "arithmetic or moves data. A letter: why device text refuses "
                  "the type, listed below; such a node runs on\n"
                  "the host. *parts*: lowered to "
                  "others.\n"
                  "\n| operator |");
    for (int on = 0; on < N_ON; on++) {
        for (int t = 0; t < 3 && have[on]; t++)
            qn_str_printf(s, " %s %s |", on_name[on], qn_dtype_name(types[t]));
    }
    qn_str_add(s, " device: refused |\n|---|");
    for (int on = 0; on < N_ON; on++)
        qn_str_add(s, have[on] ? "---|---|---|" : "");
    qn_str_add(s, "---|\n");
}

static inline void print_worst(QnStr *s, const Errors *e)
{
    qn_str_printf(s, e->ulps < 100 ? " %.1f" : " %.0e", e->ulps);
    qn_str_printf(s, e->relative == 0 ? ", 0 |" : ", %.0e |", e->relative);
}

static inline const char *device_reason(int o, int t)
{
    const QnOp *op = all_ops[o];
    if (!takes[o][t] || (t > 0 && (op->samples[0].flags & QN_SAMPLE_F32_ONLY)))
        return NULL;
    if (op->lower && !op->ref && !op->device && !op->map)
        return NULL;
    const char *why = refusal_of(o, t);
    return why && why[0] ? why : NULL;
}

static inline void print_errors_row(QnStr *s, int o)
{
    const QnOp *op = all_ops[o];
    bool parts = op->lower && !op->ref && !op->device && !op->map;
    qn_str_printf(s, "| `%s` |", op->name);
    for (int on = 0; on < N_ON; on++) {
        for (int t = 0; t < 3 && have[on]; t++) {
            const Errors *e = &errors[on][o][t];
            const char *why = on == ON_CPU || e->cases ? NULL : device_reason(o, t);
            if (e->cases)
                print_worst(s, e);
            else if (why)
                qn_str_printf(s, " %c |", reason_letter(why));
            else
                qn_str_add(s, parts && takes[o][t] ? " *parts* |" : " |");
        }
    }
    char last = 0;
    for (int t = 3; t < N_TYPES && have[ON_OPENCL]; t++) {
        const char *why = errors[ON_OPENCL][o][t].cases ? NULL : device_reason(o, t);
        if (!why)
            continue;
        char letter = reason_letter(why);
        if (letter != last)
            qn_str_printf(s, "%s %c:", last ? ";" : "", letter);
        qn_str_printf(s, " %s", qn_dtype_name(types[t]));
        last = letter;
    }
    qn_str_add(s, " |\n");
}

static inline void print_reasons(QnStr *s)
{
    qn_str_add(s, n_reasons ? "\n" : "");
    for (int i = 0; i < n_reasons; i++) {
        qn_str_printf(s, "- %c: %s\n", 'a' + i, reasons[i]);
        qn_free(reasons[i]);
    }
    n_reasons = 0;
}

static inline void print_tables(QnStr *s)
{
    print_head(s);
    print_kernels_head(s);
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        if (op_has_value(all_ops[o]))
            print_kernels_row(s, o);
    }
    print_errors_head(s);
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        if (op_has_value(all_ops[o]))
            print_errors_row(s, o);
    }
    print_reasons(s);
}

#endif
