/* Building the tree under yaml.h; shared by its readers. */
#ifndef QN_IO_YAML_NODE_H
#define QN_IO_YAML_NODE_H

#include "base/mem.h"
#include "io/yaml.h"

struct QnYamlDoc {
    QnArena *arena;
    QnYaml *root;
    int64_t node_count;
};

QnYamlDoc *qn_yaml_node_doc(void);
/* A node that belongs nowhere yet; text is copied (NULL for lists and maps). */
QnStatus qn_yaml_node_new(QnYamlDoc *doc, QnYamlKind kind, const char *file, int line, int column,
                          const char *text, size_t size, QnYaml **out);
/* Appends; `key` (copied) for maps, else NULL. Depth is checked, duplicates are not. */
QnStatus qn_yaml_node_append(QnYamlDoc *doc, QnYaml *parent, const char *key, QnYaml *node);
/* A deep copy that belongs nowhere yet. *budget counts down the nodes copied. */
QnStatus qn_yaml_node_copy(QnYamlDoc *doc, const QnYaml *node, int64_t *budget, QnYaml **out);
/* After the last key of a map was appended. */
QnStatus qn_yaml_node_check_duplicates(const QnYaml *map);
int qn_yaml_node_depth(const QnYaml *node); /* levels of it and below it, at least 1 */
#define QN_YAML_AT "%s:%d:%d"               /* file, line, column */
/* Reads a document into `doc` with file `name`: yaml_read.c or, without libyaml, yaml_json.c. */
QnStatus qn_yaml_node_read(QnYamlDoc *doc, const char *name, const void *text, size_t size,
                           QnYaml **root);
bool qn_yaml_node_is_null(const QnYaml *node);

#endif
