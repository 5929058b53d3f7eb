/* Lint of the operators' tables: what docs, passes and planners read must be there and sane. */
#include "ops/harness.h"

#include <ctype.h>

static int bad;

#define COMPLAIN(op, ...)                                                                          \
    do {                                                                                           \
        print_message("%s: ", (op)->name);                                                         \
        print_message(__VA_ARGS__);                                                                \
        print_message("\n");                                                                       \
        bad++;                                                                                     \
    } while (0)

static bool is_snake(const char *s)
{
    if (!s || !islower((unsigned char)s[0]))
        return false;
    for (; *s; s++) {
        if (!islower((unsigned char)*s) && !isdigit((unsigned char)*s) && *s != '_')
            return false;
    }
    return true;
}

static bool is_doc(const char *s)
{
    return s && s[0] && !strchr(s, '\n') && s[strlen(s) - 1] != '.' && strlen(s) < 120;
}

static void test_names_and_docs(void **state)
{
    static const char *const names[] = {
#define QN_X(name) #name,
        QN_OP_LIST(QN_X)
#undef QN_X
    };
    bad = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        if (strcmp(op->name, names[o]))
            COMPLAIN(op, "the descriptor is called qn_op_%s", names[o]);
        if (!is_snake(op->name))
            COMPLAIN(op, "the name is not snake_case");
        if (!is_doc(op->doc))
            COMPLAIN(op, "no doc of one line without a full stop");
        if (op->version < 1)
            COMPLAIN(op, "no version");
        if (op->n_samples < 2)
            COMPLAIN(op, "%d samples, at least two", op->n_samples);
    }
    assert_int_equal(bad, 0);
}

/* Fused groups are maps by their body. */
static bool has_body(const QnOp *op)
{
    for (int i = 0; i < op->n_fields; i++) {
        if (op->fields[i].kind == QN_ATTR_BODY)
            return true;
    }
    return false;
}

static void test_functions_agree_with_traits(void **state)
{
    bad = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        bool map = (op->traits & QN_MAP) && !has_body(op), leaf = op->traits & QN_LEAF;
        bool no_grad = op->traits & QN_NO_GRAD;
        if (map != (op->map != NULL))
            COMPLAIN(op, "QN_MAP and .map go together");
        if (map && (op->n_in < 1 || op->n_in > QN_MAP_MAX_IN || op->n_in_max || op->n_out > 1))
            COMPLAIN(op, "a map has one to three inputs and one output");
        if (map && (!op->device || op->map->flops <= 0 || !op->map->ref))
            COMPLAIN(op, "a map needs .device, .map->ref and .map->flops");
        if (!map && !op->infer)
            COMPLAIN(op, "no infer");
        if (!op_has_value(op) && !leaf)
            COMPLAIN(op, "no ref, lower or map");
        if (op->lower && op->ref)
            COMPLAIN(op, ".lower stands in place of .ref");
        if (no_grad == (op->grad != NULL) && !(op->lower && !no_grad))
            COMPLAIN(op, "wants either a gradient (or .lower) or QN_NO_GRAD");
        if (!map && op->device && !op->call)
            COMPLAIN(op, "device text without .call");
        if (op->call && !op->device)
            COMPLAIN(op, ".call without device text");
        if (op->index_in && !(op->traits & (QN_MOVES_DATA | QN_WHOLE)))
            COMPLAIN(op, ".index_in is for QN_MOVES_DATA and QN_WHOLE");
        if (leaf && op->n_in)
            COMPLAIN(op, "a leaf has no inputs");
        if (op->n_in_max && op->n_in_max < op->n_in)
            COMPLAIN(op, "n_in_max is less than n_in");
        if (op->tol.f32 < 0 || op->tol.f16 < 0 || op->tol.bf16 < 0 || op->tol.f64 < 0)
            COMPLAIN(op, "a negative tolerance");
    }
    assert_int_equal(bad, 0);
}

static size_t field_bytes(QnAttrKind kind)
{
    switch (kind) {
    case QN_ATTR_INT: return sizeof(int64_t);
    case QN_ATTR_FLOAT: return sizeof(double);
    case QN_ATTR_BOOL: return sizeof(bool);
    case QN_ATTR_ENUM: return sizeof(int);
    case QN_ATTR_DTYPE: return sizeof(QnDtype);
    case QN_ATTR_STRING: return sizeof(const char *);
    case QN_ATTR_INTS: return sizeof(QnInts);
    case QN_ATTR_DIMS: return sizeof(QnDims);
    case QN_ATTR_DATA: return sizeof(QnData);
    case QN_ATTR_BODY: return sizeof(const QnBody *);
    }
    return SIZE_MAX;
}

