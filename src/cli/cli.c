#include "cli/cli.h"

#include "base/cache.h"
#include "base/file.h"
#include "rt/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qn_cli_print_json(QnStr *text)
{
    qn_str_add(text, "\n");
    fputs(qn_str_text(text), stdout);
    fflush(stdout);
    qn_str_fini(text);
}

static bool is_users_fault(QnStatus st)
{
    return st == QN_EUSAGE || st == QN_EFORMAT || st == QN_EARG || st == QN_ESHAPE ||
           st == QN_ENOTFOUND || st == QN_EDTYPE;
}

/* Each line of the problems is an element. */
static void put_problems(QnJsonWriter *w, const QnOnnxProblems *problems)
{
    qn_json_key(w, "problems");
    qn_json_open_array(w);
    for (const char *p = qn_str_text(&problems->text); *p; p += strcspn(p, "\n"), p += *p == '\n')
        qn_json_add_bytes(w, p, strcspn(p, "\n"));
    qn_json_close(w);
}

static int fail(const QnArgs *a, int code, const QnOnnxProblems *problems)
{
    const QnError *e = qn_error_last();
    qn_log_at(&a->log, QN_LOG_ERROR, "%s", e->text[0] ? e->text : qn_status_text(e->code));
    if (a->json) {
        QnStr text = { 0 };
        QnJsonWriter w;
        qn_json_begin(&w, &text, 0);
        qn_json_open_object(&w);
        qn_json_put_string(&w, "error", e->text);
        qn_json_put_string(&w, "status", qn_status_name(e->code));
        qn_json_put_int(&w, "exit", code);
        if (problems && problems->n)
            put_problems(&w, problems);
        qn_json_close(&w);
        if (qn_json_end(&w) == QN_OK)
            qn_cli_print_json(&text);
        qn_str_fini(&text);
    }
    return code;
}

int qn_cli_fail(const QnArgs *a)
{
    return fail(a, is_users_fault(qn_error_last()->code) ? QN_EXIT_USAGE : QN_EXIT_FAILED, NULL);
}

int qn_cli_fail_model(const QnArgs *a, const QnOnnxProblems *problems)
{
    if (problems && problems->n)
        fputs(qn_str_text(&problems->text), stderr);
    if (qn_error_last()->code == QN_EUNSUPPORTED)
        return fail(a, QN_EXIT_UNSUPPORTED, problems);
    return qn_cli_fail(a);
}

QnStatus qn_cli_number(const QnArgs *a, int option, double otherwise, double *out)
{
    char *end;
    const char *text = a->text[option];
    *out = otherwise;
    if (!text)
        return QN_OK;
    *out = strtod(text, &end);
    return *end || end == text || !(*out >= 0)
               ? qn_fail(QN_EUSAGE, "%s: expected a number of at least 0, found '%s'",
                         a->command->options[option].name, text)
               : QN_OK;
}

QnStatus qn_cli_check_computes(const QnDevice *d)
{
    if (!strcmp(d->backend->name, "null"))
        return qn_fail(QN_EUSAGE, "--device null computes nothing: it is for quern explain");
    return QN_OK;
}

void qn_cli_table(FILE *out, const char *const *cells, int n_columns, int n_rows, const char *align)
{
    int64_t width[16] = { 0 };
    n_columns = QN_MIN(n_columns, QN_COUNT(width));
    for (int i = 0; i < n_rows * n_columns; i++)
        width[i % n_columns] = QN_MAX(width[i % n_columns], qn_str_columns(cells[i]));
    for (int i = 0; i < n_rows * n_columns; i++) {
        int c = i % n_columns;
        int pad = (int)(width[c] - qn_str_columns(cells[i]));
        bool last = c == n_columns - 1;
        if (align[c] == 'r')
            fprintf(out, "%*s%s", pad, "", cells[i]);
        else
            fprintf(out, "%s%*s", cells[i], last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", out);
    }
}

QnStatus qn_cli_choices(QnChoices **out)
{
    char path[4096];
    QN_TRY(qn_cache_path("kernels.json", path, sizeof path));
    return qn_choices_read(path, out);
}
