/* Tensors in the value of a PyTorch file's pickle. */
#include "io/torch_file_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, NAME_MAX_BYTES = 1000 };

#define TORCH_STORAGES(X)                                                                          \
    X("torch.FloatStorage", QN_DTYPE_F32)                                                          \
    X("torch.HalfStorage", QN_DTYPE_F16)                                                           \
    X("torch.BFloat16Storage", QN_DTYPE_BF16)                                                      \
    X("torch.DoubleStorage", QN_DTYPE_F64)                                                         \
    X("torch.LongStorage", QN_DTYPE_I64)                                                           \
    X("torch.IntStorage", QN_DTYPE_I32)                                                            \
    X("torch.ShortStorage", QN_DTYPE_I16)                                                          \
    X("torch.CharStorage", QN_DTYPE_I8)                                                            \
    X("torch.ByteStorage", QN_DTYPE_U8)                                                            \
    X("torch.BoolStorage", QN_DTYPE_BOOL)

#define TORCH_DTYPES(X)                                                                            \
    X("torch.float32", QN_DTYPE_F32)                                                               \
    X("torch.float16", QN_DTYPE_F16)                                                               \
    X("torch.bfloat16", QN_DTYPE_BF16)                                                             \
    X("torch.float64", QN_DTYPE_F64)                                                               \
    X("torch.int64", QN_DTYPE_I64)                                                                 \
    X("torch.int32", QN_DTYPE_I32)                                                                 \
    X("torch.int16", QN_DTYPE_I16)                                                                 \
    X("torch.uint64", QN_DTYPE_U64)                                                                \
    X("torch.uint32", QN_DTYPE_U32)                                                                \
    X("torch.uint16", QN_DTYPE_U16)                                                                \
    X("torch.float8_e4m3fn", QN_DTYPE_F8E4M3FN)                                                    \
    X("torch.float8_e4m3fnuz", QN_DTYPE_F8E4M3FNUZ)                                                \
    X("torch.float8_e5m2", QN_DTYPE_F8E5M2)                                                        \
    X("torch.float8_e5m2fnuz", QN_DTYPE_F8E5M2FNUZ)                                                \
    X("torch.int8", QN_DTYPE_I8)                                                                   \
    X("torch.uint8", QN_DTYPE_U8)                                                                  \
    X("torch.bool", QN_DTYPE_BOOL)

/* Known to PyTorch, not to Quern: refused where a tensor has them. */
#define TORCH_OTHERS(X)                                                                            \
    X("torch.ComplexFloatStorage")                                                                 \
    X("torch.ComplexDoubleStorage")                                                                \
    X("torch.complex64")                                                                           \
    X("torch.complex128")

#define UNTYPED         "torch.storage.UntypedStorage"
#define REBUILD(kind)   "torch._utils._rebuild_" kind
#define REBUILD_TENSORS "torch._utils._rebuild_tensor"

const QnPickleGlobal qn_torch_globals[] = { { "collections.OrderedDict", true },
                                            { REBUILD("tensor"), false },
                                            { REBUILD("tensor_v2"), false },
                                            { REBUILD("tensor_v3"), false },
                                            { REBUILD("parameter"), false },
                                            { "torch.Size", false },
                                            { "torch.device", false },
                                            { UNTYPED, false },
#define QN_X(name, dtype) { name, false },
                                            TORCH_STORAGES(QN_X) TORCH_DTYPES(QN_X)
#undef QN_X
#define QN_X(name) { name, false },
                                                TORCH_OTHERS(QN_X)
#undef QN_X
};
const int qn_torch_n_globals = QN_COUNT(qn_torch_globals);

static const struct {
    const char *name;
    QnDtype dtype;
} dtypes[] = {
#define QN_X(name, dtype) { name, dtype },
    TORCH_STORAGES(QN_X) TORCH_DTYPES(QN_X)
#undef QN_X
};

typedef struct Walk {
    QnTorchFile *f;
    QnStr path;
    int depth;
    uint64_t steps, name_bytes, most_steps, most_name_bytes;
} Walk;

