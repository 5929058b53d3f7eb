#include "io/yaml.h"
#include "io/gz.h"
#include "io/yaml_node.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define YAML_LIMIT_BYTES ((size_t)16 << 20)

QnYamlDoc *qn_yaml_node_doc(void)
{
    QnYamlDoc *doc = qn_alloc(sizeof *doc);
    if (!doc)
        return NULL;
    doc->arena = qn_arena_new();
    if (doc->arena)
        return doc;
    qn_free(doc);
    return NULL;
}

void qn_yaml_free(QnYamlDoc *doc)
{
    if (!doc)
        return;
    qn_arena_free(doc->arena);
    qn_free(doc);
}

QnYaml *qn_yaml_root(QnYamlDoc *doc)
{
    return doc->root;
}

QnStatus qn_yaml_node_new(QnYamlDoc *doc, QnYamlKind kind, const char *file, int line, int column,
                          const char *text, size_t size, QnYaml **out)
{
    if (++doc->node_count > QN_YAML_NODES_MAX)
        return qn_fail(QN_EFORMAT, QN_YAML_AT ": more than %d values: too much for a recipe", file,
                       line, column, QN_YAML_NODES_MAX);
    if (text && memchr(text, '\0', size))
        return qn_fail(QN_EFORMAT, QN_YAML_AT ": a zero byte inside a value", file, line, column);
    QnYaml *n = qn_arena_alloc(doc->arena, sizeof *n);
    if (!n)
        return QN_ENOMEM;
    *n = (QnYaml){ .kind = kind, .file = file, .line = line, .column = column };
    if (kind == QN_YAML_SCALAR) {
        char *copy = qn_arena_alloc(doc->arena, size + 1);
        if (!copy)
            return QN_ENOMEM;
        if (size)
            memcpy(copy, text, size);
        n->text = copy;
    }
    *out = n;
    return QN_OK;
}

int qn_yaml_node_depth(const QnYaml *node)
{
    int deepest = 0;
    for (const QnYaml *c = node->first; c; c = c->next) {
        int d = qn_yaml_node_depth(c);
        deepest = QN_MAX(deepest, d);
    }
    return deepest + 1;
}

QnStatus qn_yaml_node_append(QnYamlDoc *doc, QnYaml *parent, const char *key, QnYaml *node)
{
    int depth = qn_yaml_node_depth(node);
    for (const QnYaml *p = parent; p; p = p->parent)
        depth++;
    if (depth > QN_YAML_DEPTH_MAX)
        return qn_fail(QN_EFORMAT, QN_YAML_AT ": nested deeper than %d levels", node->file,
                       node->line, node->column, QN_YAML_DEPTH_MAX);
    if (key) {
        node->key = qn_arena_strdup(doc->arena, key);
        if (!node->key)
            return QN_ENOMEM;
    }
    node->parent = parent;
    node->index = parent->count++;
    node->next = NULL;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    return QN_OK;
}

QnStatus qn_yaml_node_copy(QnYamlDoc *doc, const QnYaml *node, int64_t *budget, QnYaml **out)
{
    if (--*budget < 0)
        return qn_fail(QN_EFORMAT, QN_YAML_AT ": aliases unfold to more than %d values", node->file,
                       node->line, node->column, QN_YAML_ALIASED_MAX);
    QnYaml *n;
    QN_TRY(qn_yaml_node_new(doc, node->kind, node->file, node->line, node->column, node->text,
                            node->text ? strlen(node->text) : 0, &n));
    n->quoted = node->quoted;
    for (const QnYaml *c = node->first; c; c = c->next) {
        QnYaml *child;
        QN_TRY(qn_yaml_node_copy(doc, c, budget, &child));
        QN_TRY(qn_yaml_node_append(doc, n, c->key, child));
    }
    *out = n;
    return QN_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const QnYaml *x = *(const QnYaml *const *)a, *y = *(const QnYaml *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

QnStatus qn_yaml_node_check_duplicates(const QnYaml *map)
{
    if (map->count < 2)
        return QN_OK;
    const QnYaml **sorted = qn_alloc_array((size_t)map->count, sizeof *sorted);
    if (!sorted)
        return QN_ENOMEM;
    int64_t n = 0;
    for (const QnYaml *c = map->first; c; c = c->next)
        sorted[n++] = c;
    qsort(sorted, (size_t)n, sizeof *sorted, compare_keys);
    QnStatus st = QN_OK;
    for (int64_t i = 1; i < n && st == QN_OK; i++)
        if (!strcmp(sorted[i - 1]->key, sorted[i]->key))
            st = qn_fail(QN_EFORMAT,
                         "%s:%d: key '%s' was already given in line %d: keep one of the two",
                         sorted[i]->file, sorted[i]->line, sorted[i]->key, sorted[i - 1]->line);
    qn_free(sorted);
    return st;
}

QnStatus qn_yaml_parse(const char *name, const void *text, size_t size, QnYamlDoc **out)
{
    if (size > YAML_LIMIT_BYTES)
        return qn_fail(QN_EFORMAT, "%s: %zu bytes are too many for a recipe (limit %zu)", name,
                       size, YAML_LIMIT_BYTES);
    QnYamlDoc *doc = qn_yaml_node_doc();
    if (!doc)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    const char *kept = qn_arena_strdup(doc->arena, name);
    if (!kept) {
        st = QN_ENOMEM;
        goto done;
    }
    QN_TRY_DONE(qn_yaml_node_read(doc, kept, text, size, &doc->root));
    *out = doc;
    doc = NULL;
done:
    qn_yaml_free(doc);
    return st;
}

QnStatus qn_yaml_open(const char *path, QnYamlDoc **out)
{
    uint8_t *text;
    size_t size;
    QN_TRY(qn_gz_read(path, YAML_LIMIT_BYTES, &text, &size));
    QnStatus st = qn_yaml_parse(path, text, size, out);
    qn_free(text);
    return st;
}
