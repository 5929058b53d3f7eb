#include "io/folder_list.h"
#include "base/fault.h"
#include "io/image.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static QnStatus add_file(QnFolderList *l, const char *path, const char *class_name,
                         const QnTarEntry *entry)
{
    QN_TRY(QN_GROW(l->files, l->cap, l->count));
    l->files[l->count++] = (QnFolderFile){ .path = path, .class_name = class_name, .entry = entry };
    return QN_OK;
}

static QnStatus add_class(QnFolderList *l, const char *name)
{
    QN_TRY(QN_GROW(l->classes, l->class_cap, l->class_count));
    l->classes[l->class_count++] = name;
    return QN_OK;
}

static QnStatus system_fail(const char *path, const char *what)
{
    char text[128];
    return qn_fail(errno == ENOENT ? QN_ENOTFOUND : QN_EIO, "%s: cannot %s: %s", path, what,
                   strerror_r(errno, text, sizeof text));
}

static DIR *open_folder(const char *path)
{
    if (!qn_fault_hit())
        return opendir(path);
    errno = EIO;
    return NULL;
}

/* The next name that is not hidden; NULL at the end. */
static QnStatus next_name(DIR *dir, const char *path, const char **name)
{
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e && errno)
            return system_fail(path, "list");
        *name = e ? e->d_name : NULL;
        if (!e || e->d_name[0] != '.')
            return QN_OK;
    }
}

/* Opening a pipe would wait for a writer for ever; what stat cannot see is named when it is read.
 */
static bool is_no_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static QnStatus list_class(QnFolderList *l, const char *folder, const char *class_name)
{
    DIR *dir = open_folder(folder);
    if (!dir)
        return system_fail(folder, "open");
    QnStatus st = QN_OK;
    for (;;) {
        const char *name = NULL;
        QN_TRY_DONE(next_name(dir, folder, &name));
        if (!name)
            break;
        if (!qn_image_is_named(name))
            continue;
        char *path = qn_arena_printf(l->arena, "%s/%s", folder, name);
        if (!path) {
            st = QN_ENOMEM;
            goto done;
        }
        if (is_no_file(path))
            continue;
        QN_TRY_DONE(add_file(l, path, class_name, NULL));
    }
done:
    closedir(dir);
    return st;
}

static QnStatus list_disk(QnFolderList *l, const char *root)
{
    DIR *dir = open_folder(root);
    if (!dir)
        return system_fail(root, "open");
    QnStatus st = QN_OK;
    for (;;) {
        const char *name = NULL;
        struct stat info;
        QN_TRY_DONE(next_name(dir, root, &name));
        if (!name)
            break;
        char *folder = qn_arena_printf(l->arena, "%s/%s", root, name);
        char *class_name = qn_arena_strdup(l->arena, name);
        if (!folder || !class_name) {
            st = QN_ENOMEM;
            goto done;
        }
        if (stat(folder, &info) || !S_ISDIR(info.st_mode))
            continue;
        QN_TRY_DONE(add_class(l, class_name));
        QN_TRY_DONE(list_class(l, folder, class_name));
    }
done:
    closedir(dir);
    return st;
}

static bool is_hidden(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (slash ? slash[1] : path[0]) == '.';
}

static QnStatus list_tar(QnFolderList *l, const char *path, const char *inside)
{
    QN_TRY(qn_tar_open(path, &l->tar));
    size_t n = inside ? strlen(inside) : 0;
    while (n && inside[n - 1] == '/')
        n--;
    for (int64_t i = 0; i < qn_tar_count(l->tar); i++) {
        const QnTarEntry *e = qn_tar_at(l->tar, i);
        const char *rest = e->name;
        if (n && (strncmp(rest, inside, n) || rest[n] != '/'))
            continue;
        rest += n ? n + 1 : 0;
        size_t class_n = strcspn(rest, "/");
        if (!rest[class_n] || !class_n || !qn_image_is_named(rest) || is_hidden(rest))
            continue;
        /* entries are sorted by name, so those of a class follow each other unless a longer name
         * with a character below '/' comes between: the list of classes is made unique later */
        const char *last = l->class_count ? l->classes[l->class_count - 1] : "";
        if (strncmp(last, rest, class_n) || last[class_n]) {
            char *name = qn_arena_printf(l->arena, "%.*s", (int)class_n, rest);
            if (!name)
                return QN_ENOMEM;
            QN_TRY(add_class(l, name));
            last = name;
        }
        QN_TRY(add_file(l, e->name, last, e));
    }
    return QN_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_files(const void *a, const void *b)
{
    const QnFolderFile *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Classes sorted and each once, or as the options order them. */
static QnStatus order_classes(QnFolderList *l, const QnFolderOptions *o)
{
    if (o->class_names) {
        l->class_count = 0;
        for (int64_t i = 0; i < o->class_count; i++) {
            const char *name = qn_arena_strdup(l->arena, o->class_names[i]);
            if (!name)
                return QN_ENOMEM;
            QN_TRY(add_class(l, name));
        }
        return QN_OK;
    }
    qsort(l->classes, (size_t)l->class_count, sizeof *l->classes, compare_texts);
    int64_t n = 0;
    for (int64_t i = 0; i < l->class_count; i++)
        if (!n || strcmp(l->classes[n - 1], l->classes[i]))
            l->classes[n++] = l->classes[i];
    l->class_count = n;
    return QN_OK;
}

static QnStatus label_files(QnFolderList *l, const QnFolderOptions *o)
{
    for (int64_t i = 0; i < l->count; i++) {
        QnFolderFile *f = &l->files[i];
        f->label = -1;
        if (i && !strcmp(f->class_name, f[-1].class_name))
            f->label = f[-1].label;
        for (int64_t c = 0; c < l->class_count && f->label < 0; c++)
            if (!strcmp(l->classes[c], f->class_name))
                f->label = c;
        if (f->label < 0)
            return qn_fail(QN_EARG,
                           "%s: class '%s' (of %s) is not among the %" PRId64
                           " given: train and test folders need the same classes",
                           o->path, f->class_name, f->path, l->class_count);
    }
    qsort(l->files, (size_t)l->count, sizeof *l->files, compare_files);
    return QN_OK;
}

QnStatus qn_folder_list_read(const QnFolderOptions *o, QnArena *arena, QnFolderList *out)
{
    *out = (QnFolderList){ .arena = arena };
    struct stat info;
    if (qn_fault_hit())
        return qn_fail(QN_EIO, "%s: cannot look at it", o->path);
    if (stat(o->path, &info))
        return system_fail(o->path, "open");
    const char *inside = o->inside && o->inside[0] ? o->inside : NULL;
    if (S_ISDIR(info.st_mode)) {
        const char *root = inside ? qn_arena_printf(arena, "%s/%s", o->path, inside) : o->path;
        if (!root)
            return QN_ENOMEM;
        QN_TRY(list_disk(out, root));
    } else {
        QN_TRY(list_tar(out, o->path, inside));
    }
    if (!out->count)
        return qn_fail(QN_ENOTFOUND,
                       "%s: no class folder with .jpg or .png images%s%s: expected CLASS/photo.jpg",
                       o->path, inside ? " in " : "", inside ? inside : "");
    QN_TRY(order_classes(out, o));
    return label_files(out, o);
}

void qn_folder_list_fini(QnFolderList *list)
{
    qn_tar_free(list->tar);
    qn_free(list->files);
    qn_free(list->classes);
    *list = (QnFolderList){ 0 };
}