static QnStatus walk_fail(const Walk *w, const QnPickle *v, const char *why)
{
    return qn_fail(QN_EFORMAT, "%s: pickle byte %zu: '%.200s': %s", w->f->path, v->offset,
                   qn_str_text(&w->path), why);
}

static bool is_global(const QnPickle *v, const char *name)
{
    return v->kind == QN_PICKLE_GLOBAL && !strcmp(v->string, name);
}

static QnStatus find_dtype(const Walk *w, const QnPickle *name, QnDtype *dtype)
{
    for (int i = 0; name->kind == QN_PICKLE_GLOBAL && i < QN_COUNT(dtypes); i++)
        if (!strcmp(dtypes[i].name, name->string)) {
            *dtype = dtypes[i].dtype;
            return QN_OK;
        }
    if (name->kind != QN_PICKLE_GLOBAL)
        return walk_fail(w, name, "its type is no name");
    return qn_fail(QN_EUNSUPPORTED,
                   "%s: tensor '%.200s': type %.60s is not one of float64 float32 float16 bfloat16 "
                   "float8 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool",
                   w->f->path, qn_str_text(&w->path), name->string);
}

/* ('storage', type, key, location, elements) */
static QnStatus find_storage(const Walk *w, const QnPickle *p, const QnPickle *dtype_name,
                             QnSafetensor *t, QnTorchTensor *view, int64_t *elements)
{
    const QnPickle *id = p->kind == QN_PICKLE_PERSISTENT ? p->items[0] : NULL;
    if (!id || id->kind != QN_PICKLE_TUPLE || id->n != 5 ||
        id->items[0]->kind != QN_PICKLE_STRING || strcmp(id->items[0]->string, "storage") ||
        id->items[1]->kind != QN_PICKLE_GLOBAL || id->items[2]->kind != QN_PICKLE_STRING ||
        id->items[4]->kind != QN_PICKLE_INT || id->items[4]->integer < 0)
        return walk_fail(w, p, "its storage is not described as PyTorch does");
    bool untyped = is_global(id->items[1], UNTYPED);
    if (untyped && !dtype_name)
        return walk_fail(w, p, "an untyped storage without a type");
    QN_TRY(find_dtype(w, dtype_name ? dtype_name : id->items[1], &t->dtype));
    char *name = qn_arena_printf(w->f->arena, "%sdata/%s", w->f->root, id->items[2]->string);
    if (!name)
        return QN_ENOMEM;
    view->storage = qn_zip_find(w->f->zip, name);
    if (!view->storage)
        return qn_fail(QN_EFORMAT, "%s: '%.200s': its storage '%.100s' is not in the archive",
                       w->f->path, qn_str_text(&w->path), name);
    int64_t item = (int64_t)qn_dtype_bytes(t->dtype), bytes;
    if (untyped && id->items[4]->integer % item)
        return walk_fail(w, p, "its storage is no whole number of elements");
    *elements = untyped ? id->items[4]->integer / item : id->items[4]->integer;
    if (qn_mul_overflow(*elements, item, &bytes) || (uint64_t)bytes != view->storage->size)
        return qn_fail(QN_EFORMAT,
                       "%s: '%.200s': its storage has %" PRIu64 " bytes, and should have %" PRId64
                       " elements of %" PRId64 ": the file is damaged",
                       w->f->path, qn_str_text(&w->path), view->storage->size, *elements, item);
    return QN_OK;
}

static QnStatus read_ints(const Walk *w, const QnPickle *v, int64_t out[QN_SAFETENSORS_MAX_RANK],
                          int *n)
{
    if (v->kind == QN_PICKLE_CALL && is_global(v->items[0], "torch.Size") && v->items[1]->n == 1)
        v = v->items[1]->items[0];
    if (v->kind != QN_PICKLE_TUPLE)
        return walk_fail(w, v, "its shape or strides are no tuple");
    if (v->n > QN_SAFETENSORS_MAX_RANK)
        return qn_fail(QN_EUNSUPPORTED, "%s: '%.200s': %" PRId64 " dimensions, at most %d",
                       w->f->path, qn_str_text(&w->path), v->n, QN_SAFETENSORS_MAX_RANK);
    for (int64_t i = 0; i < v->n; i++) {
        if (v->items[i]->kind != QN_PICKLE_INT || v->items[i]->integer < 0)
            return walk_fail(w, v, "its shape or strides are not whole numbers from 0");
        out[i] = v->items[i]->integer;
    }
    *n = (int)v->n;
    return QN_OK;
}

