#include "ir/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(Type, attr, field) (*(Type const *)((const char *)(attr) + (field)->offset))

enum { LIST_MAX = 64 }; /* elements of a constant printed as numbers; more are hexadecimal */

static void print_string(QnStr *out, const char *s)
{
    qn_str_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            qn_str_printf(out, "\\%c", c);
        else if (c == '\n')
            qn_str_add(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            qn_str_printf(out, "\\x%02x", c);
        else
            qn_str_add_bytes(out, s, 1);
    }
    qn_str_add(out, "\"");
}

static bool is_same(double a, double b, bool single)
{
    return single ? (float)a == (float)b : a == b;
}

/* The fewest digits that read back as x, or as its float; every NaN but the usual one by its bits.
 */
static void print_double(QnStr *out, double x, bool single)
{
    static const uint64_t quiet = UINT64_C(0x7ff8000000000000);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x) && bits != quiet) {
        qn_str_printf(out, "0x%016" PRIx64, bits);
    } else if (isnan(x)) {
        qn_str_add(out, "nan");
    } else if (isinf(x)) {
        qn_str_add(out, x < 0 ? "-inf" : "inf");
    } else {
        char text[40];
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, x);
            if (is_same(strtod(text, NULL), x, single))
                break;
        }
        char plain[40]; /* 50 rather than 5e+01 */
        snprintf(plain, sizeof plain, "%.15g", x);
        bool shorter = strlen(plain) <= strlen(text) && is_same(strtod(plain, NULL), x, single);
        qn_str_add(out, shorter ? plain : text);
    }
}

/* ---- data ---- */

/* Whether the number alone gives the byte back. */
static bool is_canonical(QnDtype dtype, const void *p, double x)
{
    uint8_t back;
    qn_dtype_from_f64(dtype, &x, &back, 1);
    return back == *(const uint8_t *)p;
}

static bool prints_as_numbers(QnDtype dtype, const QnData *d)
{
    size_t item = qn_dtype_bytes(dtype);
    if (d->bytes % item || d->bytes / item > LIST_MAX)
        return false;
    for (size_t i = 0; i < d->bytes / item; i++) {
        const char *p = (const char *)d->p + i * item;
        double x;
        qn_dtype_to_f64(dtype, p, &x, 1);
        if (isnan(x) || (item == 1 && !is_canonical(dtype, p, x)))
            return false; /* a NaN's payload, odd bools and bits over 4 would be lost */
    }
    return true;
}

static void print_data(QnStr *out, QnDtype dtype, const QnData *d)
{
    if (!prints_as_numbers(dtype, d)) {
        qn_str_add(out, "x\"");
        for (size_t i = 0; i < d->bytes; i++)
            qn_str_printf(out, "%02x", ((const unsigned char *)d->p)[i]);
        qn_str_add(out, "\"");
        return;
    }
    size_t item = qn_dtype_bytes(dtype);
    qn_str_add(out, "[");
    for (size_t i = 0; i < d->bytes / item; i++) {
        const char *p = (const char *)d->p + i * item;
        qn_str_add(out, i ? ", " : "");
        if (qn_dtype_is_wide(dtype)) {
            int64_t v;
            memcpy(&v, p, sizeof v);
            if (dtype == QN_DTYPE_I64)
                qn_str_printf(out, "%" PRId64, v);
            else
                qn_str_printf(out, "%" PRIu64, (uint64_t)v);
        } else {
            double x;
            qn_dtype_to_f64(dtype, p, &x, 1);
            print_double(out, x, dtype == QN_DTYPE_F32);
        }
    }
    qn_str_add(out, "]");
}

/* ---- attributes ---- */

static QnStatus print_body(const QnGraph *g, const QnBody *b, QnStr *out)
{
    qn_str_printf(out, "{in %d; ", b->n_in);
    for (int i = 0; i < b->n_instr; i++) {
        const QnBodyInstr *x = &b->instr[i];
        qn_str_printf(out, "$%d = %s(", b->n_in + i, x->op->name);
        for (int k = 0; k < x->op->n_in; k++)
            qn_str_printf(out, "%s$%d", k ? ", " : "", x->arg[k]);
        qn_str_add(out, ")");
        if (x->op->attr_bytes)
            QN_TRY(qn_attr_print(g, x->op, x->attr, out));
        qn_str_printf(out, " : %s; ", qn_dtype_name(x->dtype));
    }
    qn_str_add(out, "out");
    for (int i = 0; i < b->n_out; i++)
        qn_str_printf(out, "%s $%d", i ? "," : "", b->n_in + b->out[i]);
    qn_str_add(out, "}");
    return out->st;
}

static QnStatus print_dims(const QnGraph *g, const QnDim *d, int n, QnStr *out)
{
    qn_str_add(out, "[");
    for (int i = 0; i < n; i++) {
        qn_str_add(out, i ? "," : "");
        QN_TRY(qn_dim_print(g, d[i], out));
    }
    qn_str_add(out, "]");
    return out->st;
}

/* The element type that a data attribute is of: the operator's dtype attribute. */
static QnDtype data_dtype(const QnOp *op, const void *attr)
{
    const QnAttrField *f = qn_attr_find(op, "dtype");
    return f && f->kind == QN_ATTR_DTYPE ? AT(QnDtype, attr, f) : QN_DTYPE_U8;
}

