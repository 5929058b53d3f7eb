/* Every case below a folder, each in a process of its own. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/term.h"
#include "onnx/check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RTOL, ATOL, MATCH, SECONDS, DEVICE, JSON };

static const QnOption options[] = {
    [RTOL] = { "--rtol", 0, QN_OPTION_TEXT, "R", "relative tolerance; default 1e-3", 0, 0 },
    [ATOL] = { "--atol", 0, QN_OPTION_TEXT, "A", "absolute tolerance; default 1e-7", 0, 0 },
    [MATCH] = { "--match", 0, QN_OPTION_TEXT, "TEXT", "only cases whose path has TEXT", 0, 0 },
    [SECONDS] = { "--seconds", 0, QN_OPTION_INT, "S", "at most so long a case; default 120", 1,
                  86400 },
    [DEVICE] = { "--device", 0, QN_OPTION_TEXT, "NAME", QN_DEVICE_HELP, 0, 0 },
    [JSON] = { "--json", 0, QN_OPTION_FLAG, NULL, "one JSON object a case, then the counts", 0, 0 },
};

typedef struct Cases {
    char **path;
    int64_t n, cap;
} Cases;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static QnStatus add_case(Cases *c, const char *path)
{
    QN_TRY(QN_GROW(c->path, c->cap, c->n));
    c->path[c->n] = qn_strdup(path);
    return c->path[c->n] ? (c->n++, QN_OK) : QN_ENOMEM;
}

/* Folders that hold model.onnx and data sets. */
static QnStatus find_cases(Cases *c, const char *folder, const char *match, int depth)
{
    char path[4096];
    struct stat info;
    DIR *d = opendir(folder);
    if (!d)
        return qn_fail(errno == ENOENT    ? QN_ENOTFOUND
                       : errno == ENOTDIR ? QN_EARG
                                          : QN_EIO,
                       "%s: %s", folder, strerror(errno));
    QnStatus st = QN_OK;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (stat(path, &info) == 0 && (!match || strstr(folder, match)))
        st = add_case(c, folder);
    for (struct dirent *e; st == QN_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !strncmp(e->d_name, "test_data_set_", 14))
            continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path)
            continue;
        if (depth < 8 && lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            st = find_cases(c, path, match, depth + 1);
    }
    closedir(d);
    return st;
}

/* The child: runs the case and sends what came of it. */
static void child(const QnArgs *a, const char *path, const QnTolerance *tol, int to)
{
    QnCase c = { .result = QN_CASE_FAILED };
    QnDevice *d = NULL;
    alarm((unsigned)(a->text[SECONDS] ? a->number[SECONDS] : 120));
    if (qn_cli_device(a->text[DEVICE], 1, false, &d) == QN_OK)
        qn_case_run(path, d, tol, &c);
    else
        snprintf(c.text, sizeof c.text, "%s", qn_error_last()->text);
    ssize_t sent = write(to, &c, sizeof c);
    _exit(sent == (ssize_t)sizeof c ? 0 : 1);
}

static QnStatus run_case(const QnArgs *a, const char *path, const QnTolerance *tol, QnCase *out)
{
    int fd[2], status = 0;
    size_t got = 0;
    *out = (QnCase){ .result = QN_CASE_FAILED };
    if (pipe(fd) != 0)
        return qn_fail(QN_EIO, "no pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close(fd[0]);
        close(fd[1]);
        return qn_fail(QN_EIO, "no process: %s", strerror(errno));
    }
    if (pid == 0) {
        close(fd[0]);
        child(a, path, tol, fd[1]);
    }
    close(fd[1]);
    while (got < sizeof *out) {
        ssize_t n = read(fd[0], (char *)out + got, sizeof *out - got);
        if (n <= 0 && errno != EINTR)
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    close(fd[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (got < sizeof *out) {
        *out = (QnCase){ .result = QN_CASE_FAILED };
        if (WIFSIGNALED(status))
            snprintf(out->text, sizeof out->text, "%s",
                     WTERMSIG(status) == SIGALRM ? "took too long" : strsignal(WTERMSIG(status)));
        else
            snprintf(out->text, sizeof out->text, "ended with code %d", WEXITSTATUS(status));
    }
    return QN_OK;
}

static QnStatus put_case(const char *path, const QnCase *c)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    qn_json_put_string(&w, "case", path);
    qn_json_put_string(&w, "result", qn_case_names[c->result]);
    qn_json_put_string(&w, "op", c->op);
    qn_json_put_int(&w, "opset", c->opset);
    if (c->text[0])
        qn_json_put_string(&w, "why", c->text);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

/* Counts by operator, and by opset. */
typedef struct Tally {
    char name[64];
    int64_t n[QN_CASE_COUNT];
} Tally;

static void count(Tally *t, int most, const char *name, QnCaseResult r)
{
    int i = 0;
    while (i < most - 1 && t[i].name[0] && strcmp(t[i].name, name))
        i++;
    snprintf(t[i].name, sizeof t[i].name, "%s", name);
    t[i].n[r]++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Tally *)a)->name, ((const Tally *)b)->name);
}

