#include "nn/names.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 8 };

/* What a pattern has found. */
typedef struct Match {
    int64_t number[NUMBERS_MAX];
    int n;
    const char *text;
    size_t text_n;
} Match;

/* What programs put before all names of a model, and what they keep beside it. */
static const char *const wrappers[] = { "module.",     "_orig_mod.",        "model.",
                                        "state_dict.", "model_state_dict.", "transformer." };
static const QnNameRule common[] = {
    { "*.num_batches_tracked", NULL }, /* counts batches; only a momentum of None uses it */
    { "optimizer.*", NULL },
    { "optimizer_state_dict.*", NULL },
    { "scheduler.*", NULL },
    { "lr_scheduler.*", NULL },
    { "rng_state*", NULL },
    { "cuda_rng_state*", NULL },
    { "model_ema.*", NULL }, /* averages beside the weights */
    { "state_dict_ema.*", NULL },
    { "optim.*", NULL }, /* Quern's own */
    { "grad.*", NULL },
};

static bool take_number(const char **name, Match *m)
{
    size_t n = strspn(*name, "0123456789");
    if (!n || n > 9 || m->n == NUMBERS_MAX)
        return false;
    m->number[m->n++] = strtoll(*name, NULL, 10);
    *name += n;
    return true;
}

static bool match(const char *pattern, const char *name, Match *m)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            size_t n = strlen(name), rest = strlen(pattern + 1);
            m->text = name;
            m->text_n = n - rest;
            return n >= rest && !strcmp(name + n - rest, pattern + 1);
        }
        if (*pattern == '#' ? !take_number(&name, m) : *pattern != *name++)
            return false;
    }
    return !*name;
}

bool qn_names_match(const char *pattern, const char *name)
{
    return match(pattern, name, &(Match){ 0 });
}

/* false: the name does not fit. */
static bool fill(const char *to, const Match *m, char out[QN_NAME_BYTES])
{
    size_t used = 0;
    int next = 0;
    for (; *to; to++) {
        size_t room = QN_NAME_BYTES - used;
        int n = 0;
        if ((*to == '#' || *to == '+') && next < m->n)
            n = snprintf(out + used, room, "%" PRId64, m->number[next++] + (*to == '+'));
        else if (*to == '*')
            n = snprintf(out + used, room, "%.*s", (int)m->text_n, m->text);
        else
            n = snprintf(out + used, room, "%c", *to);
        if (n < 0 || (size_t)n >= room)
            return false;
        used += (size_t)n;
    }
    out[used] = '\0';
    return true;
}

static bool apply(const QnNameRule *rules, int n, const char *name, char out[QN_NAME_BYTES],
                  bool *ignored)
{
    char made[QN_NAME_BYTES];
    for (int i = 0; i < n; i++) {
        Match m = { 0 };
        if (!match(rules[i].from, name, &m))
            continue;
        *ignored = !rules[i].to;
        if (*ignored || !fill(rules[i].to, &m, made))
            return *ignored;
        memcpy(out, made, strlen(made) + 1);
        return true;
    }
    return false;
}

bool qn_names_step(const QnNameMap *map, const char *name, char out[QN_NAME_BYTES], bool *ignored)
{
    *ignored = false;
    if (map && apply(map->rules, map->n_rules, name, out, ignored))
        return true;
    if (apply(common, QN_COUNT(common), name, out, ignored))
        return true;
    for (int i = 0; i < QN_COUNT(wrappers); i++) {
        size_t n = strlen(wrappers[i]);
        if (!strncmp(name, wrappers[i], n) && strlen(name + n) < QN_NAME_BYTES) {
            memmove(out, name + n, strlen(name + n) + 1);
            return true;
        }
    }
    return false;
}

bool qn_names_is_turned(const QnNameMap *map, const char *name)
{
    for (int i = 0; map && i < map->n_turned; i++)
        if (qn_names_match(map->turned[i], name))
            return true;
    return false;
}
