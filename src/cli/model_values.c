#include "cli/model_values.h"

#include "base/file.h"
#include "onnx/check.h"
#include "quern/npy.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 200 };

/* ---- inputs ---------------------------------------------------------------------------------- */

QnStatus qn_cli_read_npy(const char *path, QnArena *arena, QnItem **out)
{
    QnNpy npy;
    QN_TRY(qn_npy_read(path, &npy));
    QnTensor *t = qn_arena_alloc(arena, sizeof *t);
    QnItem *item = qn_arena_alloc(arena, sizeof *item);
    const char *name = qn_arena_strdup(arena, path);
    QnStatus st = t && item && name ? QN_OK : QN_ENOMEM;
    if (st == QN_OK) {
        t->type = (QnType){ .dtype = npy.dtype, .shape = qn_shape_make(npy.rank, npy.dims) };
        int64_t bytes = qn_type_bytes(&t->type);
        t->data = qn_arena_alloc(arena, (size_t)QN_MAX(bytes, 1));
        if (t->data && bytes > 0)
            memcpy((void *)t->data, npy.data, (size_t)bytes);
        *item = (QnItem){ .kind = QN_ITEM_TENSOR, .epoch = -1, .known = t, .name = name };
        st = t->data ? QN_OK : QN_ENOMEM;
        *out = item;
    }
    qn_npy_fini(&npy);
    return st;
}

static QnStatus list_inputs(const QnOnnxModel *m, const char *what)
{
    QnStr names = { 0 };
    for (int64_t i = 0; i < m->graph->n_inputs; i++)
        qn_str_printf(&names, "%s%s", i ? ", " : "", m->graph->input[i].name);
    QnStatus st = qn_fail(QN_EUSAGE, "%s; the model's inputs: %s", what, qn_str_text(&names));
    qn_str_fini(&names);
    return st;
}

static QnStatus read_input(const QnOnnxModel *m, const char *setting, QnArena *arena, QnItem **in)
{
    char what[300];
    const QnOnnxGraph *g = m->graph;
    const char *path = strchr(setting, '=') + 1;
    size_t n = (size_t)(path - 1 - setting), len = strlen(path);
    for (int64_t i = 0; i < g->n_inputs; i++) {
        if (strlen(g->input[i].name) != n || strncmp(g->input[i].name, setting, n))
            continue;
        if (len > 3 && !strcmp(path + len - 3, ".pb"))
            return qn_onnx_read_value(path, g->input[i].type, arena, &in[i]);
        return qn_cli_read_npy(path, arena, &in[i]);
    }
    snprintf(what, sizeof what, "the model has no input '%.*s'", (int)QN_MIN(n, 200), setting);
    return list_inputs(m, what);
}

QnStatus qn_cli_check_folder(const char *folder, const char *what, int64_t n)
{
    char path[4096];
    struct stat info;
    bool found = n == 0;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return qn_fail(QN_ENOTFOUND, "--data %s: no such folder", folder);
    for (int64_t i = 0; i < n && !found; i++) {
        snprintf(path, sizeof path, "%s/%s_%lld.pb", folder, what, (long long)i);
        found = qn_file_exists(path);
    }
    return found ? QN_OK
                 : qn_fail(QN_ENOTFOUND, "--data %s: the folder has no %s_0.pb", folder, what);
}

static QnStatus read_folder(const QnOnnxModel *m, const char *folder, QnArena *arena, QnItem **in)
{
    int64_t needed = 0;
    const QnOnnxGraph *g = m->graph;
    for (int64_t i = 0; i < g->n_inputs; i++)
        needed += g->input[i].type->kind != QN_ONNX_TYPE_OPTIONAL &&
                  !qn_onnx_find_init(g, g->input[i].name);
    QN_TRY(qn_cli_check_folder(folder, "input", needed ? g->n_inputs : 0));
    return qn_case_inputs(g, folder, arena, in);
}

static QnStatus check_inputs(const QnOnnxModel *m, QnItem *const *in)
{
    char what[300];
    const QnOnnxGraph *g = m->graph;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (!in[i] && g->input[i].type->kind != QN_ONNX_TYPE_OPTIONAL &&
            !qn_onnx_find_init(g, g->input[i].name)) {
            snprintf(what, sizeof what, "input '%.200s' is missing: --input %.40s=FILE.npy",
                     g->input[i].name, g->input[i].name);
            return list_inputs(m, what);
        }
    return QN_OK;
}

QnStatus qn_cli_check_once(const QnArgs *a, int option)
{
    for (int i = 0; i < a->n_many; i++)
        for (int k = 0; k < i; k++) {
            size_t n = strcspn(a->many[i], "=");
            if (a->many_of[i] == option && a->many_of[k] == option &&
                strcspn(a->many[k], "=") == n && !strncmp(a->many[i], a->many[k], n))
                return qn_fail(QN_EUSAGE, "%s: input '%.*s' is given twice",
                               a->command->options[option].name, (int)QN_MIN(n, 200), a->many[i]);
        }
    return QN_OK;
}

