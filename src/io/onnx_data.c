#include "io/onnx_data.h"

#include "io/onnx_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MOST = 10 };

enum { NAME_BYTES = 4096 };

/* Without the heap: what is to be removed must go when memory is short too. */
static QnStatus name_of(const char *path, int i, char out[NAME_BYTES])
{
    int n = i ? snprintf(out, NAME_BYTES, "%s.%d.data", path, i)
              : snprintf(out, NAME_BYTES, "%s.data", path);
    return n > 0 && n < NAME_BYTES ? QN_OK : qn_fail(QN_EARG, "%s: the path is too long", path);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* 0: there is none. */
static uint64_t file_at(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* What cannot be read has no file of weights that could be known. */
static QnStatus open_older(QnOnnxData *d)
{
    d->before = file_at(d->path);
    QnStatus st = d->before ? qn_onnx_read(d->path, &d->older) : QN_OK;
    return st == QN_ENOMEM ? st : QN_OK;
}

QnStatus qn_onnx_data_create(QnOnnxData *d, const char *path)
{
    *d = (QnOnnxData){ .path = path };
    QN_TRY(open_older(d));
    for (int i = 0; i < NAMES_MOST; i++) {
        char name[NAME_BYTES];
        QN_TRY(name_of(path, i, name));
        if (qn_file_exists(name))
            continue;
        d->name = qn_strdup(name);
        QN_TRY(d->name ? QN_OK : QN_ENOMEM);
        d->location = last_part(d->name);
        return qn_file_create(&d->out, d->name);
    }
    return qn_fail(QN_EUSAGE,
                   "%s.data, %s.1.data and so on are all there; remove those that no "
                   "model reads",
                   path, path);
}

/* Of these names only: another file of weights is not ours to remove. */
static void remove_older_data(const QnOnnxData *d)
{
    for (int i = 0; d->older && i < NAMES_MOST; i++) {
        char name[NAME_BYTES];
        if (name_of(d->path, i, name) != QN_OK)
            return;
        for (int64_t k = 0; strcmp(name, d->name) && k < d->older->file->n_mapped; k++)
            if (!strcmp(d->older->file->mapped[k].location, last_part(name)))
                unlink(name);
    }
}

void qn_onnx_data_finish(QnOnnxData *d, bool is_written)
{
    qn_file_discard(&d->out);
    if (is_written && d->name)
        remove_older_data(d);
    else if (d->location && file_at(d->path) == d->before) /* the new model does not stand */
        unlink(d->name);
    qn_onnx_free(d->older);
    qn_free(d->name);
}
