/* Without libyaml, recipes are JSON of the same structure. */
#include "io/yaml_node.h"

#ifndef QN_HAVE_YAML

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Reader {
    QnYamlDoc *doc;
    const char *file, *text;
    size_t at; /* how far lines are counted */
    int line;
    size_t line_start;
} Reader;

/* Line and column of an offset; offsets come in rising order, so each byte is looked at once. */
static void locate(Reader *r, size_t offset, int *line, int *column)
{
    for (; r->at < offset; r->at++)
        if (r->text[r->at] == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        }
    *line = r->line;
    *column = (int)QN_MIN(offset - r->line_start, (size_t)INT32_MAX - 1) + 1;
}

static QnStatus convert(Reader *r, const QnJson *j, QnYaml **out);

static QnStatus convert_children(Reader *r, const QnJson *j, QnYaml *node)
{
    for (int64_t i = 0; i < j->n; i++) {
        QnYaml *child;
        const char *key = node->kind == QN_YAML_MAP ? j->items[i].key : NULL;
        QN_TRY(convert(r, &j->items[i], &child));
        QN_TRY(qn_yaml_node_append(r->doc, node, key, child));
    }
    return QN_OK;
}

static QnStatus convert(Reader *r, const QnJson *j, QnYaml **out)
{
    int line, column;
    char number[40];
    const char *text = number;
    size_t n = 0;
    locate(r, j->offset, &line, &column);
    if (j->type == QN_JSON_ARRAY || j->type == QN_JSON_OBJECT) {
        QnYamlKind kind = j->type == QN_JSON_ARRAY ? QN_YAML_LIST : QN_YAML_MAP;
        QN_TRY(qn_yaml_node_new(r->doc, kind, r->file, line, column, NULL, 0, out));
        return convert_children(r, j, *out);
    }
    switch (j->type) {
    case QN_JSON_NULL: text = "null"; break;
    case QN_JSON_BOOL: text = j->boolean ? "true" : "false"; break;
    case QN_JSON_INT: snprintf(number, sizeof number, "%" PRId64, j->integer); break;
    case QN_JSON_DOUBLE: snprintf(number, sizeof number, "%.17g", j->number); break;
    default:
        text = j->string;
        n = (size_t)j->n;
        break;
    }
    n = j->type == QN_JSON_STRING ? n : strlen(text);
    QN_TRY(qn_yaml_node_new(r->doc, QN_YAML_SCALAR, r->file, line, column, text, n, out));
    (*out)->quoted = j->type == QN_JSON_STRING;
    return QN_OK;
}

/* The value of --set may be a bare word. */
static bool is_bare_word(const char *name, const char *text, size_t size)
{
    if (strncmp(name, "--set ", 6) || !size || memchr(text, '\0', size))
        return false;
    return !strchr("{[\"", text[0]);
}

QnStatus qn_yaml_node_read(QnYamlDoc *doc, const char *name, const void *text, size_t size,
                           QnYaml **root)
{
    Reader r = { .doc = doc, .file = name, .text = text, .line = 1 };
    const QnJson *j;
    if (is_bare_word(name, text, size))
        return qn_yaml_node_new(doc, QN_YAML_SCALAR, name, 1, 1, text, size, root);
    if (qn_json_parse(doc->arena, text, size, &j) != QN_OK)
        return qn_fail_prefix("%s (this build has no libyaml, so recipes must be JSON)", name);
    return convert(&r, j, root);
}

#endif
