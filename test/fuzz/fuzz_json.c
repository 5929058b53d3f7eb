/* Whatever bytes come: the reader returns an error or a tree, and a tree survives being written and
 * read again. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void write_tree(QnJsonWriter *w, const QnJson *j)
{
    switch (j->type) {
    case QN_JSON_NULL: qn_json_add_null(w); break;
    case QN_JSON_BOOL: qn_json_add_bool(w, j->boolean); break;
    case QN_JSON_INT: qn_json_add_int(w, j->integer); break;
    case QN_JSON_DOUBLE: qn_json_add_double(w, j->number); break;
    case QN_JSON_STRING: qn_json_add_bytes(w, j->string, (size_t)j->n); break;
    case QN_JSON_ARRAY:
    case QN_JSON_OBJECT:
        if (j->type == QN_JSON_ARRAY)
            qn_json_open_array(w);
        else
            qn_json_open_object(w);
        for (int64_t i = 0; i < j->n; i++) {
            if (j->type == QN_JSON_OBJECT)
                qn_json_key(w, j->items[i].key);
            write_tree(w, &j->items[i]);
        }
        qn_json_close(w);
    }
}

static bool has_nul_key(const QnJson *j)
{
    if (j->key && strlen(j->key) != j->key_n)
        return true;
    if (j->type == QN_JSON_ARRAY || j->type == QN_JSON_OBJECT)
        for (int64_t i = 0; i < j->n; i++)
            if (has_nul_key(&j->items[i]))
                return true;
    return false;
}

static bool same(const QnJson *a, const QnJson *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case QN_JSON_NULL: return true;
    case QN_JSON_BOOL: return a->boolean == b->boolean;
    case QN_JSON_INT: return a->integer == b->integer;
    case QN_JSON_DOUBLE: return a->number == b->number && signbit(a->number) == signbit(b->number);
    case QN_JSON_STRING: return a->n == b->n && memcmp(a->string, b->string, (size_t)a->n) == 0;
    default: break;
    }
    for (int64_t i = 0; a->n == b->n && i < a->n; i++)
        if (!same(&a->items[i], &b->items[i]))
            return false;
    return a->n == b->n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    QnArena *arena = qn_arena_new();
    const QnJson *tree, *again;
    if (qn_json_parse(arena, (const char *)data, n, &tree) != QN_OK) {
        must(strncmp(qn_error_last()->text, "JSON, byte ", 11) == 0);
    } else if (!has_nul_key(tree)) { /* keys are written as C strings */
        QnStr out = { 0 };
        QnJsonWriter w;
        qn_json_begin(&w, &out, n % 3);
        write_tree(&w, tree);
        must(qn_json_end(&w) == QN_OK);
        must(qn_json_parse(arena, out.s, out.n, &again) == QN_OK);
        must(same(tree, again));
        qn_str_fini(&out);
    }
    qn_arena_free(arena);
    return 0;
}
