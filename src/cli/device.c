/* The device that a command's options ask for. */
#include "api/best.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the device lacks, if that is to be known. */
static void warn(QnDevice *d, const QnLog *log)
{
    QnDeviceInfo i;
    if (qn_device_info(d, &i) == QN_OK && i.lacks)
        qn_log_warn(log, "%s: %s", i.name, i.lacks);
}

QnStatus qn_cli_open_device(const QnDeviceWish *w, int64_t n_threads, bool strict, QnDevice **out)
{
    QnDeviceOptions o = { .n_threads = (int)n_threads,
                          .strict = strict,
                          .memory_bytes = w->memory_bytes };
    QnStr why = { 0 };
    bool is_auto = w->name && strcmp(w->name, "auto") == 0;
    QnStatus st =
        is_auto ? qn_device_open_best(&o, out, &why) : qn_device_open_named(w->name, &o, out);
    if (st == QN_OK && w->log && is_auto)
        qn_log_info(w->log, "--device auto: %s", qn_str_text(&why));
    if (st == QN_OK && w->log)
        warn(*out, w->log);
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
