/* --set a.b.c=value: changes of the tree from the command line. */
#include "io/yaml_node.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static QnYaml *find_child(QnYaml *parent, const char *name)
{
    char *end;
    int64_t index = parent->kind == QN_YAML_LIST ? strtoll(name, &end, 10) : -1;
    if (parent->kind == QN_YAML_LIST && (*end || !isdigit((unsigned char)*name)))
        return NULL;
    for (QnYaml *c = parent->first; c; c = c->next)
        if (parent->kind == QN_YAML_LIST ? c->index == index : !strcmp(c->key, name))
            return c;
    return NULL;
}

/* Puts `value` where `old` stands among its siblings. */
static void replace_child(QnYaml *old, QnYaml *value)
{
    QnYaml *parent = old->parent;
    value->parent = parent;
    value->key = old->key;
    value->index = old->index;
    value->next = old->next;
    QnYaml **link = &parent->first;
    while (*link != old)
        link = &(*link)->next;
    *link = value;
    if (parent->last == old)
        parent->last = value;
}

/* Every node of the value is placed at the option, not at a line of it. */
static void mark_as_set(QnYaml *node, const char *file)
{
    node->file = file;
    node->line = node->column = 0;
    for (QnYaml *c = node->first; c; c = c->next)
        mark_as_set(c, file);
}

/* The value under the rest of the path, as nested maps: "c.d" of a.b.c.d with a.b at hand. */
static QnStatus wrap_value(QnYamlDoc *doc, const char *file, char **names, int n, QnYaml **value)
{
    for (int i = n - 1; i >= 0; i--) {
        QnYaml *map;
        QN_TRY(qn_yaml_node_new(doc, QN_YAML_MAP, file, 0, 0, NULL, 0, &map));
        QN_TRY(qn_yaml_node_append(doc, map, names[i], *value));
        *value = map;
    }
    return QN_OK;
}

static QnStatus put_value(QnYamlDoc *doc, const char *file, char **names, int n, QnYaml *value)
{
    QnYaml *at = doc->root;
    for (int i = 0; i < n; i++) {
        QnYaml *next = at->kind == QN_YAML_SCALAR ? NULL : find_child(at, names[i]);
        bool last = i == n - 1;
        if (next && (last || next->kind == QN_YAML_SCALAR)) {
            if (!last && !qn_yaml_node_is_null(next))
                return qn_fail(QN_EUSAGE, "%s: %s is a value in line %d, not a map", file, names[i],
                               next->line);
            QN_TRY(wrap_value(doc, file, names + i + 1, n - i - 1, &value));
            replace_child(next, value);
            return QN_OK;
        }
        if (!next && at->kind == QN_YAML_LIST)
            return qn_fail(QN_EUSAGE,
                           "%s: '%s' is not one of the %" PRId64
                           " items, which are numbered from 0",
                           file, names[i], at->count);
        if (!next) {
            QN_TRY(wrap_value(doc, file, names + i + 1, n - i - 1, &value));
            return qn_yaml_node_append(doc, at, names[i], value);
        }
        at = next;
    }
    return QN_OK;
}

QnStatus qn_yaml_set(QnYamlDoc *doc, const char *assignment)
{
    char *names[QN_YAML_DEPTH_MAX];
    int n = 0;
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return qn_fail(QN_EUSAGE, "--set %s: expected KEY=VALUE, e.g. train.epochs=5", assignment);
    if (!doc->root || doc->root->kind != QN_YAML_MAP)
        return qn_fail(QN_EUSAGE,
                       "%s: expected a map with the keys of a recipe, for %s to be set in",
                       doc->root ? doc->root->file : "the recipe", assignment);
    char *path =
        qn_arena_printf(doc->arena, "%.*s", (int)QN_MIN(equals - assignment, 4096), assignment);
    const char *file = path ? qn_arena_printf(doc->arena, "--set %s", path) : NULL;
    if (!file)
        return QN_ENOMEM;
    for (char *p = path; p;) {
        char *dot = strchr(p, '.');
        if (dot)
            *dot = '\0';
        if (!*p || n == QN_YAML_DEPTH_MAX)
            return qn_fail(QN_EUSAGE, "%s: %s", file, *p ? "too many levels" : "an empty key");
        names[n++] = p;
        p = dot ? dot + 1 : NULL;
    }
    QnYaml *value;
    const char *text = equals + 1;
    if (*text)
        QN_TRY(qn_yaml_node_read(doc, file, text, strlen(text), &value));
    else
        QN_TRY(qn_yaml_node_new(doc, QN_YAML_SCALAR, file, 0, 0, "", 0, &value));
    mark_as_set(value, file);
    if (n + qn_yaml_node_depth(value) > QN_YAML_DEPTH_MAX)
        return qn_fail(QN_EUSAGE, "%s: nested deeper than %d levels", file, QN_YAML_DEPTH_MAX);
    return put_value(doc, file, names, n, value);
}
