#include "base/file.h"
#include "io/torch_file_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PICKLE_MAX_BYTES (UINT64_C(1) << 28)
/* torch.save stores pickles as they are. One that was deflated since may unpack to so many times
 * the archive: values take much more memory than the bytes that make them. */
enum { PICKLE_RATIO = 4, PICKLE_SMALL_BYTES = 1 << 16 };

/* ---- the archive ---- */

static bool is_legacy(const uint8_t *p, size_t size)
{
    /* a pickle of the number 0x1950a86a20f9469cfc6c */
    static const uint8_t magic[] = { 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20 };
    return size >= 2 + sizeof magic && p[0] == 0x80 && !memcmp(p + 2, magic, sizeof magic);
}

static bool is_tar(const uint8_t *p, size_t size)
{
    return size > 262 && !memcmp(p + 257, "ustar", 5);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* The folder of data.pkl, with its slash: all of the archive lies in it. */
static QnStatus find_root(QnTorchFile *f, const QnZipEntry **pickle)
{
    *pickle = NULL;
    for (int64_t i = 0; i < qn_zip_count(f->zip); i++) {
        const QnZipEntry *e = qn_zip_at(f->zip, i);
        const char *slash = strchr(e->name, '/');
        if (!strcmp(e->name, "data.pkl") || (slash && !strcmp(slash, "/data.pkl"))) {
            if (*pickle)
                return qn_fail(QN_EFORMAT, "%s: holds both %.100s and %.100s", f->path,
                               (*pickle)->name, e->name);
            *pickle = e;
        }
        if (ends_with(e->name, "/constants.pkl") || strstr(e->name, "/code/"))
            return qn_fail(QN_EUNSUPPORTED,
                           "%s: a TorchScript program: save the state_dict() of its module",
                           f->path);
    }
    if (!*pickle)
        return qn_fail(QN_EFORMAT, "%s: holds no data.pkl: not a file of torch.save", f->path);
    char *root = qn_arena_strdup(f->arena, (*pickle)->name);
    if (!root)
        return QN_ENOMEM;
    root[strlen(root) - strlen("data.pkl")] = '\0';
    f->root = root;
    return QN_OK;
}

static QnStatus check_order(const QnTorchFile *f)
{
    char order[8] = "";
    char *name = qn_arena_printf(f->arena, "%sbyteorder", f->root);
    if (!name)
        return QN_ENOMEM;
    const QnZipEntry *e = qn_zip_find(f->zip, name);
    if (!e)
        return QN_OK; /* before PyTorch 2.1 */
    if (e->size < sizeof order)
        QN_TRY(qn_zip_read(f->zip, e, order));
    if (strcmp(order, "little"))
        return qn_fail(QN_EUNSUPPORTED, "%s: byte order '%s'; only little-endian files are read",
                       f->path, order);
    return QN_OK;
}

static QnStatus read_pickle(QnTorchFile *f, const QnZipEntry *e, size_t archive_bytes)
{
    QnArena *values = NULL;
    uint8_t *data = NULL;
    const QnPickle *root;
    if (e->size > PICKLE_MAX_BYTES)
        return qn_fail(QN_EFORMAT, "%s: a pickle of %" PRIu64 " bytes: tensors lie outside of it",
                       f->path, e->size);
    if (e->size > PICKLE_SMALL_BYTES && e->size / PICKLE_RATIO > archive_bytes)
        return qn_fail(QN_EFORMAT,
                       "%s: a pickle that unpacks to %" PRIu64 " bytes in an archive of %zu",
                       f->path, e->size, archive_bytes);
    char *label = qn_arena_printf(f->arena, "%s: %s", f->path, e->name);
    data = qn_alloc((size_t)e->size + 1);
    values = qn_arena_new();
    QnStatus st = label && data && values ? QN_OK : QN_ENOMEM;
    if (st == QN_OK)
        st = qn_zip_read(f->zip, e, data);
    if (st == QN_OK)
        st = qn_pickle_parse(values, label, data, (size_t)e->size, qn_torch_globals,
                             qn_torch_n_globals, &root);
    if (st == QN_OK)
        st = qn_torch_walk(f, root, (size_t)e->size);
    for (int64_t i = 0; st == QN_OK && i < f->n_texts; i++) { /* they live in `values` */
        f->texts[i].value = qn_arena_strdup(f->arena, f->texts[i].value);
        st = f->texts[i].value ? QN_OK : QN_ENOMEM;
    }
    qn_arena_free(values);
    qn_free(data);
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "a.b" may be a key, and the b of a too. */
static QnStatus check_names(const QnTorchFile *f)
{
    const char **names = qn_alloc_array((size_t)f->count + 1, sizeof *names);
    if (!names)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    for (int64_t i = 0; i < f->count; i++)
        names[i] = f->tensors[i].name;
    qsort(names, (size_t)f->count, sizeof *names, compare_names);
    for (int64_t i = 1; st == QN_OK && i < f->count; i++)
        if (!strcmp(names[i - 1], names[i]))
            st = qn_fail(QN_EFORMAT, "%s: tensor '%.200s' comes twice", f->path, names[i]);
    qn_free(names);
    return st;
}

static QnStatus read_all(QnTorchFile *f, const uint8_t *data, size_t size)
{
    const QnZipEntry *pickle;
    if (is_legacy(data, size) || is_tar(data, size))
        return qn_fail(QN_EUNSUPPORTED,
                       "%s: the format of PyTorch before 1.6: load it there and torch.save it anew",
                       f->path);
    QN_TRY(qn_zip_parse(f->path, data, size, &f->zip));
    QN_TRY(find_root(f, &pickle));
    QN_TRY(check_order(f));
    f->checked = qn_arena_array(f->arena, (size_t)qn_zip_count(f->zip), sizeof *f->checked);
    if (!f->checked)
        return QN_ENOMEM;
    QN_TRY(read_pickle(f, pickle, size));
    return check_names(f);
}

bool qn_torch_file_is(const void *data, size_t size)
{
    if (is_legacy(data, size))
        return true;
    QnZip *z;
    bool found = false;
    if (!qn_zip_is(data, size) || qn_zip_parse("", data, size, &z) != QN_OK)
        return false;
    for (int64_t i = 0; i < qn_zip_count(z) && !found; i++)
        found = ends_with(qn_zip_at(z, i)->name, "data.pkl");
    qn_zip_free(z);
    return found;
}

QnStatus qn_torch_file_parse(const char *name, const void *data, size_t size, QnTorchFile **out)
{
    QnTorchFile *f = qn_alloc(sizeof *f);
    if (!f)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    f->arena = qn_arena_new();
    f->path = f->arena ? qn_arena_strdup(f->arena, name) : NULL;
    QN_TRY_DONE(f->path ? QN_OK : QN_ENOMEM);
    QN_TRY_DONE(read_all(f, data, size));
    *out = f;
    f = NULL;
done:
    qn_torch_file_close(f);
    return st;
}

QnStatus qn_torch_file_open(const char *path, QnTorchFile **out)
{
    QnFileMap map = { 0 };
    QN_TRY(qn_file_map(path, &map));
    QnStatus st = qn_torch_file_parse(path, map.data, map.bytes, out);
    if (st == QN_OK)
        (*out)->map = map;
    else
        qn_file_unmap(&map);
    return st;
}

void qn_torch_file_close(QnTorchFile *f)
{
    if (!f)
        return;
    qn_zip_free(f->zip);
    qn_file_unmap(&f->map);
    qn_free(f->tensors);
    qn_free(f->views);
    qn_free(f->texts);
    qn_free(f->cache);
    qn_arena_free(f->arena);
    qn_free(f);
}

/* ---- tensors ---- */

int64_t qn_torch_file_count(const QnTorchFile *f)
{
    return f->count;
}

const QnSafetensor *qn_torch_file_at(const QnTorchFile *f, int64_t i)
{
    return &f->tensors[i];
}

const int64_t *qn_torch_file_strides(const QnTorchFile *f, int64_t i, int64_t *offset)
{
    *offset = f->views[i].offset;
    return f->views[i].strides;
}

int64_t qn_torch_file_text_count(const QnTorchFile *f)
{
    return f->n_texts;
}

QnSafetensorsText qn_torch_file_text_at(const QnTorchFile *f, int64_t i)
{
    return f->texts[i];
}

/* The bytes of a storage: in the archive, or unpacked and kept until another is. */
static QnStatus storage_bytes(QnTorchFile *f, const QnZipEntry *e, const uint8_t **out)
{
    bool *checked = &f->checked[e - qn_zip_at(f->zip, 0)];
    if (!e->deflated) {
        if (!*checked)
            QN_TRY(qn_zip_check(f->zip, e));
        *checked = true;
        *out = e->packed;
        return QN_OK;
    }
    if (f->cached != e) {
        qn_free(f->cache);
        f->cached = NULL;
        f->cache = qn_alloc((size_t)e->size);
        if (!f->cache)
            return QN_ENOMEM;
        QN_TRY(qn_zip_read(f->zip, e, f->cache));
        f->cached = e;
    }
    *out = f->cache;
    return QN_OK;
}

static bool is_contiguous(const QnSafetensor *t, const int64_t *strides)
{
    int64_t want = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->dims[d] != 1 && strides[d] != want)
            return false;
        want *= t->dims[d];
    }
    return true;
}

