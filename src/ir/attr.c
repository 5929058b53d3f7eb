/* Attribute structs, handled through the operator's field table. */
#include "ir/graph.h"

#include <string.h>

#define AT(Type, base, field)       (*(Type *)((char *)(base) + (field)->offset))
#define AT_CONST(Type, base, field) (*(Type const *)((const char *)(base) + (field)->offset))

void qn_attr_defaults(const QnOp *op, void *attr)
{
    memset(attr, 0, op->attr_bytes);
    for (int i = 0; i < op->n_fields; i++) {
        const QnAttrField *f = &op->fields[i];
        switch (f->kind) {
        case QN_ATTR_INT: AT(int64_t, attr, f) = (int64_t)f->def; break;
        case QN_ATTR_FLOAT: AT(double, attr, f) = f->def; break;
        case QN_ATTR_BOOL: AT(bool, attr, f) = f->def != 0; break;
        case QN_ATTR_ENUM: AT(int, attr, f) = (int)f->def; break;
        case QN_ATTR_DTYPE: AT(QnDtype, attr, f) = (QnDtype)f->def; break;
        case QN_ATTR_STRING: AT(const char *, attr, f) = ""; break;
        default: break;
        }
    }
}

const QnAttrField *qn_attr_find(const QnOp *op, const char *name)
{
    for (int i = 0; i < op->n_fields; i++) {
        if (!strcmp(op->fields[i].name, name))
            return &op->fields[i];
    }
    return NULL;
}

static QnStatus check_range(const QnOp *op, const QnAttrField *f, double v)
{
    if ((f->min != 0 || f->max != 0) && !(v >= f->min && v <= f->max))
        return qn_fail(QN_EARG, "%s: %s is %g, must lie in %g..%g", op->name, f->name, v, f->min,
                       f->max);
    return QN_OK;
}

static int names_count(const char *const *names)
{
    int n = 0;
    while (names && names[n])
        n++;
    return n;
}

static QnStatus field_check(const QnOp *op, const QnAttrField *f, const void *attr)
{
    switch (f->kind) {
    case QN_ATTR_INT: return check_range(op, f, (double)AT_CONST(int64_t, attr, f));
    case QN_ATTR_FLOAT: return check_range(op, f, AT_CONST(double, attr, f));
    case QN_ATTR_ENUM: {
        int v = AT_CONST(int, attr, f);
        if (v < 0 || v >= names_count(f->names))
            return qn_fail(QN_EARG, "%s: %s has no choice number %d", op->name, f->name, v);
        return QN_OK;
    }
    case QN_ATTR_DTYPE:
        if ((unsigned)AT_CONST(QnDtype, attr, f) >= QN_DTYPE_COUNT)
            return qn_fail(QN_EDTYPE, "%s: %s is not a data type", op->name, f->name);
        return QN_OK;
    case QN_ATTR_STRING:
        if (!AT_CONST(const char *, attr, f))
            return qn_fail(QN_EARG, "%s: %s is NULL", op->name, f->name);
        return QN_OK;
    case QN_ATTR_INTS: {
        int n = AT_CONST(QnInts, attr, f).n;
        if (n < 0 || n > 2 * QN_MAX_RANK)
            return qn_fail(QN_EARG, "%s: %s has %d entries, at most %d", op->name, f->name, n,
                           2 * QN_MAX_RANK);
        return QN_OK;
    }
    case QN_ATTR_DIMS: {
        int n = AT_CONST(QnDims, attr, f).n;
        if (n < 0 || n > QN_MAX_RANK)
            return qn_fail(QN_ESHAPE, "%s: %s has rank %d, at most %d", op->name, f->name, n,
                           QN_MAX_RANK);
        return QN_OK;
    }
    case QN_ATTR_DATA: {
        const QnData *d = &AT_CONST(QnData, attr, f);
        if (d->bytes && !d->p)
            return qn_fail(QN_EARG, "%s: %s is NULL", op->name, f->name);
        return QN_OK;
    }
    default: return QN_OK;
    }
}