QnStatus qn_cli_some_inputs(const QnArgs *a, int option, const QnOnnxModel *m, QnArena *arena,
                            QnItem **in)
{
    QN_TRY(qn_cli_check_once(a, option));
    for (int i = 0; i < a->n_many; i++)
        if (a->many_of[i] == option)
            QN_TRY(read_input(m, a->many[i], arena, in));
    return QN_OK;
}

QnStatus qn_cli_model_inputs(const QnArgs *a, int option, const QnOnnxModel *m, const char *folder,
                             QnArena *arena, QnItem **in)
{
    if (folder)
        QN_TRY(read_folder(m, folder, arena, in));
    QN_TRY(qn_cli_some_inputs(a, option, m, arena, in));
    return check_inputs(m, in);
}

/* ---- results --------------------------------------------------------------------------------- */

QnStatus qn_cli_output_path(const char *folder, const char *name, int64_t number,
                            const char *extension, char *out, size_t bytes)
{
    char file[NAME_BYTES];
    size_t n = 0;
    for (const char *p = name; *p && n < sizeof file - 24; p++) {
        bool odd = *p == '/' || *p == '\\' || (n == 0 && *p == '.');
        file[n++] = odd ? '_' : *p;
    }
    file[n] = '\0';
    if (number >= 0)
        snprintf(file + n, sizeof file - n, ".%lld", (long long)number);
    int length = snprintf(out, bytes, "%s/%s.%s", folder, file, extension);
    return length > 0 && (size_t)length < bytes
               ? QN_OK
               : qn_fail(QN_EUSAGE, "%s: the path is too long", folder);
}

static QnStatus write_item(const char *folder, const char *name, const QnItem *item, int64_t number)
{
    char path[4096];
    for (int64_t i = 0; i < item->n; i++)
        QN_TRY(write_item(folder, name, item->item[i], i));
    if (item->kind != QN_ITEM_TENSOR)
        return QN_OK;
    const QnTensor *t = item->known;
    QN_TRY(qn_cli_output_path(folder, name, number, "npy", path, sizeof path));
    QnStatus st =
        t->text ? QN_EUNSUPPORTED
                : qn_npy_write(path, t->type.dtype, t->type.shape.rank, t->type.shape.dim, t->data);
    if (st != QN_EUNSUPPORTED && st != QN_EARG)
        return st;
    QN_TRY(qn_cli_output_path(folder, name, number, "pb", path, sizeof path));
    return qn_onnx_write_tensor(path, name, t);
}

QnStatus qn_cli_write_item(const char *folder, const char *name, const QnItem *item)
{
    return write_item(folder, name, item, -1);
}

/* As files of values are told apart: by what they hold. */
static QnOnnxType type_like(const QnItem *like)
{
    static const QnOnnxType tensor = { .kind = QN_ONNX_TYPE_TENSOR, .rank = -1 };
    QnOnnxType t = { .kind = like->kind == QN_ITEM_SEQUENCE   ? QN_ONNX_TYPE_SEQUENCE
                             : like->kind == QN_ITEM_OPTIONAL ? QN_ONNX_TYPE_OPTIONAL
                                                              : QN_ONNX_TYPE_TENSOR,
                     .rank = -1,
                     .of = &tensor };
    if (like->kind == QN_ITEM_TENSOR && !like->known->text)
        t.elem = qn_onnx_dtype_number(like->known->type.dtype);
    return t;
}

static QnStatus read_item(const char *folder, const char *name, const QnItem *like, int64_t number,
                          QnArena *arena, QnItem **out)
{
    char path[4096];
    QnOnnxType type = type_like(like);
    *out = NULL;
    QN_TRY(qn_cli_output_path(folder, name, number, "pb", path, sizeof path));
    if (qn_file_exists(path))
        return qn_onnx_read_value(path, &type, arena, out);
    QN_TRY(qn_cli_output_path(folder, name, number, "npy", path, sizeof path));
    if (like->kind == QN_ITEM_TENSOR)
        return qn_file_exists(path) ? qn_cli_read_npy(path, arena, out) : QN_OK;
    QnItem *item = qn_arena_alloc(arena, sizeof *item);
    QnItem **list = qn_arena_array(arena, (size_t)like->n + 1, sizeof(QnItem *));
    QN_TRY(item && list ? QN_OK : QN_ENOMEM);
    *item = (QnItem){ .kind = like->kind, .epoch = -1, .name = like->name, .item = list };
    while (item->n < like->n) {
        QN_TRY(read_item(folder, name, like->item[item->n], item->n, arena, &list[item->n]));
        if (!list[item->n])
            break;
        item->n++;
    }
    *out = item->n ? item : NULL;
    return QN_OK;
}

QnStatus qn_cli_read_item(const char *folder, const char *name, const QnItem *like, QnArena *arena,
                          QnItem **out)
{
    return read_item(folder, name, like, -1, arena, out);
}
