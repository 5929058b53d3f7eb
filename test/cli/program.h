/* Runs the program that lies beside the tests and keeps what it prints. */
#ifndef QN_TEST_CLI_PROGRAM_H
#define QN_TEST_CLI_PROGRAM_H

#include "train/toy.h"

#include "base/json.h"

#include <sys/stat.h>
#include <sys/wait.h>

static char program_out[1 << 18], program_err[1 << 16];

/* Whether /dev/full is there and is what it says: where it is not, writing makes a file of it. */
QN_UNUSED static bool has_full_device(void)
{
    struct stat s;
    return !stat("/dev/full", &s) && S_ISCHR(s.st_mode);
}

QN_UNUSED static const char *program_path(void)
{
    static char path[512];
    if (path[0])
        return path;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 20);
    assert_true(n > 0);
    path[n] = '\0';
    for (int i = 0; i < 2; i++) { /* BUILD/test/test_… to BUILD/quern */
        char *slash = strrchr(path, '/');
        assert_non_null(slash);
        *slash = '\0';
    }
    strcat(path, "/quern");
    return path;
}

QN_UNUSED static void slurp(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
}

/* Runs "PREFIX quern ARGS" in the test's folder by the shell; gives its exit code. */
QN_UNUSED static int run_after(const char *prefix, const char *args)
{
    char command[4096], out[512], err[512];
    snprintf(out, sizeof out, "%s", temp_path("stdout"));
    snprintf(err, sizeof err, "%s", temp_path("stderr"));
    snprintf(command, sizeof command,
             "cd %s && export XDG_CACHE_HOME=%s/cache LC_ALL=C && %s '%s' %s >%s 2>%s </dev/null",
             temp_path("."), temp_path("."), prefix, program_path(), args, out, err);
    int status = system(command);
    slurp(out, program_out, sizeof program_out);
    slurp(err, program_err, sizeof program_err);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 130)
        fail_msg("quern %s: status %x: %s", args, (unsigned)status, program_err);
    return WEXITSTATUS(status);
}

QN_UNUSED static int run(const char *args)
{
    return run_after("", args);
}

QN_UNUSED static void assert_runs(const char *args)
{
    int code = run(args);
    if (code)
        fail_msg("quern %s: exit %d: %s", args, code, program_err);
}

/* Must end with this code and one line on stderr that holds both words, nothing on stdout. */
QN_UNUSED static void assert_refuses(const char *args, int code, const char *a, const char *b)
{
    int got = run(args);
    if (got != code)
        fail_msg("quern %s: exit %d, expected %d: %s", args, got, code, program_err);
    char *end = strchr(program_err, '\n');
    if (!end || end[1] || strncmp(program_err, "error: ", 7))
        fail_msg("quern %s: not one line of error: %s", args, program_err);
    if (!strstr(program_err, a) || !strstr(program_err, b))
        fail_msg("quern %s: no '%s' and '%s' in: %s", args, a, b, program_err);
    if (program_out[0])
        fail_msg("quern %s: stdout holds: %s", args, program_out);
}

/* Every line of stdout is a JSON object; the last one, from the arena. */
QN_UNUSED static const QnJson *json_lines(QnArena *arena, int *n)
{
    const QnJson *o = NULL;
    *n = 0;
    for (const char *p = program_out; *p; ++*n) {
        const char *end = strchr(p, '\n');
        if (!end)
            fail_msg("the last line has no end: %s", p);
        if (qn_json_parse(arena, p, (size_t)(end - p), &o) != QN_OK || o->type != QN_JSON_OBJECT)
            fail_msg("no JSON object: %.*s: %s", (int)(end - p), p, qn_error_last()->text);
        p = end + 1;
    }
    if (!o)
        fail_msg("no line on stdout; stderr: %s", program_err);
    return o;
}

QN_UNUSED static double json_number(const QnJson *o, const char *key)
{
    const QnJson *v = qn_json_find(o, key);
    if (!v || (v->type != QN_JSON_INT && v->type != QN_JSON_DOUBLE))
        fail_msg("no number '%s'", key);
    return qn_json_double(v);
}

QN_UNUSED static const char *json_text(const QnJson *o, const char *key)
{
    const QnJson *v = qn_json_find(o, key);
    if (!v || v->type != QN_JSON_STRING)
        fail_msg("no text '%s'", key);
    return v->string;
}

#endif
