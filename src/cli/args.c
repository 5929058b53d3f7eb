/* Options by each command's table. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

QnStatus qn_args_parse(QnArgs *a, int argc, char **argv, bool *help);
void qn_args_help(const QnCommand *c, FILE *out);

const QnCommand *qn_cli_sub(const QnCommand *c, const char *word)
{
    for (int i = 0; c->subs && c->subs[i]; i++)
        if (!strcmp(strrchr(c->subs[i]->name, ' ') + 1, word))
            return c->subs[i];
    return NULL;
}

static int find_option(const QnCommand *c, const char *word, size_t n)
{
    for (int i = 0; i < c->n_options; i++) {
        const QnOption *o = &c->options[i];
        if (!o->name)
            continue;
        bool by_letter = n == 2 && word[0] == '-' && o->letter && word[1] == o->letter;
        if (by_letter || (strlen(o->name) == n && !strncmp(o->name, word, n)))
            return i;
    }
    return -1;
}

static QnStatus take_int(const QnOption *o, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno == ERANGE || v < o->min || v > o->max)
        return qn_fail(QN_EUSAGE, "%s: expected a whole number from %lld to %lld, found '%s'",
                       o->name, (long long)o->min, (long long)o->max, text);
    *out = v;
    return QN_OK;
}

static QnStatus take_many(QnArgs *a, const QnOption *o, const char *text)
{
    if (!strchr(text, '='))
        return qn_fail(QN_EUSAGE, "%s: expected key=value, found '%s'", o->name, text);
    if (a->n_many == QN_ARGS_MAX)
        return qn_fail(QN_EUSAGE, "%s: more than %d settings", o->name, QN_ARGS_MAX);
    a->many_of[a->n_many] = (int)(o - a->command->options);
    a->many[a->n_many++] = text;
    return QN_OK;
}

static QnStatus no_option(const QnCommand *c, const char *word, size_t n)
{
    const char *names[128], *near;
    char text[64];
    int count = 0;
    snprintf(text, sizeof text, "%.*s", (int)QN_MIN(n, sizeof text - 1), word);
    for (int i = 0; i < c->n_options && count < QN_COUNT(names); i++)
        if (c->options[i].name)
            names[count++] = c->options[i].name;
    near = qn_str_nearest(text, names, count);
    if (near)
        return qn_fail(QN_EUSAGE,
                       "%s has no option %.*s; did you mean %s? quern %s --help lists them",
                       c->name, (int)n, word, near, c->name);
    return qn_fail(QN_EUSAGE, "%s has no option %.*s; quern %s --help lists them", c->name, (int)n,
                   word, c->name);
}

/* One option with its value; *i moves on over what it takes. */
static QnStatus take_option(QnArgs *a, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    int k = find_option(a->command, word, n);
    if (k < 0)
        return no_option(a->command, word, n);
    const QnOption *o = &a->command->options[k];
    if (o->kind == QN_OPTION_FLAG) {
        if (equals)
            return qn_fail(QN_EUSAGE, "%s takes no value", o->name);
        a->text[k] = "";
        return QN_OK;
    }
    const char *value = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (!value)
        return qn_fail(QN_EUSAGE, "%s needs a value: %s %s", o->name, o->name, o->value);
    a->text[k] = value;
    if (o->kind == QN_OPTION_INT)
        return take_int(o, value, &a->number[k]);
    if (o->kind == QN_OPTION_MANY) {
        QN_TRY(take_many(a, o, value));
        while (!equals && *i + 1 < argc && argv[*i + 1][0] != '-' && strchr(argv[*i + 1], '='))
            QN_TRY(take_many(a, o, argv[++*i]));
    }
    return QN_OK;
}

QnStatus qn_args_parse(QnArgs *a, int argc, char **argv, bool *help)
{
    bool only_words = false;
    for (int i = 0; i < argc; i++) { /* first, so that errors know how to speak */
        a->json |= !strcmp(argv[i], "--json");
        *help |= !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
    }
    if (*help)
        return QN_OK;
    for (int i = 0; i < argc; i++) {
        if (!only_words && !strcmp(argv[i], "--")) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            QN_TRY(take_option(a, argc, argv, &i));
        } else if (a->n_positional < QN_ARGS_MAX) {
            a->positional[a->n_positional++] = argv[i];
        } else {
            return qn_fail(QN_EUSAGE, "more than %d words; give fewer at a time", QN_ARGS_MAX);
        }
    }
    const QnCommand *c = a->command;
    if (a->n_positional > c->max_positional)
        return qn_fail(QN_EUSAGE, "usage: quern %s %s: '%s' is one word too many", c->name,
                       c->usage, a->positional[c->max_positional]);
    if (a->n_positional < c->min_positional)
        return qn_fail(QN_EUSAGE, "usage: quern %s %s", c->name, c->usage);
    for (int i = 0; i < a->n_positional; i++) { /* "$UNSET": "" + "/recipe.yaml" is the root's */
        if (!a->positional[i][0])
            return qn_fail(QN_EUSAGE, "usage: quern %s %s: word %d is empty", c->name, c->usage,
                           i + 1);
    }
    return QN_OK;
}

static void print_subs(const QnCommand *c, FILE *out)
{
    if (!c->subs)
        return;
    fprintf(out, "\nCommands of quern %s, each with options of its own:\n", c->name);
    for (int i = 0; c->subs[i]; i++)
        fprintf(out, "  %-12s %s\n", strrchr(c->subs[i]->name, ' ') + 1, c->subs[i]->summary);
    fprintf(out, "quern %s COMMAND --help shows them.\n", c->name);
}

void qn_args_help(const QnCommand *c, FILE *out)
{
    fprintf(out, "usage: quern %s %s\n\n%s.\n\n", c->name, c->usage, c->summary);
    for (int i = 0; i < c->n_options; i++) {
        const QnOption *o = &c->options[i];
        char head[64];
        if (!o->name)
            continue;
        snprintf(head, sizeof head, "%s%c%s%s%s%s", o->letter ? "-" : "  ",
                 o->letter ? o->letter : ' ', o->letter ? ", " : " ", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(out, "  %s%*s %s\n", head, (int)QN_MAX(26 - qn_str_columns(head), 0), "", o->help);
    }
    if (c->examples)
        fprintf(out, "\nExamples:\n%s", c->examples);
    print_subs(c, out);
}
