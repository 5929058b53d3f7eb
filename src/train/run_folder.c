#include "train/run_folder.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

QnStatus qn_run_folder_join(char out[QN_RUN_PATH_BYTES], const char *a, const char *b)
{
    int n = snprintf(out, QN_RUN_PATH_BYTES, "%s/%s", a, b);
    return n < QN_RUN_PATH_BYTES ? QN_OK : qn_fail(QN_EARG, "path too long: %s/%s", a, b);
}

static bool starts_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

void qn_run_folder_remove(const char *folder)
{
    char path[QN_RUN_PATH_BYTES];
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        bool ours =
            starts_with(e->d_name, "model.safetensors") || starts_with(e->d_name, "index.json");
        if (ours && qn_run_folder_join(path, folder, e->d_name) == QN_OK)
            unlink(path);
    }
    closedir(d);
    rmdir(folder);
}

static void tidy(const char *parent)
{
    char path[QN_RUN_PATH_BYTES], final[QN_RUN_PATH_BYTES];
    DIR *d = opendir(parent);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char *dot = strrchr(e->d_name, '.');
        size_t n = dot ? (size_t)(dot - e->d_name) : 0;
        bool ours = n > 0 && (strspn(e->d_name, "0123456789") == n ||
                              (n == strlen("best") && starts_with(e->d_name, "best")));
        if (!ours || qn_run_folder_join(path, parent, e->d_name) != QN_OK)
            continue;
        snprintf(final, sizeof final, "%.*s", (int)(strlen(path) - strlen(dot)), path);
        if (!strcmp(dot, ".old") && !qn_file_exists(final))
            rename(path, final);
        else if (!strcmp(dot, ".old") || !strcmp(dot, ".part"))
            qn_run_folder_remove(path);
    }
    closedir(d);
}

void qn_run_folder_tidy(const char *run)
{
    char parent[QN_RUN_PATH_BYTES];
    tidy(run);
    if (qn_run_folder_join(parent, run, "checkpoints") == QN_OK)
        tidy(parent);
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

QnStatus qn_run_folder_list(const char *run, int64_t **list, int64_t *n)
{
    char folder[QN_RUN_PATH_BYTES];
    int64_t cap = 0;
    *list = NULL;
    *n = 0;
    QN_TRY(qn_run_folder_join(folder, run, "checkpoints"));
    DIR *d = opendir(folder);
    if (!d)
        return errno == ENOENT ? QN_OK
                               : qn_fail(QN_EIO, "cannot list %s: %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        int64_t update = strtoll(e->d_name, &end, 10);
        if (end == e->d_name || *end)
            continue;
        if (QN_GROW(*list, cap, *n) != QN_OK) {
            closedir(d);
            qn_free(*list);
            *list = NULL;
            return QN_ENOMEM;
        }
        (*list)[(*n)++] = update;
    }
    closedir(d);
    if (*n)
        qsort(*list, (size_t)*n, sizeof **list, newest_first);
    return QN_OK;
}

void qn_run_folder_at(char out[QN_RUN_PATH_BYTES], const char *run, int64_t update)
{
    snprintf(out, QN_RUN_PATH_BYTES, "%.4000s/checkpoints/%08" PRId64, run, update);
}

QnStatus qn_run_folder_prune(const char *run, int64_t update, int64_t keep)
{
    char folder[QN_RUN_PATH_BYTES];
    int64_t *list, n, kept = 0;
    if (keep == 0)
        return QN_OK;
    QN_TRY(qn_run_folder_list(run, &list, &n));
    for (int64_t i = 0; i < n; i++) {
        if (list[i] <= update && kept++ < keep)
            continue;
        qn_run_folder_at(folder, run, list[i]);
        qn_run_folder_remove(folder);
    }
    qn_free(list);
    return QN_OK;
}

QnStatus qn_run_folder_best(const char *run, char folder[QN_RUN_PATH_BYTES], bool *found)
{
    static const char *const names[] = { "best", "best.old" };
    char index[QN_RUN_PATH_BYTES];
    *found = false;
    for (int i = 0; i < QN_COUNT(names) && !*found; i++) {
        QN_TRY(qn_run_folder_join(folder, run, names[i]));
        QN_TRY(qn_run_folder_join(index, folder, "index.json"));
        *found = qn_file_exists(index);
    }
    return QN_OK;
}

uint64_t qn_run_folder_stamp(const char *run)
{
    char folder[QN_RUN_PATH_BYTES];
    int64_t *list = NULL, n = 0;
    bool found = false;
    struct stat info;
    uint64_t h = 0;
    if (qn_run_folder_list(run, &list, &n) == QN_OK)
        h = qn_hash_bytes(list, (size_t)n * sizeof *list, h);
    qn_free(list);
    if (qn_run_folder_best(run, folder, &found) == QN_OK && found && stat(folder, &info) == 0)
        h = qn_hash_mix(h, (uint64_t)info.st_ino);
    return h;
}

QnStatus qn_run_folder_weights(const char *path, char out[QN_RUN_PATH_BYTES])
{
    char recipe[QN_RUN_PATH_BYTES];
    int64_t *list = NULL, n = 0;
    bool found = false;
    if (strlen(path) >= QN_RUN_PATH_BYTES - 16)
        return qn_fail(QN_EARG, "path too long: %.100s", path);
    snprintf(recipe, sizeof recipe, "%s/recipe.yaml", path);
    if (!qn_file_exists(recipe)) {
        snprintf(out, QN_RUN_PATH_BYTES, "%s", path);
        return QN_OK;
    }
    QN_TRY(qn_run_folder_best(path, out, &found));
    if (found)
        return QN_OK;
    QN_TRY(qn_run_folder_list(path, &list, &n));
    if (n)
        qn_run_folder_at(out, path, list[0]);
    qn_free(list);
    return n ? QN_OK : qn_fail(QN_ENOTFOUND, "%s holds no checkpoint yet", path);
}