static void check_field(const QnOp *op, const QnAttrField *f)
{
    size_t bytes = field_bytes(f->kind);
    bool ranged = f->min != 0 || f->max != 0;
    if (!is_snake(f->name))
        COMPLAIN(op, "attribute %s is not snake_case", f->name);
    if (!is_doc(f->doc))
        COMPLAIN(op, "attribute %s has no doc of one line without a full stop", f->name);
    if (bytes == SIZE_MAX || f->offset + bytes > op->attr_bytes)
        COMPLAIN(op, "attribute %s lies outside the struct", f->name);
    if (f->kind == QN_ATTR_ENUM && (!f->names || !f->names[0]))
        COMPLAIN(op, "enum %s has no choices", f->name);
    if (f->min > f->max)
        COMPLAIN(op, "attribute %s has an empty range", f->name);
    if (ranged && f->kind != QN_ATTR_INT && f->kind != QN_ATTR_FLOAT)
        COMPLAIN(op, "attribute %s: ranges are for numbers", f->name);
    if (ranged && !(f->def >= f->min && f->def <= f->max))
        COMPLAIN(op, "default of %s is out of its range", f->name);
}

static void test_attributes(void **state)
{
    bad = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        int floats = 0;
        if ((op->attr_bytes > 0) != (op->n_fields > 0))
            COMPLAIN(op, "an Attr struct and its fields go together");
        for (int i = 0; i < op->n_fields; i++) {
            check_field(op, &op->fields[i]);
            floats += op->fields[i].kind == QN_ATTR_FLOAT;
            if (qn_attr_find(op, op->fields[i].name) != &op->fields[i])
                COMPLAIN(op, "two attributes are called %s", op->fields[i].name);
        }
        if (op->map && floats > QN_MAP_MAX_PARAM)
            COMPLAIN(op, "a map takes at most %d parameters", QN_MAP_MAX_PARAM);
        if (op->attr_bytes) {
            void *attr = qn_alloc(op->attr_bytes);
            assert_non_null(attr);
            qn_attr_defaults(op, attr);
            if (qn_attr_check(op, attr) != QN_OK)
                COMPLAIN(op, "defaults are refused: %s", qn_error_last()->text);
            assert_true(qn_attr_is_equal(op, attr, attr));
            assert_true(qn_attr_hash(op, attr) == qn_attr_hash(op, attr));
            qn_free(attr);
        }
        for (int k = 0; k < op->n_samples; k++) {
            const QnSample *s = &op->samples[k];
            int most = op->n_in_max ? op->n_in_max : op->n_in;
            if (s->n_in < op->n_in || s->n_in > most)
                COMPLAIN(op, "sample %d has %d inputs", k, s->n_in);
            if (s->n_in < QN_SAMPLE_IN && s->in[s->n_in].rank)
                COMPLAIN(op, "sample %d has more inputs than n_in says", k);
        }
    }
    assert_int_equal(bad, 0);
}

/* Whether some sample of op sets a field to anything but its default. */
static bool is_varied(const QnOp *op, const QnAttrField *f)
{
    bool varied = false;
    void *def = qn_alloc(op->attr_bytes);
    assert_non_null(def);
    qn_attr_defaults(op, def);
    for (int k = 0; k < op->n_samples; k++) {
        const char *a = op->samples[k].attr;
        varied |= a && memcmp(a + f->offset, (char *)def + f->offset, field_bytes(f->kind));
    }
    qn_free(def);
    return varied;
}

/* Operators of a family (pooling and its gradients) have fields in common; one may vary for all. */
static bool is_varied_somewhere(const char *field)
{
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnAttrField *f = qn_attr_find(all_ops[o], field);
        if (f && is_varied(all_ops[o], f))
            return true;
    }
    return false;
}

static void test_samples_cover_attributes(void **state)
{
    bad = 0;
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        for (int i = 0; i < op->n_fields; i++) {
            if (op->fields[i].kind != QN_ATTR_DTYPE && !is_varied_somewhere(op->fields[i].name))
                COMPLAIN(op, "no sample sets %s to anything but its default", op->fields[i].name);
        }
    }
    assert_int_equal(bad, 0);
}