static void gather(const QnSafetensor *t, const int64_t *strides, const uint8_t *from, uint8_t *dst)
{
    size_t item = qn_dtype_bytes(t->dtype);
    int64_t index[QN_SAFETENSORS_MAX_RANK] = { 0 }, at = 0;
    for (int64_t i = 0; i < t->count; i++) {
        memcpy(dst + (size_t)i * item, from + (size_t)at * item, item);
        for (int d = t->rank - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < t->dims[d])
                break;
            at -= strides[d] * t->dims[d];
            index[d] = 0;
        }
    }
}

QnStatus qn_torch_file_read(QnTorchFile *f, int64_t i, void *dst)
{
    const QnSafetensor *t = &f->tensors[i];
    const QnTorchTensor *v = &f->views[i];
    const uint8_t *bytes;
    if (!t->count)
        return QN_OK;
    QN_TRY(storage_bytes(f, v->storage, &bytes));
    bytes += (size_t)v->offset * qn_dtype_bytes(t->dtype);
    if (is_contiguous(t, v->strides))
        memcpy(dst, bytes, t->bytes);
    else
        gather(t, v->strides, bytes, dst);
    if (t->dtype == QN_DTYPE_BOOL) /* any other value would be undefined as a bool */
        for (size_t k = 0; k < t->bytes; k++)
            ((uint8_t *)dst)[k] = ((uint8_t *)dst)[k] != 0;
    return QN_OK;
}
