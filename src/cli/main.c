#include "cli/cli.h"
#include "cli/spinning.h"

#include "base/clock.h"
#include "quern/quern.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define QN_COMMANDS(X)                                                                             \
    X(train) X(eval) X(predict) X(generate) X(inspect) X(run) X(diff) X(test_onnx) X(export)       \
    X(explain) X(plan) X(bench) X(tune) X(ops) X(doctor) X(docs)
/* clang-format on */

#define QN_X(name) extern const QnCommand qn_cmd_##name;
QN_COMMANDS(QN_X)
#undef QN_X

const QnCommand *const qn_cli_commands[] = {
#define QN_X(name) &qn_cmd_##name,
    QN_COMMANDS(QN_X)
#undef QN_X
        NULL,
};

static void print_help(FILE *out)
{
    fputs("usage: quern COMMAND [options]\n\n"
          "Trains, checks and runs neural networks on this machine.\n\n",
          out);
    for (int i = 0; qn_cli_commands[i]; i++) {
        if (!qn_cli_commands[i]->hidden)
            fprintf(out, "  %-10s %s\n", qn_cli_commands[i]->name, qn_cli_commands[i]->summary);
    }
    fputs("\nquern COMMAND --help shows a command's options and examples; quern --version the "
          "version.\nExit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 results differ, "
          "4 a model has what is\nnot supported, 130 interrupted.\n",
          out);
}

static void print_version(void)
{
    printf("quern %s\n", qn_version());
}

static const QnCommand *find_command(const char *name)
{
    for (int i = 0; qn_cli_commands[i]; i++) {
        if (!strcmp(qn_cli_commands[i]->name, name))
            return qn_cli_commands[i];
    }
    return NULL;
}

/* The command that the words begin with; *n: how many of them name it. */
static const QnCommand *command_of(int argc, char **argv, int *n)
{
    const QnCommand *c = argc > 0 ? find_command(argv[0]) : NULL;
    const QnCommand *sub = c && argc > 1 ? qn_cli_sub(c, argv[1]) : NULL;
    *n = sub ? 2 : 1;
    return sub ? sub : c;
}

static QnStatus unknown_command(const char *name)
{
    const char *names[QN_COUNT(qn_cli_commands)];
    int n = 0;
    for (int i = 0; qn_cli_commands[i]; i++) {
        if (!qn_cli_commands[i]->hidden)
            names[n++] = qn_cli_commands[i]->name;
    }
    const char *near = qn_str_nearest(name, names, n);
    if (near)
        return qn_fail(QN_EUSAGE, "no command '%s'; did you mean '%s'? quern --help lists them",
                       name, near);
    return qn_fail(QN_EUSAGE, "no command '%s'; quern --help lists them", name);
}

QnStatus qn_args_parse(QnArgs *a, int argc, char **argv, bool *help); /* args.c */
void qn_args_help(const QnCommand *c, FILE *out);

/* Where a standard stream is closed, the next file that is opened takes its number, and what is
 * printed would go into the run's files. Read-only: writing fails as it does to a closed stream. */
static void hold_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0)
            return;
    }
}

/* What could not be written to stdout is a failure, also where all else went well. */
static int finish(QnArgs *a, int code)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code != QN_EXIT_OK)
        return code;
    qn_fail(QN_EIO, "cannot write to standard output: %s", strerror(errno));
    a->json = false;
    return qn_cli_fail(a);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit: an error that names it, not a death */
    qn_cli_bound_spinning(argv);
    QnArgs a = { .start_ns = qn_clock_ns() };
    setlocale(LC_CTYPE, "");
    qn_log_init(&a.log, stderr, QN_LOG_INFO);
    if (argc < 2) {
        print_help(stderr);
        return QN_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        int n;
        const QnCommand *c = command_of(argc - 2, argv + 2, &n);
        if (c)
            qn_args_help(c, stdout);
        else
            print_help(stdout);
        return finish(&a, QN_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        print_version();
        return finish(&a, QN_EXIT_OK);
    }
    int n;
    a.command = command_of(argc - 1, argv + 1, &n);
    if (!a.command) {
        unknown_command(argv[1]);
        return qn_cli_fail(&a);
    }
    bool help = false;
    if (qn_args_parse(&a, argc - 1 - n, argv + 1 + n, &help) != QN_OK)
        return qn_cli_fail(&a);
    if (help) {
        qn_args_help(a.command, stdout);
        return finish(&a, QN_EXIT_OK);
    }
    return finish(&a, a.command->run(&a));
}