static void print_tally(const char *head, Tally *t)
{
    int n = 0;
    while (t[n].name[0])
        n++;
    qsort(t, (size_t)n, sizeof *t, by_name);
    printf("%-28s %6s %9s %11s %6s\n", head, "pass", "different", "unsupported", "failed");
    for (int i = 0; i < n; i++)
        printf("%-28s %6lld %9lld %11lld %6lld\n", t[i].name, (long long)t[i].n[0],
               (long long)t[i].n[1], (long long)t[i].n[2], (long long)t[i].n[3]);
}

static QnStatus put_counts(const int64_t *n)
{
    QnStr line = { 0 };
    QnJsonWriter w;
    qn_json_begin(&w, &line, 0);
    qn_json_open_object(&w);
    for (int i = 0; i < QN_CASE_COUNT; i++)
        qn_json_put_int(&w, qn_case_names[i], n[i]);
    qn_json_close(&w);
    QnStatus st = qn_json_end(&w);
    if (st == QN_OK)
        qn_cli_print_json(&line);
    qn_str_fini(&line);
    return st;
}

/* Folders may come from an archive of strangers: nothing in their names reaches the terminal. */
static void print_path(const char *path)
{
    for (const char *p = path; *p; p++)
        putchar((unsigned char)*p < 0x20 || *p == 0x7f ? '?' : *p);
}

static QnStatus run_cases(const QnArgs *a, const Cases *cases, int64_t *counts)
{
    static Tally ops[512], opsets[128];
    QnTolerance tol;
    char opset[16];
    QN_TRY(qn_cli_number(a, RTOL, 1e-3, &tol.rtol));
    QN_TRY(qn_cli_number(a, ATOL, 1e-7, &tol.atol));
    for (int64_t i = 0; i < cases->n; i++) {
        QnCase c;
        QN_TRY(run_case(a, cases->path[i], &tol, &c));
        counts[c.result]++;
        snprintf(opset, sizeof opset, "opset %2lld", (long long)c.opset);
        count(ops, QN_COUNT(ops), c.op[0] ? c.op : "(not read)", c.result);
        count(opsets, QN_COUNT(opsets), opset, c.result);
        if (a->json) {
            QN_TRY(put_case(cases->path[i], &c));
        } else if (c.result != QN_CASE_PASS) {
            print_path(cases->path[i]);
            printf(": %s: %s\n", qn_case_names[c.result], c.text);
        }
    }
    if (a->json)
        return put_counts(counts);
    print_tally("operator", ops);
    print_tally("opset", opsets);
    printf("%lld cases: %lld pass, %lld different, %lld unsupported, %lld failed\n",
           (long long)cases->n, (long long)counts[0], (long long)counts[1], (long long)counts[2],
           (long long)counts[3]);
    return QN_OK;
}

static int run(QnArgs *a)
{
    Cases cases = { 0 };
    int64_t counts[QN_CASE_COUNT] = { 0 };
    QnStatus st = find_cases(&cases, a->positional[0], a->text[MATCH], 0);
    if (st == QN_OK && cases.n == 0)
        st = qn_fail(QN_EUSAGE, "%s: no folder below it holds a model.onnx%s%s", a->positional[0],
                     a->text[MATCH] ? " and has in its path " : "",
                     a->text[MATCH] ? a->text[MATCH] : "");
    if (cases.n > 1)
        qsort(cases.path, (size_t)cases.n, sizeof *cases.path, by_text);
    if (st == QN_OK)
        st = run_cases(a, &cases, counts);
    for (int64_t i = 0; i < cases.n; i++)
        qn_free(cases.path[i]);
    qn_free(cases.path);
    if (st != QN_OK)
        return qn_cli_fail(a);
    return counts[QN_CASE_FAILED] || counts[QN_CASE_DIFFERENT] ? QN_EXIT_FAILED : QN_EXIT_OK;
}

const QnCommand qn_cmd_test_onnx = {
    .name = "test-onnx",
    .summary = "Run ONNX's own test cases, or yours, each in a process of its own",
    .usage = "DIR [options]",
    .examples = "  quern test-onnx /usr/share/libonnx-testdata/data\n"
                "  quern test-onnx cases --match conv --rtol 1e-5\n",
    .options = options,
    .n_options = QN_COUNT(options),
    .min_positional = 1,
    .max_positional = 1,
    .run = run,
};
