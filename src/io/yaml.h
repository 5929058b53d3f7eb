/* Recipes: a YAML document as a small tree whose nodes know where they were written, so that every
 * complaint names file, line and key. Without libyaml the same tree is read from JSON. */
#ifndef QN_IO_YAML_H
#define QN_IO_YAML_H

#include "base/status.h"

typedef enum QnYamlKind { QN_YAML_SCALAR, QN_YAML_LIST, QN_YAML_MAP } QnYamlKind;

/* A node; read only for everyone but yaml*.c. Lives as long as its document. */
typedef struct QnYaml {
    QnYamlKind kind;
    bool quoted;      /* a scalar that is a string whatever it looks like */
    int line, column; /* from 1; 0: set by --set */
    const char *file; /* "recipe.yaml" or "--set a.b=c" */
    const char *key;  /* its key in the parent map, or NULL */
    const char *text; /* of a scalar, else NULL; never holds zero bytes */
    int64_t index;    /* place among its siblings, from 0 */
    int64_t count;    /* children */
    struct QnYaml *parent, *first, *last, *next;
} QnYaml;

typedef struct QnYamlDoc QnYamlDoc;

enum { QN_YAML_DEPTH_MAX = 64, QN_YAML_NODES_MAX = 100000, QN_YAML_ALIASED_MAX = 10000 };

/* Refused with their line: duplicate keys, nesting deeper than QN_YAML_DEPTH_MAX, aliases that
 * unfold to more than QN_YAML_ALIASED_MAX nodes or to themselves, keys that are no scalars, merge
 * keys, tags other than the plain ones, a second document. `name` is for messages. */
QnStatus qn_yaml_parse(const char *name, const void *text, size_t size, QnYamlDoc **out);
QnStatus qn_yaml_open(const char *path, QnYamlDoc **out);
void qn_yaml_free(QnYamlDoc *doc); /* NULL is fine */
QnYaml *qn_yaml_root(QnYamlDoc *doc);

/* Applies one "a.b.c=value" (value: YAML, so numbers, words, [lists] and {maps}); missing maps on
 * the way are made, a number selects from a list. On failure the tree is unchanged. */
QnStatus qn_yaml_set(QnYamlDoc *doc, const char *assignment);

/* ---- reading. `key` may be a path "a.b". Where an optional key is absent or null, *out keeps what
 * it was. Ranges include both ends; INT64_MIN/MAX and -INFINITY/INFINITY mean none. ---- */

QnYaml *qn_yaml_find(const QnYaml *map, const char *key); /* NULL: absent, null, or map is NULL */
QnStatus qn_yaml_int(const QnYaml *map, const char *key, bool required, int64_t min, int64_t max,
                     int64_t *out);
QnStatus qn_yaml_real(const QnYaml *map, const char *key, bool required, double min, double max,
                      double *out);
QnStatus qn_yaml_bool(const QnYaml *map, const char *key, bool required, bool *out);
QnStatus qn_yaml_string(const QnYaml *map, const char *key, bool required, const char **out);
/* One of n words; *out is its index. */
QnStatus qn_yaml_choice(const QnYaml *map, const char *key, bool required, const char *const *words,
                        int n, int *out);
QnStatus qn_yaml_map(const QnYaml *map, const char *key, bool required, QnYaml **out);
QnStatus qn_yaml_list(const QnYaml *map, const char *key, bool required, QnYaml **out);
/* A list of at most `cap` numbers; one number alone is a list of one. */
QnStatus qn_yaml_ints(const QnYaml *map, const char *key, bool required, int64_t min, int64_t max,
                      int64_t *out, int cap, int *count);
QnStatus qn_yaml_reals(const QnYaml *map, const char *key, bool required, double min, double max,
                       double *out, int cap, int *count);

/* A node itself as a number or word, e.g. an item of a list. */
QnStatus qn_yaml_as_int(const QnYaml *node, int64_t min, int64_t max, int64_t *out);
QnStatus qn_yaml_as_real(const QnYaml *node, double min, double max, double *out);
QnStatus qn_yaml_as_string(const QnYaml *node, const char **out);

/* Refuses a key of `map` (NULL is fine) that is not among the n known ones, with the nearest. */
QnStatus qn_yaml_check_keys(const QnYaml *map, const char *const *known, int n);

/* "recipe.yaml:12: train.batch"; the root's key is left out. Returns text. */
char *qn_yaml_place(const QnYaml *node, char *text, size_t bytes);
/* QN_EUSAGE "recipe.yaml:12: train.batch: MESSAGE". */
QnStatus qn_yaml_fail(const QnYaml *node, const char *fmt, ...) QN_PRINTF(2, 3);

/* The tree as text; *out is the caller's to qn_free. The text parses to the same tree. */
QnStatus qn_yaml_print(const QnYaml *node, char **out);
QnStatus qn_yaml_print_json(const QnYaml *node, char **out);

#endif
