#include "api/plugin.h"

#include "ops/ops.h"
#include "quern/quern.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef QN_LIBDIR
#define QN_LIBDIR "lib"
#endif

static const QnPluginHost host = { .bytes = sizeof host,
                                   .dialect = qn_text_dialect,
#define QN_X(name) .name = name,
                                   QN_PLUGIN_CALLS(QN_X)
#undef QN_X
};

static const QnPluginSize sizes[] = {
#define QN_X(name) { #name, sizeof(name) },
    QN_PLUGIN_STRUCTS(QN_X)
#undef QN_X
};

/* ---- does it speak our language ---- */

static QnStatus check(const QnPlugin *p, const char *path)
{
    if (p->abi != QN_PLUGIN_ABI)
        return qn_fail(QN_EUNSUPPORTED,
                       "%s speaks plugin interface %u, this program %d: install the plugin that "
                       "belongs to Quern " QN_VERSION,
                       path, p->abi, QN_PLUGIN_ABI);
    if (p->bytes != sizeof *p || p->n_sizes != QN_COUNT(sizes))
        return qn_fail(QN_EUNSUPPORTED,
                       "%s is of another build of plugin interface %d: install the plugin that "
                       "belongs to Quern " QN_VERSION,
                       path, QN_PLUGIN_ABI);
    for (int i = 0; i < QN_COUNT(sizes); i++) {
        if (strcmp(p->sizes[i].name, sizes[i].name) || p->sizes[i].bytes != sizes[i].bytes)
            return qn_fail(QN_EUNSUPPORTED,
                           "%s was compiled with Quern %s, where %s has %llu bytes; here %s has "
                           "%llu: install the plugin that belongs to Quern " QN_VERSION,
                           path, p->version, p->sizes[i].name,
                           (unsigned long long)p->sizes[i].bytes, sizes[i].name,
                           (unsigned long long)sizes[i].bytes);
    }
    return QN_OK;
}

/* QN_ENOTFOUND: the file is not there. */
static QnStatus load(const char *name, const char *path, const QnPlugin **plugin,
                     const QnBackend **backend)
{
    if (access(path, F_OK))
        return QN_ENOTFOUND;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return qn_fail(QN_EDEVICE, "the plugin %s cannot be loaded: %s", path, dlerror());
    const QnPlugin *p = dlsym(lib, "qn_plugin");
    if (!p)
        return qn_fail(QN_EUNSUPPORTED, "%s is no plugin of Quern: it has no qn_plugin", path);
    QN_TRY(check(p, path));
    if (strcmp(p->name, name))
        return qn_fail(QN_EUNSUPPORTED, "%s is the plugin '%s', not '%s'", path, p->name, name);
    *plugin = p;
    *backend = p->start(&host);
    return *backend ? QN_OK : qn_fail_prefix("%s", path);
}

/* ---- where it may be ---- */

typedef struct Places {
    char *dir[32];
    int n;
    QnStatus st;
} Places;

static void add_place(Places *p, const char *dir, size_t n, const char *below)
{
    char path[PATH_MAX];
    if (p->st != QN_OK || p->n == QN_COUNT(p->dir) || n == 0)
        return;
    int w = snprintf(path, sizeof path, "%.*s%s", (int)n, dir, below);
    if (w < 0 || (size_t)w >= sizeof path)
        return;
    for (int i = 0; i < p->n; i++) {
        if (!strcmp(p->dir[i], path))
            return;
    }
    p->dir[p->n] = qn_strdup(path);
    p->st = p->dir[p->n] ? QN_OK : QN_ENOMEM;
    p->n += p->st == QN_OK;
}

static void list_places(Places *p)
{
    const char *list = getenv("QUERN_PLUGINS");
    Dl_info here;
    char real[PATH_MAX];
    while (list) {
        size_t n = strcspn(list, ":");
        add_place(p, list, n, "");
        list = list[n] ? list + n + 1 : NULL;
    }
    if (!dladdr((const void *)&host, &here) || !here.dli_fname || !realpath(here.dli_fname, real))
        return;
    size_t n = (size_t)(strrchr(real, '/') - real);
    add_place(p, real, n, "");
    add_place(p, real, n, "/quern");
    add_place(p, real, n, "/../" QN_LIBDIR "/quern");
    add_place(p, real, n, "/../lib/quern");
}

static QnStatus fail_missing(const char *name, const Places *p)
{
    QnStr text = { 0 };
    for (int i = 0; i < p->n; i++)
        qn_str_printf(&text, "%s%s", i ? ", " : "", p->dir[i]);
    QnStatus st = qn_fail(QN_ENOTFOUND,
                          "no %s: libquern_%s.so is not in %s (QUERN_PLUGINS names more folders; "
                          "a build without CUDA's headers makes none)",
                          name, name, qn_str_text(&text));
    qn_str_fini(&text);
    return st;
}

QnStatus qn_plugin_find(const char *name, const QnPlugin **plugin, const QnBackend **backend,
                        QnStr *path)
{
    Places p = { 0 };
    QnStatus st = QN_ENOTFOUND;
    char file[PATH_MAX];
    list_places(&p);
    for (int i = 0; p.st == QN_OK && st == QN_ENOTFOUND && i < p.n; i++) {
        int w = snprintf(file, sizeof file, "%s/libquern_%s.so", p.dir[i], name);
        if (w < 0 || (size_t)w >= sizeof file)
            continue;
        st = load(name, file, plugin, backend);
        if (st == QN_OK && path)
            qn_str_add(path, file);
    }
    if (p.st != QN_OK)
        st = p.st;
    else if (st == QN_ENOTFOUND)
        st = fail_missing(name, &p);
    for (int i = 0; i < p.n; i++)
        qn_free(p.dir[i]);
    return st;
}
