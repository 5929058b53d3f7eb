#include "cli/far_memory.h"

#include "base/file.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT, TOKENS, TEMPERATURE, TOP, SEED, DEVICE };

static const QnOption options[] = {
    [PROMPT] = { "--prompt", 'p', QN_OPTION_TEXT, "TEXT", "text to go on from; default a new line",
                 0, 0 },
    [TOKENS] = { "--tokens", 'n', QN_OPTION_INT, "N", "tokens to write; default 500", 1, 1 << 24 },
    [TEMPERATURE] = { "--temperature", 't', QN_OPTION_TEXT, "T",
                      "0 takes the likeliest, 1 (default) draws as learnt", 0, 0 },
    [TOP] = { "--top", 0, QN_OPTION_INT, "K", "draw among the K likeliest; default all", 1,
              1 << 24 },
    [SEED] = { "--seed", 0, QN_OPTION_INT, "S", "seed of the draws; default 0", 0, INT64_MAX },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
};

typedef struct Sampler {
    double temperature;
    int64_t top; /* 0: all */
    QnRng rng;
    double *p;
} Sampler;

/* The k-th largest of n logits: a draw among the top k leaves out what is smaller. */
static double kth_largest(const float *x, int64_t n, int64_t k)
{
    double limit = INFINITY;
    while (k > 0) {
        double next = -INFINITY;
        for (int64_t i = 0; i < n; i++)
            next = x[i] < limit && x[i] > next ? x[i] : next;
        if (next == -INFINITY) /* fewer than k that are numbers */
            return next;
        for (int64_t i = 0; i < n; i++)
            k -= x[i] == next;
        limit = next;
    }
    return limit;
}

static int64_t draw(Sampler *s, const float *logits, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    if (s->temperature <= 0)
        return best;
    double floor_logit = s->top && s->top < n ? kth_largest(logits, n, s->top) : -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        s->p[i] = logits[i] >= floor_logit ? exp((logits[i] - logits[best]) / s->temperature) : 0;
        sum += s->p[i];
    }
    double u = qn_rng_uniform(&s->rng) * sum;
    for (int64_t i = 0; i < n; i++) {
        u -= s->p[i];
        if (u < 0)
            return i;
    }
    return best;
}

static QnStatus print_token(const QnVocab *vocab, int64_t token)
{
    char *text;
    QN_TRY(qn_vocab_decode(vocab, &token, 1, &text));
    fputs(text, stdout);
    fflush(stdout);
    qn_free(text);
    return QN_OK;
}

/* The window holds the last tokens from its start on; the net is causal, so what stands behind the
 * last one does not matter. */
static QnStatus write_text(QnSetup *s, const QnVocab *vocab, int64_t *tokens, int64_t n_prompt,
                           int64_t n_new, Sampler *sampler)
{
    int64_t window = s->session->spec.x_dims[0], index = 0;
    int64_t *x = qn_alloc_array((size_t)window, sizeof *x);
    int64_t *y = qn_alloc_array((size_t)window, sizeof *y);
    QnStatus st = x && y ? QN_OK : QN_ENOMEM;
    for (int64_t n = n_prompt; st == QN_OK && n < n_prompt + n_new; n++) {
        int64_t len = QN_MIN(n, window);
        QnEvalResult r;
        QnBatch b = { .x = x, .y = y, .indices = &index, .count = 1 };
        memcpy(x, tokens + n - len, (size_t)len * sizeof *x);
        st = qn_session_eval(s->session, &b, &r);
        if (st != QN_OK)
            break;
        tokens[n] = draw(sampler, r.logits + (len - 1) * r.outputs, r.outputs);
        st = print_token(vocab, tokens[n]);
    }
    printf("\n");
    qn_free(x);
    qn_free(y);
    return st;
}

static QnStatus generate(const QnArgs *a, QnSetup *s, const QnVocab *vocab)
{
    const char *prompt = a->text[PROMPT] ? a->text[PROMPT] : "\n";
    int64_t n_new = a->text[TOKENS] ? a->number[TOKENS] : 500, n_prompt, *encoded;
    Sampler sampler = { .temperature = 1, .top = a->text[TOP] ? a->number[TOP] : 0 };
    char *end = NULL;
    if (a->text[TEMPERATURE]) {
        sampler.temperature = strtod(a->text[TEMPERATURE], &end);
        if (end == a->text[TEMPERATURE] || *end || !(sampler.temperature >= 0))
            return qn_fail(QN_EUSAGE, "--temperature: expected a number from 0, found '%s'",
                           a->text[TEMPERATURE]);
    }
    if (qn_vocab_count(vocab) != s->session->spec.class_count)
        return qn_fail(QN_EFORMAT, "%s/vocab.json has %lld tokens, the model %lld",
                       a->positional[0], (long long)qn_vocab_count(vocab),
                       (long long)s->session->spec.class_count);
    if (!a->text[PROMPT] && qn_vocab_find(vocab, '\n') < 0)
        return qn_fail(QN_EUSAGE, "the model knows no new line to begin with: give a text to go on "
                                  "from by --prompt");
    QN_TRY(qn_vocab_encode(vocab, "--prompt", prompt, strlen(prompt), &encoded, &n_prompt));
    if (n_prompt == 0) {
        qn_free(encoded);
        return qn_fail(QN_EUSAGE, "--prompt is empty");
    }
    int64_t *tokens = qn_alloc_array((size_t)(n_prompt + n_new), sizeof *tokens);
    sampler.p = qn_alloc_array((size_t)qn_vocab_count(vocab), sizeof *sampler.p);
    qn_rng_init(&sampler.rng, a->text[SEED] ? (uint64_t)a->number[SEED] : 0, 0x67656e);
    QnStatus st = tokens && sampler.p ? QN_OK : QN_ENOMEM;
    if (st == QN_OK) {
        memcpy(tokens, encoded, (size_t)n_prompt * sizeof *tokens);
        fputs(prompt, stdout);
        st = write_text(s, vocab, tokens, n_prompt, n_new, &sampler);
    }
    qn_free(tokens);
    qn_free(sampler.p);
    qn_free(encoded);
    return st;
}

static int run(QnArgs *a)
{
    QnSetup s;
    static const char *const small = "train.eval.batch=1";
    char path[4096];
    QnVocab *vocab = NULL;
    snprintf(path, sizeof path, "%.4000s/vocab.json", a->positional[0]);
    if (!qn_file_exists(path)) {
        qn_fail(QN_EUSAGE, "%s holds no language model: it has no vocab.json", a->positional[0]);
        return qn_cli_fail(a);
    }
    if (qn_setup_open_model(&s, a->positional[0], &small, 1,
                            &(QnDeviceWish){ .name = a->text[DEVICE], .log = &a->log }) != QN_OK)
        return qn_cli_fail(a);
    qn_setup_warn_skipped(&s, &a->log);
    qn_far_warn(&s, &a->log);
    QnStatus st = qn_vocab_load(path, &vocab);
    if (st == QN_OK)
        st = generate(a, &s, vocab);
    int code = st == QN_OK ? QN_EXIT_OK : qn_cli_fail(a);
    qn_vocab_free(vocab);
    qn_setup_close(&s);
    return code;
}

const QnCommand qn_cmd_generate = {
    .name = "generate",
    .summary = "Write text with a trained language model",
    .usage = "RUN [options]",
    .examples = "  quern generate runs/shakespeare-char -p 'ROMEO:' -n 300 -t 0.8\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
