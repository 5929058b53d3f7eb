#include "base/file.h"
#include "base/mem.h"
#include "io/npz.h"
#include "io/zip.h"

#include <inttypes.h>
#include <string.h>

enum { HEAD_MAX = 1 << 20 }; /* NumPy's own are a few hundred bytes */

typedef struct Array {
    const QnZipEntry *entry;
    const char *name;
    QnNpyHead head;
} Array;

struct QnNpz {
    QnArena *arena;
    QnFileMap map; /* all zeros: the data are the caller's */
    QnZip *zip;
    Array *arrays; /* in the order of the archive */
    int64_t count;
};

/* An array's header, unpacked alone. */
static QnStatus read_head(QnNpz *z, Array *a, const char *label)
{
    uint8_t first[QN_NPY_HEAD_MIN];
    const QnZipEntry *e = a->entry;
    QN_TRY(qn_zip_peek(z->zip, e, first, sizeof first));
    size_t n = qn_npy_head_bytes(first);
    if (!n)
        return qn_fail(QN_EFORMAT, "%s: byte 0: the magic of a .npy file is missing", label);
    if (n > HEAD_MAX || n > e->size)
        return qn_fail(QN_EFORMAT, "%s: byte 8: a header of %zu bytes in %" PRIu64, label, n,
                       e->size);
    uint8_t *head = qn_alloc(n);
    if (!head)
        return QN_ENOMEM;
    QnStatus st = qn_zip_peek(z->zip, e, head, n);
    if (st == QN_OK)
        st = qn_npy_head_parse(label, head, n, e->size, &a->head);
    qn_free(head);
    return st;
}

static QnStatus read_heads(QnNpz *z)
{
    z->arrays = qn_arena_array(z->arena, (size_t)qn_zip_count(z->zip), sizeof *z->arrays);
    if (!z->arrays)
        return QN_ENOMEM;
    for (int64_t i = 0; i < qn_zip_count(z->zip); i++) {
        const QnZipEntry *e = qn_zip_at(z->zip, i);
        size_t n = strlen(e->name);
        if (e->name[n - 1] == '/' && !e->size)
            continue; /* a folder, which other programs write */
        char *label = qn_arena_printf(z->arena, "%s: entry '%s'", qn_zip_path(z->zip), e->name);
        char *name = qn_arena_strdup(z->arena, e->name);
        if (!label || !name)
            return QN_ENOMEM;
        if (n < 5 || strcmp(name + n - 4, ".npy"))
            return qn_fail(QN_EFORMAT, "%.400s: is no array: its name does not end in .npy", label);
        name[n - 4] = '\0';
        Array *a = &z->arrays[z->count];
        *a = (Array){ .entry = e, .name = name };
        QN_TRY(read_head(z, a, label));
        z->count++;
    }
    return QN_OK;
}

QnStatus qn_npz_parse(const char *name, const void *data, size_t size, QnNpz **out)
{
    QnNpz *z = qn_alloc(sizeof *z);
    if (!z)
        return QN_ENOMEM;
    z->arena = qn_arena_new();
    QnStatus st = z->arena ? qn_zip_parse(name, data, size, &z->zip) : QN_ENOMEM;
    if (st == QN_OK)
        st = read_heads(z);
    if (st == QN_OK)
        *out = z;
    else
        qn_npz_close(z);
    return st;
}

QnStatus qn_npz_open(const char *path, QnNpz **out)
{
    QnFileMap map = { 0 };
    QN_TRY(qn_file_map(path, &map));
    QnStatus st = qn_npz_parse(path, map.data, map.bytes, out);
    if (st == QN_OK)
        (*out)->map = map;
    else
        qn_file_unmap(&map);
    return st;
}

void qn_npz_close(QnNpz *z)
{
    if (!z)
        return;
    qn_zip_free(z->zip);
    qn_file_unmap(&z->map);
    qn_arena_free(z->arena);
    qn_free(z);
}

int64_t qn_npz_count(const QnNpz *z)
{
    return z->count;
}

const char *qn_npz_name(const QnNpz *z, int64_t i)
{
    return z->arrays[i].name;
}

int64_t qn_npz_find(const QnNpz *z, const char *name)
{
    for (int64_t i = 0; i < z->count; i++)
        if (!strcmp(z->arrays[i].name, name))
            return i;
    return -1;
}

const QnNpy *qn_npz_type(const QnNpz *z, int64_t i)
{
    return &z->arrays[i].head.array;
}

bool qn_npz_is_compressed(const QnNpz *z)
{
    for (int64_t i = 0; i < z->count; i++)
        if (z->arrays[i].entry->deflated)
            return true;
    return false;
}

QnStatus qn_npz_read_into(const QnNpz *z, int64_t i, void *dst)
{
    const Array *a = &z->arrays[i];
    const QnZipEntry *e = a->entry;
    if (!e->deflated) {
        QN_TRY(qn_zip_check(z->zip, e));
        qn_npy_head_convert(&a->head, e->packed + a->head.data_at, dst);
        return QN_OK;
    }
    uint8_t *all = qn_alloc((size_t)e->size);
    QnStatus st = all ? qn_zip_read(z->zip, e, all) : QN_ENOMEM;
    if (st == QN_OK)
        qn_npy_head_convert(&a->head, all + a->head.data_at, dst);
    qn_free(all);
    return st;
}

QnStatus qn_npz_read(const QnNpz *z, int64_t i, QnNpy *out)
{
    QnNpy a = *qn_npz_type(z, i);
    a.data = qn_alloc((size_t)a.count * qn_dtype_bytes(a.dtype));
    QnStatus st = a.data ? qn_npz_read_into(z, i, a.data) : QN_ENOMEM;
    if (st == QN_OK)
        *out = a;
    else
        qn_free(a.data);
    return st;
}

static QnStatus add_array(QnZipWriter *w, const char *name, const QnNpy *a, bool compress)
{
    QnStr head = { 0 }, entry = { 0 };
    size_t bytes = 0;
    qn_str_printf(&entry, "%s.npy", name);
    QnStatus st = entry.st;
    if (st == QN_OK)
        st = qn_npy_head_print(name, a->dtype, a->rank, a->dims, &head, &bytes);
    if (st == QN_OK) {
        QnZipPart parts[] = { { qn_str_text(&head), head.n }, { a->data, bytes } };
        st = qn_zip_add(w, qn_str_text(&entry), parts, 2, compress);
    }
    qn_str_fini(&head);
    qn_str_fini(&entry);
    return st;
}

QnStatus qn_npz_write(const char *path, const char *const *names, const QnNpy *arrays, int64_t n,
                      bool compress)
{
    QnZipWriter *w;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++)
            if (!strcmp(names[i], names[k]))
                return qn_fail(QN_EARG, "%s: array '%s' is given twice", path, names[i]);
    QN_TRY(qn_zip_create(path, &w));
    for (int64_t i = 0; i < n; i++) {
        QnStatus st = add_array(w, names[i], &arrays[i], compress);
        if (st != QN_OK) {
            qn_zip_discard(w);
            return st;
        }
    }
    return qn_zip_commit(w);
}
