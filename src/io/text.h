/* Text for character-level language models: one file, a vocabulary of its characters, windows of
 * tokens. */
#ifndef QN_IO_TEXT_H
#define QN_IO_TEXT_H

#include "io/dataset.h"

typedef enum QnVocabKind {
    QN_VOCAB_BYTES, /* one token a byte value that occurs */
    QN_VOCAB_CHARS, /* one token a Unicode character that occurs; the text must be UTF-8 */
} QnVocabKind;

/* The characters of a text, sorted; a token is a place in that order. */
typedef struct QnVocab QnVocab;

QnStatus qn_vocab_build(const char *name, QnVocabKind kind, const char *text, size_t size,
                        QnVocab **out);
void qn_vocab_free(QnVocab *vocab); /* NULL is fine */
int64_t qn_vocab_count(const QnVocab *vocab);
QnVocabKind qn_vocab_kind(const QnVocab *vocab);
/* Token of a character (or byte); -1: not in the vocabulary. */
int64_t qn_vocab_find(const QnVocab *vocab, uint32_t character);
/* Text to tokens; *tokens is the caller's to qn_free. Unknown characters are an error that names
 * the byte. `name` is for messages. */
QnStatus qn_vocab_encode(const QnVocab *vocab, const char *name, const char *text, size_t size,
                         int64_t **tokens, int64_t *count);
/* The same in half the memory, for whole corpora. */
QnStatus qn_vocab_encode_compact(const QnVocab *vocab, const char *name, const char *text,
                                 size_t size, uint32_t **tokens, int64_t *count);
/* Tokens to text, NUL-terminated; *text is the caller's to qn_free. */
QnStatus qn_vocab_decode(const QnVocab *vocab, const int64_t *tokens, int64_t count, char **text);
/* As JSON: {"kind": "bytes" or "chars", "characters": [10, 32, …]}. */
QnStatus qn_vocab_print(const QnVocab *vocab, char **json);
QnStatus qn_vocab_parse(const char *name, const char *json, size_t size, QnVocab **out);
QnStatus qn_vocab_save(const QnVocab *vocab, const char *path);
QnStatus qn_vocab_load(const char *path, QnVocab **out);

typedef struct QnTextOptions {
    const char *path;
    QnVocabKind kind;
    const QnVocab *vocab;  /* NULL: built from the whole text; else copied, `kind` is ignored */
    int64_t window;        /* T: tokens in x, and in y, which is x moved on by one */
    double train_fraction; /* the first part of the text; 0: 0.9; 1: everything */
} QnTextOptions;

/* Training samples are windows at random places, drawn from (seed, epoch, index); there are as many
 * in an epoch as windows fit. Validation samples are the windows one after the other. *valid is
 * NULL where everything is training. *vocab is the caller's to free, before or after the datasets.
 */
QnStatus qn_text_open(const QnTextOptions *options, QnDataset **train, QnDataset **valid,
                      QnVocab **vocab);
QnStatus qn_text_parse(const QnTextOptions *options, const char *text, size_t size,
                       QnDataset **train, QnDataset **valid, QnVocab **vocab);
/* Tokens in this part, and bytes of text a token on average: loss in nats / (ln 2 · this) is bits a
 * byte. For datasets that qn_text_open made. */
int64_t qn_text_token_count(const QnDataset *ds);
double qn_text_bytes_per_token(const QnDataset *ds);

#endif
