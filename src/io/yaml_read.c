/* libyaml's events to the tree. */
#include "io/yaml_node.h"

#ifdef QN_HAVE_YAML

#include <string.h>
#include <yaml.h>

typedef struct Anchor {
    char *name;
    const QnYaml *node;
} Anchor;

typedef struct Reader {
    QnYamlDoc *doc;
    const char *file;
    QnYaml *root, *open; /* open: the innermost list or map */
    const char *key;     /* waiting for its value, or NULL */
    int key_line, key_column;
    Anchor *anchors;
    int64_t anchor_count, anchor_cap, budget;
    int documents;
    bool ended;
} Reader;

static int line_of(const yaml_event_t *e)
{
    return (int)QN_MIN(e->start_mark.line, (size_t)INT32_MAX - 1) + 1;
}

static int column_of(const yaml_event_t *e)
{
    return (int)QN_MIN(e->start_mark.column, (size_t)INT32_MAX - 1) + 1;
}

static QnStatus read_fail(const Reader *r, const yaml_event_t *e, const char *why)
{
    return qn_fail(QN_EFORMAT, QN_YAML_AT ": %s", r->file, line_of(e), column_of(e), why);
}

static QnStatus parser_fail(const Reader *r, const yaml_parser_t *p)
{
    if (p->error == YAML_MEMORY_ERROR)
        return qn_fail(QN_ENOMEM, "%s: not enough memory to read it", r->file);
    const char *why = p->problem ? p->problem : "not YAML";
    if (p->error == YAML_READER_ERROR)
        return qn_fail(QN_EFORMAT, "%s: byte %zu: %s: not UTF-8 text", r->file, p->problem_offset,
                       why);
    return qn_fail(QN_EFORMAT, QN_YAML_AT ": %s%s%s", r->file, (int)p->problem_mark.line + 1,
                   (int)p->problem_mark.column + 1, why, p->context ? " " : "",
                   p->context ? p->context : "");
}

/* Puts a finished or just opened node where it belongs. */
static QnStatus place_node(Reader *r, const yaml_event_t *e, QnYaml *node)
{
    if (!r->open) {
        if (r->root)
            return read_fail(r, e, "a second document: a recipe is one");
        r->root = node;
        return QN_OK;
    }
    bool in_map = r->open->kind == QN_YAML_MAP;
    if (in_map && !r->key)
        return read_fail(r, e, "a key must be a plain word, not a list, a map or an alias");
    if (in_map && node->kind != QN_YAML_SCALAR) {
        node->line = r->key_line; /* a list or map is where its key stands */
        node->column = r->key_column;
    }
    QN_TRY(qn_yaml_node_append(r->doc, r->open, r->key, node));
    r->key = NULL;
    return QN_OK;
}

static QnStatus add_anchor(Reader *r, const yaml_char_t *name, const QnYaml *node)
{
    if (!name)
        return QN_OK;
    QN_TRY(QN_GROW(r->anchors, r->anchor_cap, r->anchor_count));
    char *copy = qn_arena_strdup(r->doc->arena, (const char *)name);
    if (!copy)
        return QN_ENOMEM;
    r->anchors[r->anchor_count++] = (Anchor){ .name = copy, .node = node };
    return QN_OK;
}

/* Only what JSON knows too. */
static QnStatus check_tag(const Reader *r, const yaml_event_t *e, const yaml_char_t *tag)
{
    static const char *const plain[] = { "str", "int", "float", "bool", "null", "seq", "map" };
    static const char prefix[] = "tag:yaml.org,2002:";
    if (!tag || !strcmp((const char *)tag, "!"))
        return QN_OK;
    if (!strncmp((const char *)tag, prefix, sizeof prefix - 1))
        for (int i = 0; i < QN_COUNT(plain); i++)
            if (!strcmp((const char *)tag + sizeof prefix - 1, plain[i]))
                return QN_OK;
    return qn_fail(QN_EFORMAT, QN_YAML_AT ": tag '%.100s' is not allowed in a recipe", r->file,
                   line_of(e), column_of(e), (const char *)tag);
}