QnStatus qn_attr_check(const QnOp *op, const void *attr)
{
    for (int i = 0; i < op->n_fields; i++)
        QN_TRY(field_check(op, &op->fields[i], attr));
    return QN_OK;
}

static bool body_is_equal(const QnBody *a, const QnBody *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->n_in != b->n_in || a->n_instr != b->n_instr || a->n_out != b->n_out ||
        memcmp(a->out, b->out, (size_t)a->n_out * sizeof(int)))
        return false;
    for (int i = 0; i < a->n_instr; i++) {
        const QnBodyInstr *x = &a->instr[i], *y = &b->instr[i];
        if (x->op != y->op || x->dtype != y->dtype || memcmp(x->arg, y->arg, sizeof x->arg) ||
            !qn_attr_is_equal(x->op, x->attr, y->attr))
            return false;
    }
    return true;
}

static bool field_is_equal(const QnAttrField *f, const void *a, const void *b)
{
    switch (f->kind) {
    case QN_ATTR_INT: return AT_CONST(int64_t, a, f) == AT_CONST(int64_t, b, f);
    case QN_ATTR_FLOAT: /* bitwise: NaN equals itself, -0 is not 0 */
        return !memcmp(&AT_CONST(double, a, f), &AT_CONST(double, b, f), sizeof(double));
    case QN_ATTR_BOOL: return AT_CONST(bool, a, f) == AT_CONST(bool, b, f);
    case QN_ATTR_ENUM: return AT_CONST(int, a, f) == AT_CONST(int, b, f);
    case QN_ATTR_DTYPE: return AT_CONST(QnDtype, a, f) == AT_CONST(QnDtype, b, f);
    case QN_ATTR_STRING: return !strcmp(AT_CONST(const char *, a, f), AT_CONST(const char *, b, f));
    case QN_ATTR_INTS: {
        const QnInts *x = &AT_CONST(QnInts, a, f), *y = &AT_CONST(QnInts, b, f);
        return x->n == y->n && !memcmp(x->v, y->v, (size_t)x->n * sizeof *x->v);
    }
    case QN_ATTR_DIMS: {
        const QnDims *x = &AT_CONST(QnDims, a, f), *y = &AT_CONST(QnDims, b, f);
        return x->n == y->n && !memcmp(x->d, y->d, (size_t)x->n * sizeof *x->d);
    }
    case QN_ATTR_DATA: {
        const QnData *x = &AT_CONST(QnData, a, f), *y = &AT_CONST(QnData, b, f);
        return x->bytes == y->bytes && (x->p == y->p || !memcmp(x->p, y->p, x->bytes));
    }
    case QN_ATTR_BODY:
        return body_is_equal(AT_CONST(const QnBody *, a, f), AT_CONST(const QnBody *, b, f));
    }
    return false;
}

bool qn_attr_is_equal(const QnOp *op, const void *a, const void *b)
{
    for (int i = 0; a != b && i < op->n_fields; i++) {
        if (!field_is_equal(&op->fields[i], a, b))
            return false;
    }
    return true;
}

static uint64_t mix(uint64_t h, const void *p, size_t bytes)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ c[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return h;
}

/* Of weights the beginning and the end: equality is always decided by all of it. */
enum { DATA_HASHED = 2048 };

