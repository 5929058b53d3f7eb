#include "cli/docs.h"
#include "quern/quern.h"

/* Text with what roff takes for its own: backslashes, hyphens that must stay such, leading dots. */
static void put(FILE *out, const char *text)
{
    bool at_start = true;
    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        at_start = *text == '\n';
    }
}

static void print_option(FILE *out, const QnOption *o)
{
    fputs(".TP\n.B ", out);
    if (o->letter)
        fprintf(out, "\\-%c, ", o->letter);
    put(out, o->name);
    if (o->value) {
        fputs(" \\fI", out);
        put(out, o->value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put(out, o->help);
    fputc('\n', out);
}

static void print_command(FILE *out, const QnCommand *c)
{
    fprintf(out, ".SS %s\n.B quern %s\n", c->name, c->name);
    put(out, c->usage);
    fputs("\n.PP\n", out);
    put(out, c->summary);
    fputs(".\n", out);
    for (int i = 0; i < c->n_options; i++)
        if (c->options[i].name)
            print_option(out, &c->options[i]);
    if (c->examples) {
        fputs(".PP\n.nf\n", out);
        put(out, c->examples);
        fputs(".fi\n", out);
    }
    for (int i = 0; c->subs && c->subs[i]; i++)
        print_command(out, c->subs[i]);
}

void qn_docs_manual(FILE *out)
{
    fprintf(out,
            ".\\\" Written by ./do docs from the commands' tables.\n"
            ".TH QUERN 1 \"\" \"Quern %s\" \"User Commands\"\n"
            ".SH NAME\nquern \\- train, check and run neural networks\n"
            ".SH SYNOPSIS\n.B quern\n.I COMMAND\n.RI [ options ]\n.br\n"
            ".B quern\n.I COMMAND\n.B \\-\\-help\n.br\n.B quern \\-\\-version\n"
            ".SH DESCRIPTION\n"
            "Quern trains networks from recipes, which are YAML files, and runs what it has "
            "trained.\nAn error is one line on standard error, with the place and what to "
            "change;\nwhere nodes of a model are not supported, a line for each of them stands "
            "before it.\nWith\n.BR \\-\\-json ,\ncommands print one JSON object a line.\n"
            ".SH COMMANDS\n",
            QN_VERSION);
    for (int i = 0; qn_cli_commands[i]; i++) {
        if (!qn_cli_commands[i]->hidden)
            print_command(out, qn_cli_commands[i]);
    }
    fputs(
        ".SH EXIT STATUS\n"
        "0 done, 1 failed, 2 bad usage or bad input, 3 results differ, 4 a model has what is not\n"
        "supported, 130 interrupted.\n"
        ".SH ENVIRONMENT\n.TP\n.B XDG_CACHE_HOME\n"
        "where measured choices of kernels are kept, under\n.IR quern/ ;\n"
        "otherwise\n.IR ~/.cache/quern/ .\n"
        ".SH SEE ALSO\nThe recipes and documents that are installed with Quern.\n",
        out);
}
