/* Every sample that device text covers, in one storage type, as kernels of one program: compilers
 * spend most of their time on a program's start. */
#ifndef QN_TEST_OPS_BATCH_H
#define QN_TEST_OPS_BATCH_H

#include "ops/harness.h"
#include "ops/variants.h"
#include "rt/devtext_impl.h"

typedef struct Item {
    Case c;
    QnDtype dtype; /* of the case */
    QnDeviceCall call;
    char *map; /* text of kernels that are printed for the node */
    char prefix[16], kernel[48];
} Item;

typedef struct Batch {
    QnDtype dtype;
    Item *items;
    int64_t n, cap;
    int refused; /* cases that the text does not cover */
    QnStr text;  /* what follows the dialect */
} Batch;

/* The kernel of a map after the scalar functions, which stand once for all in the batch; NULL: the
 * text does not cover it. */
static inline char *map_kernel(const QnNode *n, QnDeviceCall *call)
{
    QnStr text = { 0 };
    const char *mark = "#line 1 \"map\"\n", *at;
    char *copy = NULL;
    if (qn_devtext_map(n, &text, call) == QN_OK) {
        at = strstr(qn_str_text(&text), mark);
        assert_non_null(at);
        copy = qn_strdup(at + strlen(mark));
        assert_non_null(copy);
    }
    qn_str_fini(&text);
    return copy;
}

/* Likewise the macros of a body and the kernels of its operator's text that are for them. */
static inline char *product_kernel(const QnNode *n, QnDeviceCall *call)
{
    QnStr text = { 0 };
    const char *mark = "#define QN_BODY_OUT", *at, *kernel, *end;
    char *copy = NULL;
    if (n->op->call(n, call) == QN_OK && qn_devtext_product(n, &text) == QN_OK) {
        kernel = strstr(n->op->device, "#ifdef QN_BODY_RUN");
        assert_non_null(kernel);
        end = strstr(kernel, "\n#endif\n");
        assert_non_null(end);
        qn_str_add_bytes(&text, kernel, (size_t)(end + strlen("\n#endif\n") - kernel));
        qn_str_add(&text, "#undef QN_BODY_OUT\n#undef QN_BODY_IN\n#undef QN_BODY_RUN\n");
        at = strstr(qn_str_text(&text), mark);
        assert_non_null(at);
        copy = qn_strdup(at);
        assert_non_null(copy);
    }
    qn_str_fini(&text);
    return copy;
}

/* Defines, or forgets, each kernel of a text as the prefix and its own name. */
static inline void rename_kernels(const char *text, const char *prefix, bool define, QnStr *out)
{
    static const char word[] = "QN_KERNEL";
    for (const char *at = text; (at = strstr(at, word));) {
        at += strlen(word);
        at += strspn(at, " \n");
        int n = (int)strcspn(at, "(");
        if (define)
            qn_str_printf(out, "#define %.*s %s_%.*s\n", n, at, prefix, n, at);
        else
            qn_str_printf(out, "#undef %.*s\n", n, at);
    }
}

/* Samples of one text share its kernels; where there are none yet, they are made, unless
 * `shared_only`. */
static inline bool name_map(Batch *b, Item *it, bool shared_only)
{
    snprintf(it->prefix, sizeof it->prefix, "map_%lld", (long long)b->n);
    bool seen = false;
    for (int64_t i = 0; i < b->n && !seen; i++) {
        seen = b->items[i].map && !strcmp(b->items[i].map, it->map);
        if (seen)
            memcpy(it->prefix, b->items[i].prefix, sizeof it->prefix);
    }
    if (!seen && shared_only)
        return false;
    snprintf(it->kernel, sizeof it->kernel, "%s_%s", it->prefix, it->call.kernel);
    if (seen)
        return true;
    rename_kernels(it->map, it->prefix, true, &b->text);
    qn_str_printf(&b->text, "#define qn_map_at %s_at\n%s#undef qn_map_at\n", it->prefix, it->map);
    rename_kernels(it->map, it->prefix, false, &b->text);
    return true;
}

