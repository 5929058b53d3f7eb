#include "plan/match.h"

#include "plan/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 12, LETTERS = 24 };

typedef struct Words {
    char word[WORDS][LETTERS];
    int n;
    char all[WORDS * LETTERS]; /* without what parts them */
} Words;

static bool is_noise(const char *word)
{
    static const char *const noise[] = { "nvidia",   "geforce", "tesla", "amd",      "radeon",
                                         "instinct", "intel",   "gpu",   "graphics", "edition",
                                         "founders", "gen",     "hbm2e", "hbm3",     "gddr6" };
    for (int i = 0; i < QN_COUNT(noise); i++)
        if (!strcmp(word, noise[i]))
            return true;
    return false;
}

static void add_word(Words *w, const char *word)
{
    if (!word[0])
        return;
    /* "80 GB" is one word */
    if (!strcmp(word, "gb") && w->n && isdigit((unsigned char)w->word[w->n - 1][0]))
        strcat(w->word[w->n - 1], "gb");
    else if (!is_noise(word) && w->n < WORDS)
        strcpy(w->word[w->n++], word);
    else
        return;
    strcat(w->all, word);
}

static Words words_of(const char *text)
{
    Words w = { 0 };
    char word[LETTERS - 2] = "";
    size_t n = 0;
    for (;; text++) {
        if (isalnum((unsigned char)*text) && n < sizeof word - 1) {
            word[n++] = (char)tolower((unsigned char)*text);
            continue;
        }
        word[n] = 0;
        add_word(&w, word);
        n = 0;
        if (!*text)
            return w;
    }
}

static bool has_word(const Words *w, const char *word)
{
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->word[i], word))
            return true;
    return false;
}

/* How far a card is from what was asked; large: it is another. */
static int distance(const Words *asked, const QnCard *card)
{
    enum { OTHER = 1000 };
    Words has = words_of(card->name);
    char memory[LETTERS];
    snprintf(memory, sizeof memory, "%.0fgb", card->memory_gb);
    int extra = has.n - asked->n, server = strstr(card->name, "SXM") != NULL;
    if (!strcmp(asked->all, has.all))
        return -1;
    for (int i = 0; i < asked->n; i++) {
        if (has_word(&has, asked->word[i]))
            continue;
        if (strcmp(asked->word[i], memory) != 0)
            return strstr(has.all, asked->all) && strlen(asked->all) >= 5 ? 100 + extra : OTHER;
        extra++;
    }
    return 2 * QN_MAX(extra, 0) + (server ? 0 : 3);
}

const QnCard *qn_match_card(const QnCatalogue *c, const char *name)
{
    Words asked = words_of(name);
    const QnCard *best = NULL;
    int nearest = 1000;
    for (int i = 0; i < c->n_cards && asked.n; i++) {
        int d = distance(&asked, &c->cards[i]);
        if (d < nearest) {
            nearest = d;
            best = &c->cards[i];
        }
    }
    return best;
}

/* ---- models ---- */

/* What a name stands for that no other way leads to. */
static const char *alias_of(const char *all)
{
    static const char *const known[][2] = {
        { "vitb16", "vit_base_patch16_224" },
        { "vitbase", "vit_base_patch16_224" },
        { "vitl16", "vit_large_patch16_224" },
        { "vitlarge", "vit_large_patch16_224" },
        { "vits16", "vit_small_patch16_224" },
        { "swint", "swin_tiny_patch4_window7_224" },
        { "swinb", "swin_base_patch4_window7_224" },
        { "bertbase", "bert_base_squad" },
        { "bertlarge", "bert_large_squad" },
        { "bertbaseuncased", "bert_base_squad" },
        { "bertlargeuncased", "bert_large_squad" },
        { "gpt2", "gpt2_124m" },
        { "gpt2small", "gpt2_124m" },
        { "maskrcnn", "maskrcnn_r50_fpn" },
        { "retinanet", "retinanet_resnext50" },
        { "ssd", "ssd300_resnet50" },
        { "gnmt", "gnmt_v2" },
        { "transformerxl", "transformer_xl_base" },
        { "unet3d", "unet3d_mlperf" },
        { "3dunet", "unet3d_mlperf" },
        { "gptj", "gptj_6b" },
        { "gpt3", "gpt3_175b" },
        { "rnnt", "rnnt_mlperf" },
        { "resnet50v1", "resnet50" },
        { "dlrm", "dlrm_dcnv2" },
    };
    for (int i = 0; i < QN_COUNT(known); i++)
        if (!strcmp(all, known[i][0]))
            return known[i][1];
    return NULL;
}

/* "mistral7b" begins "mistral7bv01"; "resnet5" does not begin "resnet50". */
static bool begins(const char *longer, const char *shorter)
{
    size_t n = strlen(shorter);
    return n >= 5 && !strncmp(longer, shorter, n) &&
           !(isdigit((unsigned char)longer[n]) && isdigit((unsigned char)shorter[n - 1]));
}

const QnModel *qn_match_model(const char *name)
{
    const QnModel *m, *best = NULL;
    Words asked = words_of(name);
    const char *alias = alias_of(asked.all);
    size_t shortest = 1000;
    if (qn_model_find(name, &m) == QN_OK || (alias && qn_model_find(alias, &m) == QN_OK))
        return m;
    for (int i = 0; (m = qn_model_at(i)); i++) {
        Words has = words_of(m->name);
        if (begins(has.all, asked.all) && strlen(has.all) < shortest) {
            shortest = strlen(has.all);
            best = m;
        }
    }
    return best;
}

/* ---- names that nothing matches ---- */

static const char *nearest(const char *name, const char *const *known, int n)
{
    const char *near[QN_NAMES_NEAR];
    return qn_names_near(name, known, n, near) ? near[0] : NULL;
}

const char *qn_match_near_model(const char *name)
{
    enum { MOST = 2048 };
    const char *known[MOST];
    const QnModel *model;
    int n = 0;
    while (n < MOST && (model = qn_model_at(n)))
        known[n++] = model->name;
    return nearest(name, known, n);
}

const char *qn_match_near_card(const QnCatalogue *c, const char *name)
{
    enum { MOST = 512 };
    const char *known[MOST];
    int n = QN_MIN(c->n_cards, MOST);
    for (int i = 0; i < n; i++)
        known[i] = c->cards[i].name;
    return nearest(name, known, n);
}

const char *qn_match_near_numbers(const char *name)
{
    const char *known[QN_NUMBERS_COUNT];
    for (int i = 0; i < QN_NUMBERS_COUNT; i++)
        known[i] = qn_numbers_name((QnNumbers)i);
    return nearest(name, known, QN_NUMBERS_COUNT);
}