static uint64_t field_hash(uint64_t h, const QnAttrField *f, const void *attr)
{
    switch (f->kind) {
    case QN_ATTR_INT:
    case QN_ATTR_FLOAT: return mix(h, (const char *)attr + f->offset, 8);
    case QN_ATTR_BOOL: return mix(h, (const char *)attr + f->offset, sizeof(bool));
    case QN_ATTR_ENUM:
    case QN_ATTR_DTYPE: return mix(h, (const char *)attr + f->offset, sizeof(int));
    case QN_ATTR_STRING: {
        const char *s = AT_CONST(const char *, attr, f);
        return mix(h, s, strlen(s));
    }
    case QN_ATTR_INTS: {
        const QnInts *x = &AT_CONST(QnInts, attr, f);
        return mix(h, x->v, (size_t)x->n * sizeof *x->v);
    }
    case QN_ATTR_DIMS: {
        const QnDims *x = &AT_CONST(QnDims, attr, f);
        return mix(h, x->d, (size_t)x->n * sizeof *x->d);
    }
    case QN_ATTR_DATA: {
        const QnData *x = &AT_CONST(QnData, attr, f);
        size_t ends = QN_MIN(x->bytes, DATA_HASHED);
        h = mix(h, &x->bytes, sizeof x->bytes);
        h = mix(h, x->p, ends);
        return mix(h, (const char *)x->p + x->bytes - ends, ends);
    }
    case QN_ATTR_BODY: {
        const QnBody *x = AT_CONST(const QnBody *, attr, f);
        for (int i = 0; x && i < x->n_instr; i++) {
            h = mix(h, x->instr[i].op->name, strlen(x->instr[i].op->name));
            h = mix(h, x->instr[i].arg, sizeof x->instr[i].arg);
            h ^= qn_attr_hash(x->instr[i].op, x->instr[i].attr);
        }
        return h;
    }
    }
    return h;
}

uint64_t qn_attr_hash(const QnOp *op, const void *attr)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < op->n_fields; i++)
        h = field_hash(h, &op->fields[i], attr);
    return h;
}

int qn_attr_floats(const QnOp *op, const void *attr, double out[QN_MAP_MAX_PARAM])
{
    int n = 0;
    for (int i = 0; i < op->n_fields && n < QN_MAP_MAX_PARAM; i++) {
        if (op->fields[i].kind == QN_ATTR_FLOAT)
            out[n++] = AT_CONST(double, attr, &op->fields[i]);
    }
    return n;
}

static const QnBody *body_copy(QnArena *arena, const QnBody *body)
{
    QnBody *b = qn_arena_copy(arena, body, sizeof *body);
    QnBodyInstr *instr =
        b ? qn_arena_copy(arena, body->instr, (size_t)body->n_instr * sizeof *instr) : NULL;
    int *out = instr ? qn_arena_copy(arena, body->out, (size_t)body->n_out * sizeof(int)) : NULL;
    if (!out)
        return NULL;
    for (int i = 0; i < b->n_instr; i++) {
        instr[i].attr = qn_attr_copy(arena, instr[i].op, instr[i].attr, NULL, NULL);
        if (!instr[i].attr)
            return NULL;
    }
    b->instr = instr;
    b->out = out;
    return b;
}

void *qn_attr_copy(QnArena *arena, const QnOp *op, const void *attr,
                   QnDim (*dim)(void *ctx, QnDim d), void *ctx)
{
    void *copy = qn_arena_copy(arena, attr, op->attr_bytes);
    for (int i = 0; copy && i < op->n_fields; i++) {
        const QnAttrField *f = &op->fields[i];
        if (f->kind == QN_ATTR_STRING) {
            AT(char *, copy, f) = qn_arena_strdup(arena, AT_CONST(const char *, attr, f));
            if (!AT(char *, copy, f))
                return NULL;
        } else if (f->kind == QN_ATTR_DATA && !AT(QnData, copy, f).lasting) {
            QnData *d = &AT(QnData, copy, f);
            d->p = qn_arena_copy(arena, d->p, d->bytes);
            if (!d->p)
                return NULL;
        } else if (f->kind == QN_ATTR_BODY && AT(const QnBody *, copy, f)) {
            AT(const QnBody *, copy, f) = body_copy(arena, AT(const QnBody *, copy, f));
            if (!AT(const QnBody *, copy, f))
                return NULL;
        } else if (f->kind == QN_ATTR_DIMS && dim) {
            QnDims *d = &AT(QnDims, copy, f);
            for (int k = 0; k < d->n; k++)
                d->d[k] = dim(ctx, d->d[k]);
        }
    }
    return copy;
}

const char *qn_node_label(const QnNode *n)
{
    const QnAttrField *f = qn_attr_find(n->op, "name");
    return f && f->kind == QN_ATTR_STRING ? AT_CONST(const char *, n->attr, f) : NULL;
}
