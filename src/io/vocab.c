#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/text.h"

#include <inttypes.h>
#include <string.h>

enum { CODE_MAX = 0x10ffff, VOCAB_LIMIT_BYTES = 64 << 20 };

struct QnVocab {
    QnVocabKind kind;
    uint32_t *codes; /* rising */
    int64_t count;
    int32_t ascii[128]; /* tokens of the most frequent characters; -1: none */
};

/* One character of UTF-8 at p; its length, or 0 if it is none (overlong, surrogate, cut short). */
static int take_utf8(const uint8_t *p, size_t left, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    int n = p[0] >= 0xf0 && p[0] < 0xf8 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
    if (!n || p[0] >= 0xf8 || (size_t)n > left)
        return 0;
    uint32_t c = p[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > CODE_MAX || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return n;
}

static int put_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    out[0] = (char)(lead[n] | c);
    return n;
}

static QnStatus next_code(const char *name, QnVocabKind kind, const char *text, size_t size,
                          size_t *at, uint32_t *code)
{
    const uint8_t *p = (const uint8_t *)text + *at;
    if (kind == QN_VOCAB_BYTES) {
        *code = *p;
        ++*at;
        return QN_OK;
    }
    int n = take_utf8(p, size - *at, code);
    if (!n)
        return qn_fail(QN_EFORMAT,
                       "%s: byte %zu: not UTF-8 text: convert it, or use bytes as "
                       "tokens",
                       name, *at);
    *at += (size_t)n;
    return QN_OK;
}

static QnVocab *vocab_new(QnVocabKind kind, int64_t count)
{
    QnVocab *v = qn_alloc(sizeof *v);
    if (!v)
        return NULL;
    v->kind = kind;
    v->count = count;
    v->codes = qn_alloc_array((size_t)count, sizeof *v->codes);
    if (v->codes)
        return v;
    qn_free(v);
    return NULL;
}

/* After the codes are in place. */
static void index_ascii(QnVocab *v)
{
    for (int c = 0; c < 128; c++)
        v->ascii[c] = -1;
    for (int64_t i = 0; i < v->count && v->codes[i] < 128; i++)
        v->ascii[v->codes[i]] = (int32_t)i;
}

QnStatus qn_vocab_build(const char *name, QnVocabKind kind, const char *text, size_t size,
                        QnVocab **out)
{
    uint8_t *seen = qn_alloc(CODE_MAX / 8 + 1); /* a bit a character */
    if (!seen)
        return QN_ENOMEM;
    QnStatus st = QN_OK;
    int64_t count = 0;
    for (size_t at = 0; at < size;) {
        uint32_t c = 0;
        QN_TRY_DONE(next_code(name, kind, text, size, &at, &c));
        count += !(seen[c / 8] >> (c % 8) & 1);
        seen[c / 8] |= (uint8_t)(1u << (c % 8));
    }
    if (!count) {
        st = qn_fail(QN_EFORMAT, "%s: the file is empty", name);
        goto done;
    }
    QnVocab *v = vocab_new(kind, count);
    if (!v) {
        st = QN_ENOMEM;
        goto done;
    }
    count = 0;
    for (uint32_t c = 0; c <= CODE_MAX; c++)
        if (seen[c / 8] >> (c % 8) & 1)
            v->codes[count++] = c;
    index_ascii(v);
    *out = v;
done:
    qn_free(seen);
    return st;
}

void qn_vocab_free(QnVocab *vocab)
{
    if (!vocab)
        return;
    qn_free(vocab->codes);
    qn_free(vocab);
}

int64_t qn_vocab_count(const QnVocab *vocab)
{
    return vocab->count;
}

QnVocabKind qn_vocab_kind(const QnVocab *vocab)
{
    return vocab->kind;
}

int64_t qn_vocab_find(const QnVocab *vocab, uint32_t character)
{
    if (character < 128)
        return vocab->ascii[character];
    int64_t lo = 0, hi = vocab->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (vocab->codes[mid] < character)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < vocab->count && vocab->codes[lo] == character ? lo : -1;
}

QnStatus qn_vocab_encode_compact(const QnVocab *vocab, const char *name, const char *text,
                                 size_t size, uint32_t **tokens, int64_t *count)
{
    QnStatus st = QN_OK;
    int64_t n = 0;
    uint32_t *ids = qn_alloc_array(size, sizeof *ids);
    if (!ids)
        return QN_ENOMEM;
    for (size_t at = 0; at < size;) {
        size_t from = at;
        uint32_t c = 0;
        QN_TRY_DONE(next_code(name, vocab->kind, text, size, &at, &c));
        int64_t id = qn_vocab_find(vocab, c);
        if (id < 0) {
            st = qn_fail(QN_EARG,
                         "%s: byte %zu: character U+%04" PRIX32 " is not among the %" PRId64
                         " that the model knows",
                         name, from, c, vocab->count);
            goto done;
        }
        ids[n++] = (uint32_t)id;
    }
    *tokens = ids;
    *count = n;
    ids = NULL;
done:
    qn_free(ids);
    return st;
}