/* QN_T is the dtype of a node's data; what is always f32 (statistics), the text spells out. A node
 * without any tensor in that dtype (arange) has been seen in f32. */
static inline bool is_of_type(const QnNode *n, QnDtype f)
{
    bool floats = false;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const QnValue *v = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (v && v->type.dtype == f)
            return true;
        floats |= v && qn_dtype_is_float(v->type.dtype);
    }
    return !floats;
}

/* Takes the case over. With shared_only, a map whose kernel is not in the batch is left out. */
static inline void batch_take(Batch *b, Item *it, bool shared_only)
{
    const QnOp *op = it->c.op;
    const QnNode *n = it->c.node;
    bool map = op->traits & QN_MAP, ok = is_of_type(n, it->dtype);
    const char *why = ok ? qn_devtext_refuses(n) : NULL;
    ok &= !why;
    if (ok && (map || qn_devbody_of(n))) {
        it->map = map ? map_kernel(n, &it->call) : product_kernel(n, &it->call);
        ok = it->map && name_map(b, it, shared_only);
    } else if (ok) {
        ok = op->call(n, &it->call) == QN_OK;
    }
    if (ok) {
        assert_ok(QN_GROW(b->items, b->cap, b->n));
        b->items[b->n++] = *it;
        return;
    }
    b->refused += why != NULL;
    qn_free(it->map);
    case_close(&it->c);
}

/* A type that the operator refuses is no case: test_types sees to that. */
static inline void batch_add(Batch *b, const QnOp *op, int k, QnDtype f)
{
    Item it = { .dtype = f };
    if (case_try(&it.c, op, k, f))
        batch_take(b, &it, false);
}

/* Broadcasting is the same in every storage type: maps show theirs in f32. */
static inline bool is_left_out(const QnOp *op, int k, QnDtype f)
{
    return f != QN_DTYPE_F32 && ((op->samples[k].flags & QN_SAMPLE_F32_ONLY) || (op->map && k > 0));
}

/* The text of every operator, one after the other; some share one. */
static inline void add_all_texts(QnStr *text)
{
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        bool seen = false;
        for (int k = 0; k < o; k++)
            seen |= all_ops[k]->device == all_ops[o]->device;
        if (all_ops[o]->device && !seen)
            qn_str_add(text, all_ops[o]->device);
    }
}

/* The items stand where they stay: launches name their kernels. */
static inline void batch_done(Batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        if (b->items[i].map)
            b->items[i].call.kernel = b->items[i].kernel;
    }
    assert_ok(b->text.st);
}

static inline void batch_start(Batch *b, QnDtype f)
{
    *b = (Batch){ .dtype = f };
    add_all_texts(&b->text);
}

/* The samples that are the operator's own. */
static inline void batch_collect(Batch *b, QnDtype f)
{
    batch_start(b, f);
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        for (int k = 0; k < op->n_samples; k++) {
            if ((op->device || (op->traits & QN_MAP)) && !is_left_out(op, k, f))
                batch_add(b, op, k, f);
        }
    }
    batch_done(b);
}

/* Variants of the samples: shapes need no new kernels, so that in other types than f32, maps with
 * other kernels than their first sample has are left out. */
static inline void batch_collect_variants(Batch *b, QnDtype f)
{
    for (int o = 0; o < QN_COUNT(all_ops); o++) {
        const QnOp *op = all_ops[o];
        for (int k = 0; k < op->n_samples; k++) {
            static Variants all;
            if (!(op->device || (op->traits & QN_MAP)) || is_left_out(op, k, f))
                continue;
            variants_of(&all, op, k);
            for (int v = 0; v < all.n; v++) {
                Item it = { .dtype = f };
                if (case_vary(&it.c, op, k, &all, v, f))
                    batch_take(b, &it, f != QN_DTYPE_F32);
            }
        }
    }
    batch_done(b);
}

static inline void batch_free(Batch *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        qn_free(b->items[i].map);
        case_close(&b->items[i].c);
    }
    qn_str_fini(&b->text);
    qn_free(b->items);
}

#endif
