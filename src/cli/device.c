/* The device that a command's options ask for. */
#include "api/best.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

QnStatus qn_cli_open_device(const QnDeviceWish *w, int64_t n_threads, bool strict, QnDevice **out)
{
    QnDeviceOptions o = { .n_threads = (int)n_threads,
                          .strict = strict,
                          .memory_bytes = w->memory_bytes };
    QnStr why = { 0 };
    if (!w->name || strcmp(w->name, "auto") != 0)
        return qn_device_open_named(w->name, &o, out);
    QnStatus st = qn_device_open_best(&o, out, &why);
    if (st == QN_OK && w->log)
        qn_log_info(w->log, "--device auto: %s", qn_str_text(&why));
    qn_str_fini(&why);
    return st;
}

QnStatus qn_cli_device(const char *name, int64_t n_threads, bool strict, QnDevice **out)
{
    return qn_cli_open_device(&(QnDeviceWish){ .name = name }, n_threads, strict, out);
}

QnStatus qn_cli_bytes(const QnArgs *a, int option, int64_t *out)
{
    static const char units[] = "KMGT";
    const char *text = a->text[option];
    char *end;
    *out = 0;
    if (!text)
        return QN_OK;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (end == text || end[unit ? 1 : 0] || errno || n < 1 || n > INT64_MAX >> shift)
        return qn_fail(QN_EUSAGE, "%s: expected a number of bytes, such as 6G or 512M, found '%s'",
                       a->command->options[option].name, text);
    *out = n << shift;
    return QN_OK;
}