QnStatus qn_vocab_encode(const QnVocab *vocab, const char *name, const char *text, size_t size,
                         int64_t **tokens, int64_t *count)
{
    uint32_t *compact;
    int64_t n = 0;
    QN_TRY(qn_vocab_encode_compact(vocab, name, text, size, &compact, &n));
    int64_t *ids = qn_alloc_array((size_t)n, sizeof *ids);
    for (int64_t i = 0; ids && i < n; i++)
        ids[i] = compact[i];
    qn_free(compact);
    if (!ids)
        return QN_ENOMEM;
    *tokens = ids;
    *count = n;
    return QN_OK;
}

QnStatus qn_vocab_decode(const QnVocab *vocab, const int64_t *tokens, int64_t count, char **text)
{
    QnStr s = { 0 };
    QnStatus st = QN_OK;
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocab->count) {
            st = qn_fail(QN_EARG, "token %" PRId64 " of a vocabulary of %" PRId64, tokens[i],
                         vocab->count);
            goto done;
        }
        uint32_t c = vocab->codes[tokens[i]];
        char utf8[4] = { (char)c };
        qn_str_add_bytes(&s, utf8, vocab->kind == QN_VOCAB_BYTES ? 1 : (size_t)put_utf8(c, utf8));
    }
    st = qn_str_take(&s, text);
done:
    qn_str_fini(&s);
    return st;
}

QnStatus qn_vocab_print(const QnVocab *vocab, char **json)
{
    QnStr s = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &s, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "kind", vocab->kind == QN_VOCAB_BYTES ? "bytes" : "chars");
    qn_json_key(&w, "characters");
    qn_json_open_array(&w);
    for (int64_t i = 0; i < vocab->count; i++)
        qn_json_add_int(&w, vocab->codes[i]);
    qn_json_close(&w);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        st = qn_str_take(&s, json);
    qn_str_fini(&s);
    return st;
}

static QnStatus read_vocab(QnArena *arena, const char *json, size_t size, QnVocab **out)
{
    const QnJson *root, *kind, *list;
    QN_TRY(qn_json_parse(arena, json, size, &root));
    QN_TRY(qn_json_need(root, "kind", QN_JSON_STRING, &kind));
    QN_TRY(qn_json_need(root, "characters", QN_JSON_ARRAY, &list));
    bool bytes = !strcmp(kind->string, "bytes");
    if (!bytes && strcmp(kind->string, "chars"))
        return qn_fail(QN_EFORMAT, "byte %zu: kind '%.40s' is neither bytes nor chars",
                       kind->offset, kind->string);
    if (!list->n)
        return qn_fail(QN_EFORMAT, "byte %zu: no characters", list->offset);
    int64_t before = -1;
    for (int64_t i = 0; i < list->n; i++) {
        const QnJson *c = &list->items[i];
        if (c->type != QN_JSON_INT || c->integer <= before ||
            c->integer > (bytes ? 255 : CODE_MAX) || (c->integer >= 0xd800 && c->integer < 0xe000))
            return qn_fail(QN_EFORMAT, "byte %zu: characters must be rising code points",
                           c->offset);
        before = c->integer;
    }
    QnVocab *v = vocab_new(bytes ? QN_VOCAB_BYTES : QN_VOCAB_CHARS, list->n);
    if (!v)
        return QN_ENOMEM;
    for (int64_t i = 0; i < list->n; i++)
        v->codes[i] = (uint32_t)list->items[i].integer;
    index_ascii(v);
    *out = v;
    return QN_OK;
}

QnStatus qn_vocab_parse(const char *name, const char *json, size_t size, QnVocab **out)
{
    QnArena *arena = qn_arena_new();
    if (!arena)
        return QN_ENOMEM;
    QnStatus st = read_vocab(arena, json, size, out);
    qn_arena_free(arena);
    return st == QN_OK ? QN_OK : qn_fail_prefix("%s: vocabulary", name);
}

QnStatus qn_vocab_save(const QnVocab *vocab, const char *path)
{
    char *json;
    QN_TRY(qn_vocab_print(vocab, &json));
    QnStatus st = qn_file_write_atomic(path, json, strlen(json));
    qn_free(json);
    return st;
}

QnStatus qn_vocab_load(const char *path, QnVocab **out)
{
    char *json;
    size_t size;
    QN_TRY(qn_file_read(path, VOCAB_LIMIT_BYTES, &json, &size));
    QnStatus st = qn_vocab_parse(path, json, size, out);
    qn_free(json);
    return st;
}