static QnStatus take_key(Reader *r, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t size = e->data.scalar.length;
    if (memchr(text, '\0', size))
        return read_fail(r, e, "a zero byte inside a key");
    if (!size)
        return read_fail(r, e, "an empty key");
    if (!strcmp(text, "<<"))
        return read_fail(r, e, "merge keys ('<<') are not supported: write the keys out");
    QN_TRY(add_anchor(r, e->data.scalar.anchor, NULL));
    r->key = qn_arena_copy(r->doc->arena, text, size + 1);
    r->key_line = line_of(e);
    r->key_column = column_of(e);
    return r->key ? QN_OK : QN_ENOMEM;
}

static QnStatus take_scalar(Reader *r, const yaml_event_t *e)
{
    QN_TRY(check_tag(r, e, e->data.scalar.tag));
    if (r->open && r->open->kind == QN_YAML_MAP && !r->key)
        return take_key(r, e);
    QnYaml *node;
    QN_TRY(qn_yaml_node_new(r->doc, QN_YAML_SCALAR, r->file, line_of(e), column_of(e),
                            (const char *)e->data.scalar.value, e->data.scalar.length, &node));
    const char *tag = (const char *)e->data.scalar.tag;
    node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
                   (tag && (!strcmp(tag, YAML_STR_TAG) || !strcmp(tag, "!")));
    QN_TRY(add_anchor(r, e->data.scalar.anchor, node));
    return place_node(r, e, node);
}

static QnStatus open_node(Reader *r, const yaml_event_t *e, QnYamlKind kind,
                          const yaml_char_t *anchor, const yaml_char_t *tag)
{
    QnYaml *node;
    QN_TRY(check_tag(r, e, tag));
    QN_TRY(qn_yaml_node_new(r->doc, kind, r->file, line_of(e), column_of(e), NULL, 0, &node));
    QN_TRY(add_anchor(r, anchor, node));
    QN_TRY(place_node(r, e, node));
    r->open = node;
    return QN_OK;
}

static QnStatus close_node(Reader *r)
{
    QnYaml *node = r->open;
    r->open = node->parent;
    return node->kind == QN_YAML_MAP ? qn_yaml_node_check_duplicates(node) : QN_OK;
}

static QnStatus take_alias(Reader *r, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.alias.anchor;
    int64_t i = r->anchor_count;
    while (i > 0 && strcmp(r->anchors[i - 1].name, name))
        i--;
    if (!i)
        return qn_fail(QN_EFORMAT, QN_YAML_AT ": alias '*%.100s' has no anchor before it", r->file,
                       line_of(e), column_of(e), name);
    const QnYaml *target = r->anchors[i - 1].node;
    if (!target)
        return read_fail(r, e, "an alias to a key is not supported");
    for (const QnYaml *p = r->open; p; p = p->parent)
        if (p == target)
            return read_fail(r, e, "this alias contains itself");
    QnYaml *copy;
    QN_TRY(qn_yaml_node_copy(r->doc, target, &r->budget, &copy));
    return place_node(r, e, copy);
}

static QnStatus take_event(Reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return r->documents++ ? read_fail(r, e, "a second document: a recipe is one") : QN_OK;
    case YAML_SCALAR_EVENT: return take_scalar(r, e);
    case YAML_ALIAS_EVENT: return take_alias(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(r, e, QN_YAML_LIST, e->data.sequence_start.anchor,
                         e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return open_node(r, e, QN_YAML_MAP, e->data.mapping_start.anchor,
                         e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return close_node(r);
    case YAML_STREAM_END_EVENT: r->ended = true; return QN_OK;
    default: return QN_OK;
    }
}

QnStatus qn_yaml_node_read(QnYamlDoc *doc, const char *name, const void *text, size_t size,
                           QnYaml **root)
{
    Reader r = { .doc = doc, .file = name, .budget = QN_YAML_ALIASED_MAX };
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return qn_fail(QN_ENOMEM, "%s: not enough memory to read it", name);
    size_t mark = size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0; /* byte order mark */
    yaml_parser_set_input_string(&parser, (const unsigned char *)text + mark, size - mark);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    QnStatus st = QN_OK;
    while (st == QN_OK && !r.ended) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            st = parser_fail(&r, &parser);
            break;
        }
        st = take_event(&r, &event);
        yaml_event_delete(&event);
    }
    if (st == QN_OK && !r.root)
        st = qn_fail(QN_EFORMAT, "%s: the file is empty", name);
    yaml_parser_delete(&parser);
    qn_free(r.anchors);
    if (st == QN_OK)
        *root = r.root;
    return st;
}

#endif