/* The view stays in its storage and is no larger than it: an expanded one (stride 0) could ask for
 * any amount of memory. */
static QnStatus check_view(const Walk *w, const QnPickle *v, QnSafetensor *t,
                           const QnTorchTensor *view, int64_t elements)
{
    int64_t last = view->offset, step, reach;
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == 0)
            t->count = 0;
    for (int i = 0; t->count && i < t->rank; i++) {
        if (qn_mul_overflow(t->count, t->dims[i], &t->count) ||
            qn_mul_overflow(t->dims[i] - 1, view->strides[i], &step) ||
            qn_add_overflow(last, step, &reach))
            return walk_fail(w, v, "its shape and strides go beyond 64 bits");
        last = reach;
    }
    if (view->offset < 0 || view->offset > elements || (t->count && last >= elements))
        return walk_fail(w, v, "it reaches beyond its storage");
    if (t->count > elements)
        return walk_fail(w, v,
                         "an expanded view, which is larger than its storage: save it after "
                         ".contiguous()");
    t->bytes = (size_t)t->count * qn_dtype_bytes(t->dtype);
    return QN_OK;
}

static QnStatus keep_name(Walk *w, const QnPickle *v, const char **out)
{
    w->name_bytes += w->path.n + 1;
    if (w->name_bytes > w->most_name_bytes)
        return walk_fail(w, v, "the names take more than the file could hold");
    *out = qn_arena_strdup(w->f->arena, qn_str_text(&w->path));
    return *out ? QN_OK : QN_ENOMEM;
}

/* (storage, offset, shape, strides[, requires_grad, hooks[, dtype][, metadata]]) */
static QnStatus add_tensor(Walk *w, const QnPickle *call, bool has_dtype)
{
    QnTorchFile *f = w->f;
    const QnPickle *args = call->items[1];
    QnSafetensor t = { 0 };
    QnTorchTensor view = { 0 };
    int64_t elements = 0;
    int n_strides = 0;
    if (args->n < 4 || args->n > 8 || (has_dtype && args->n < 7) ||
        args->items[1]->kind != QN_PICKLE_INT)
        return walk_fail(w, call, "is not described as PyTorch does");
    if (args->n > 5 && (args->items[5]->kind != QN_PICKLE_DICT || args->items[5]->n))
        return walk_fail(w, call, "has hooks, which are programs");
    view.offset = args->items[1]->integer;
    QN_TRY(
        find_storage(w, args->items[0], has_dtype ? args->items[6] : NULL, &t, &view, &elements));
    QN_TRY(read_ints(w, args->items[2], t.dims, &t.rank));
    QN_TRY(read_ints(w, args->items[3], view.strides, &n_strides));
    if (n_strides != t.rank)
        return walk_fail(w, call, "has other strides than dimensions");
    QN_TRY(check_view(w, call, &t, &view, elements));
    QN_TRY(keep_name(w, call, &t.name));
    QN_TRY(QN_GROW(f->tensors, f->cap, f->count));
    QN_TRY(QN_GROW(f->views, f->cap_views, f->count));
    f->tensors[f->count] = t;
    f->views[f->count++] = view;
    return QN_OK;
}

static QnStatus add_text(Walk *w, const QnPickle *v, const char *text)
{
    QnTorchFile *f = w->f;
    QnSafetensorsText t = { .value = text };
    if (!t.value)
        return QN_ENOMEM;
    QN_TRY(keep_name(w, v, &t.key));
    QN_TRY(QN_GROW(f->texts, f->cap_texts, f->n_texts));
    f->texts[f->n_texts++] = t;
    return QN_OK;
}

static QnStatus walk(Walk *w, const QnPickle *v, bool in_list);