static QnStatus print_field(const QnGraph *g, const QnOp *op, const QnAttrField *f,
                            const void *attr, QnStr *out)
{
    qn_str_printf(out, "%s=", f->name);
    switch (f->kind) {
    case QN_ATTR_INT: qn_str_printf(out, "%" PRId64, AT(int64_t, attr, f)); break;
    case QN_ATTR_FLOAT: print_double(out, AT(double, attr, f), false); break;
    case QN_ATTR_BOOL: qn_str_add(out, AT(bool, attr, f) ? "true" : "false"); break;
    case QN_ATTR_ENUM: qn_str_add(out, f->names[AT(int, attr, f)]); break;
    case QN_ATTR_DTYPE: qn_str_add(out, qn_dtype_name(AT(QnDtype, attr, f))); break;
    case QN_ATTR_STRING: print_string(out, AT(const char *, attr, f)); break;
    case QN_ATTR_INTS: {
        const QnInts *x = &AT(QnInts, attr, f);
        qn_str_add(out, "[");
        for (int i = 0; i < x->n; i++)
            qn_str_printf(out, "%s%" PRId64, i ? "," : "", x->v[i]);
        qn_str_add(out, "]");
        break;
    }
    case QN_ATTR_DIMS: {
        const QnDims *x = &AT(QnDims, attr, f);
        return print_dims(g, x->d, x->n, out);
    }
    case QN_ATTR_DATA: print_data(out, data_dtype(op, attr), &AT(QnData, attr, f)); break;
    case QN_ATTR_BODY: return print_body(g, AT(const QnBody *, attr, f), out);
    }
    return out->st;
}

static bool is_default(const QnAttrField *f, const void *attr)
{
    switch (f->kind) {
    case QN_ATTR_INT: return AT(int64_t, attr, f) == (int64_t)f->def;
    case QN_ATTR_FLOAT: return !memcmp(&AT(double, attr, f), &f->def, sizeof f->def);
    case QN_ATTR_BOOL: return AT(bool, attr, f) == (f->def != 0);
    case QN_ATTR_ENUM: return AT(int, attr, f) == (int)f->def;
    case QN_ATTR_DTYPE: return AT(QnDtype, attr, f) == (QnDtype)f->def;
    case QN_ATTR_STRING: return !AT(const char *, attr, f)[0];
    case QN_ATTR_INTS: return AT(QnInts, attr, f).n == 0;
    case QN_ATTR_DIMS: return AT(QnDims, attr, f).n == 0;
    case QN_ATTR_DATA: return AT(QnData, attr, f).bytes == 0;
    case QN_ATTR_BODY: return !AT(const QnBody *, attr, f);
    }
    return false;
}

QnStatus qn_attr_print(const QnGraph *g, const QnOp *op, const void *attr, QnStr *out)
{
    int printed = 0;
    for (int i = 0; i < op->n_fields; i++) {
        const QnAttrField *f = &op->fields[i];
        if (is_default(f, attr))
            continue;
        qn_str_add(out, printed++ ? ", " : " {");
        QN_TRY(print_field(g, op, f, attr, out));
    }
    qn_str_add(out, printed ? "}" : "");
    return out->st;
}

/* ---- nodes ---- */

static QnStatus print_type(const QnGraph *g, const QnType *t, QnStr *out)
{
    qn_str_printf(out, "%s%s", qn_dtype_name(t->dtype),
                  t->layout == QN_LAYOUT_CHANNELS_LAST ? "@nhwc" : "");
    return print_dims(g, t->shape.dim, t->shape.rank, out);
}

QnStatus qn_node_print(const QnGraph *g, const QnNode *n, QnStr *out)
{
    for (int i = 0; i < n->n_out; i++)
        qn_str_printf(out, "%s%%%" PRId64, i ? ", " : "", n->out[i].id);
    qn_str_printf(out, " = %s", n->op->name);
    if (n->op->version != 1)
        qn_str_printf(out, "@%d", n->op->version);
    qn_str_add(out, "(");
    for (int i = 0; i < n->n_in; i++) {
        qn_str_add(out, i ? ", " : "");
        if (n->in[i])
            qn_str_printf(out, "%%%" PRId64, n->in[i]->id);
        else
            qn_str_add(out, "_");
    }
    qn_str_add(out, ")");
    if (n->op->attr_bytes)
        QN_TRY(qn_attr_print(g, n->op, n->attr, out));
    if (n->name) {
        qn_str_add(out, " ");
        print_string(out, n->name);
    }
    for (int i = 0; i < n->n_out; i++) {
        qn_str_add(out, i ? ", " : " : ");
        QN_TRY(print_type(g, &n->out[i].type, out));
    }
    return out->st;
}

QnStatus qn_graph_print(QnGraph *g, QnStr *out)
{
    QN_TRY(qn_graph_check(g));
    qn_graph_number(g);
    for (int64_t i = 0; i < qn_dim_count(g); i++) {
        qn_str_add(out, i ? ", " : "dims ");
        QN_TRY(qn_dim_print(g, -1 - i, out));
    }
    qn_str_add(out, qn_dim_count(g) ? "\n" : "");
    if (g->next_stream)
        qn_str_printf(out, "streams %" PRId64 "\n", g->next_stream);
    QN_GRAPH_EACH(g, n)
    {
        QnStatus st = qn_node_print(g, n, out);
        if (st != QN_OK)
            return qn_fail_prefix("node %" PRId64 ", %s", n->id, n->op->name);
        qn_str_add(out, "\n");
    }
    for (int64_t i = 0; i < g->n_outputs; i++) {
        qn_str_add(out, "output ");
        print_string(out, g->outputs[i].name);
        qn_str_printf(out, " = %%%" PRId64 "\n", g->outputs[i].value->id);
    }
    return out->st;
}

QnStatus qn_graph_print_text(QnGraph *g, char **text)
{
    QnStr out = { 0 };
    QnStatus st = qn_graph_print(g, &out);
    if (st == QN_OK)
        st = qn_str_take(&out, text);
    qn_str_fini(&out);
    return st;
}
