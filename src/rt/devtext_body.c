#include "rt/devtext_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const QnBody *qn_devbody_of(const QnNode *n)
{
    for (int i = 0; i < n->op->n_fields; i++) {
        const QnAttrField *f = &n->op->fields[i];
        if (f->kind == QN_ATTR_BODY)
            return *(const QnBody *const *)(const void *)((const char *)n->attr + f->offset);
    }
    return NULL;
}

static QnDtype operand_dtype(const QnDevBody *b, int operand)
{
    int n_in = b->n_in;
    return operand < n_in ? b->in[operand] : b->instr[operand - n_in].dtype;
}

/* ---- what text can do ---- */

bool qn_devbody_is_whole(QnDtype d)
{
    return !qn_dtype_is_float(d);
}

bool qn_devbody_has(const QnOp *op, QnDtype d)
{
    bool f8 = d == QN_DTYPE_F8E4M3FN || d == QN_DTYPE_F8E5M2;
    return d != QN_DTYPE_F64 && (!qn_dtype_is_storage(d) || (f8 && (op->traits & QN_TEXT_F8)));
}

/* Text saturates where it rounds to 8 bits. */
static bool overflows(const QnBodyInstr *x)
{
    const QnAttrField *f = qn_attr_find(x->op, "saturate");
    return f && qn_dtype_is_storage(x->dtype) &&
           !*(const bool *)((const char *)x->attr + f->offset);
}

/* By <op>_i, exactly: integers to integers. */
static bool is_exact(const QnDevBody *b, const QnBodyInstr *x)
{
    for (int k = 0; k < x->op->n_in; k++) {
        if (!qn_devbody_is_whole(operand_dtype(b, x->arg[k])))
            return false;
    }
    return x->op->map->ref_int && qn_devbody_is_whole(x->dtype);
}

static QnStatus check_instr(const QnDevBody *b, const QnBodyInstr *x)
{
    if (!x->op->map || !x->op->device)
        return qn_fail(QN_EUNSUPPORTED, "%s: has no scalar function in device text", x->op->name);
    bool exact = is_exact(b, x);
    if (!qn_devbody_has(x->op, x->dtype) || overflows(x))
        return qn_fail(QN_EUNSUPPORTED, "%s: device text has no %s", x->op->name,
                       qn_dtype_name(x->dtype));
    for (int k = 0; k < x->op->n_in; k++) {
        QnDtype d = operand_dtype(b, x->arg[k]);
        if (!qn_devbody_has(x->op, d))
            return qn_fail(QN_EUNSUPPORTED, "%s: device text has no %s", x->op->name,
                           qn_dtype_name(d));
        /* a float holds 24 bits: enough only on the way to a float */
        if (qn_dtype_is_int(d) && qn_dtype_bytes(d) >= 4 && !exact && qn_devbody_is_whole(x->dtype))
            return qn_fail(QN_EUNSUPPORTED, "%s: device text has no arithmetic on %s", x->op->name,
                           qn_dtype_name(d));
    }
    return QN_OK;
}

QnStatus qn_devbody_check(const QnDevBody *b)
{
    for (int i = 0; i < b->n_instr; i++)
        QN_TRY(check_instr(b, &b->instr[i]));
    return QN_OK;
}

/* ---- printing ---- */

static void print_float(QnStr *s, double v)
{
    char digits[32];
    if (isinf(v) || isnan(v)) {
        qn_str_add(s, isnan(v) ? "(QN_INF - QN_INF)" : v < 0 ? "-QN_INF" : "QN_INF");
        return;
    }
    snprintf(digits, sizeof digits, "%.9g", v);
    qn_str_printf(s, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
}

void qn_devbody_functions(const QnDevBody *b, QnStr *s)
{
    for (int i = 0; i < b->n_instr; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= b->instr[k].op == b->instr[i].op;
        if (!seen)
            qn_str_add(s, b->instr[i].op->device);
    }
}

/* A u64 is a qn_long of its bits: where that differs, the operator has <op>_u over qn_ulong. */
static void print_call(const QnDevBody *b, const QnBodyInstr *x, bool exact, QnStr *s)
{
    double param[QN_MAP_MAX_PARAM];
    int n_param = x->attr && !exact ? qn_attr_floats(x->op, x->attr, param) : 0;
    QnDtype last = operand_dtype(b, x->arg[x->op->n_in - 1]);
    bool is_unsigned = exact && last == QN_DTYPE_U64 && x->op->map->ref_uint;
    qn_str_printf(s, "%s%s_%s(", is_unsigned ? "(qn_long)" : "", x->op->name,
                  is_unsigned ? "u"
                  : exact     ? "i"
                              : "f");
    for (int k = 0; k < x->op->n_in; k++) {
        QnDtype d = operand_dtype(b, x->arg[k]);
        const char *convert = exact || !qn_devbody_is_whole(d) ? ""
                              : d == QN_DTYPE_U64              ? "(float)(qn_ulong)"
                                                               : "(float)";
        qn_str_printf(s, "%s%s%sv%d", k ? ", " : "", is_unsigned ? "(qn_ulong)" : "", convert,
                      x->arg[k]);
    }
    for (int k = 0; k < n_param; k++) {
        qn_str_add(s, ", ");
        print_float(s, param[k]);
    }
    qn_str_add(s, ")");
}

static void print_instr(const QnDevBody *b, int i, QnStr *s)
{
    const QnBodyInstr *x = &b->instr[i];
    bool exact = is_exact(b, x), whole = qn_devbody_is_whole(x->dtype);
    const char *dtype = qn_dtype_name(x->dtype);
    qn_str_printf(s, "%s v%d = ", whole ? "qn_long" : "float", b->n_in + i);
    if (exact)
        qn_str_printf(s, "qn_keep_%s(", dtype);
    else if (whole)
        qn_str_printf(s, "qn_%s_of(", dtype);
    else
        qn_str_printf(s, "qn_round_%s(", dtype);
    print_call(b, x, exact, s);
    qn_str_add(s, ");");
}

void qn_devbody_run(const QnDevBody *b, const char *end, QnStr *s)
{
    for (int i = 0; i < b->n_instr; i++) {
        print_instr(b, i, s);
        qn_str_add(s, end);
    }
}

void qn_devbody_load(const QnDevBody *b, int k, int x, const char *at, QnStr *s)
{
    qn_str_printf(s, "%s v%d = qn_load_%s(x%d, %s);",
                  qn_devbody_is_whole(b->in[k]) ? "qn_long" : "float", k, qn_dtype_name(b->in[k]),
                  x, at);
}