static QnStatus walk_call(Walk *w, const QnPickle *v)
{
    const QnPickle *what = v->items[0], *args = v->items[1];
    if (is_global(what, REBUILD("parameter"))) {
        if (args->n < 1)
            return walk_fail(w, v, "a parameter without a tensor");
        return walk(w, args->items[0], false);
    }
    bool v3 = is_global(what, REBUILD("tensor_v3"));
    if (v3 || is_global(what, REBUILD("tensor_v2")) || is_global(what, REBUILD("tensor")))
        return add_tensor(w, v, v3);
    return add_text(w, v, what->string); /* torch.Size, torch.device */
}

/* One item of a dict or list: the path grows by its key and shrinks again. */
static QnStatus walk_item(Walk *w, const QnPickle *key, int64_t index, const QnPickle *v)
{
    size_t n = w->path.n;
    const char *dot = n ? "." : "";
    if (!key)
        qn_str_printf(&w->path, "%s%" PRId64, dot, index);
    else if (key->kind == QN_PICKLE_INT)
        qn_str_printf(&w->path, "%s%" PRId64, dot, key->integer);
    else if (key->kind == QN_PICKLE_STRING && strlen(key->string) == (size_t)key->n &&
             key->n < NAME_MAX_BYTES)
        qn_str_printf(&w->path, "%s%s", dot, key->string);
    else
        return walk_fail(w, key, "a key that is neither a number nor a text of sensible length");
    QN_TRY(w->path.st);
    if (w->path.n > NAME_MAX_BYTES)
        return walk_fail(w, v, "its name is too long");
    QN_TRY(walk(w, v, !key));
    w->path.s[n] = '\0';
    w->path.n = n;
    return QN_OK;
}

static QnStatus walk_scalar(Walk *w, const QnPickle *v)
{
    QnArena *a = w->f->arena;
    switch (v->kind) {
    case QN_PICKLE_BOOL: return add_text(w, v, v->boolean ? "True" : "False");
    case QN_PICKLE_INT: return add_text(w, v, qn_arena_printf(a, "%" PRId64, v->integer));
    case QN_PICKLE_FLOAT: return add_text(w, v, qn_arena_printf(a, "%.17g", v->number));
    case QN_PICKLE_STRING: return add_text(w, v, v->string);
    case QN_PICKLE_GLOBAL: return add_text(w, v, v->string);
    default: return QN_OK; /* None, bytes */
    }
}

static QnStatus walk(Walk *w, const QnPickle *v, bool in_list)
{
    QnStatus st = QN_OK;
    if (++w->steps > w->most_steps)
        return walk_fail(w, v, "values that are repeated without end");
    if (w->depth == DEPTH_MAX)
        return walk_fail(w, v, "nested too deep, or in itself");
    w->depth++;
    if (v->kind == QN_PICKLE_CALL)
        st = walk_call(w, v);
    else if (v->kind == QN_PICKLE_PERSISTENT)
        st = walk_fail(w, v, "a storage without a tensor");
    else if (v->kind == QN_PICKLE_DICT)
        for (int64_t i = 0; st == QN_OK && i < v->n; i++)
            st = walk_item(w, v->items[2 * i], 0, v->items[2 * i + 1]);
    else if (v->kind == QN_PICKLE_LIST || v->kind == QN_PICKLE_TUPLE)
        for (int64_t i = 0; st == QN_OK && i < v->n; i++)
            st = walk_item(w, NULL, i, v->items[i]);
    else if (!in_list) /* a list's numbers (a scheduler's history) are no metadata */
        st = walk_scalar(w, v);
    w->depth--;
    return st;
}

QnStatus qn_torch_walk(QnTorchFile *f, const QnPickle *root, size_t pickle_bytes)
{
    Walk w = { .f = f,
               .most_steps = 64 + 4 * (uint64_t)pickle_bytes,
               .most_name_bytes = 65536 + 8 * (uint64_t)pickle_bytes };
    if (root->kind == QN_PICKLE_CALL) /* a tensor alone */
        qn_str_add(&w.path, "tensor");
    QnStatus st = w.path.st;
    if (st == QN_OK)
        st = walk(&w, root, false);
    qn_str_fini(&w.path);
    return st;
}
