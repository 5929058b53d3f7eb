#include "base/term.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { REDRAW_NS = 100 * 1000 * 1000 };

bool qn_term_is_tty(FILE *out)
{
    return isatty(fileno(out)) == 1;
}

bool qn_term_color(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return qn_term_is_tty(out) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

int qn_term_width(FILE *out)
{
    struct winsize size;
    if (qn_term_is_tty(out) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    return n >= 20 && n <= 1000 ? n : 80;
}

bool qn_term_unicode(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (int i = 0; i < QN_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value && value[0]) /* the first one set decides */
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

void qn_term_bar(QnStr *out, double fraction, int columns, bool unicode)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    fraction = fraction > 0 ? QN_MIN(fraction, 1.0) : 0; /* also for NaN */
    int units = (int)(fraction * columns * 8 + 0.5), full = units / 8;
    if (unicode) {
        qn_str_add_repeat(out, "█", full);
        qn_str_add(out, eighths[units % 8]);
        qn_str_add_repeat(out, " ", columns - full - (units % 8 != 0));
    } else {
        qn_str_add_repeat(out, "#", full);
        qn_str_add_repeat(out, " ", columns - full);
    }
}

void qn_term_progress_init(QnTermProgress *p, FILE *out, int64_t total, int64_t warmup,
                           int64_t now_ns)
{
    *p = (QnTermProgress){ .out = out,
                           .tty = qn_term_is_tty(out),
                           .unicode = qn_term_unicode(),
                           .width = qn_term_width(out),
                           .total = total,
                           .warmup = QN_MIN(warmup, total / 2),
                           .start_ns = now_ns,
                           .warm_at = -1,
                           .drawn_ns = INT64_MIN };
}

int64_t qn_term_progress_eta_ns(const QnTermProgress *p, int64_t done, int64_t now_ns)
{
    if (done >= p->total)
        return 0;
    if (p->warm_at < 0 || done <= p->warm_at)
        return -1;
    double per_step = (double)(now_ns - p->warm_ns) / (double)(done - p->warm_at);
    return (int64_t)(per_step * (double)(p->total - done));
}

/* Cuts the text behind so many columns. */
static void cut(QnStr *text, int64_t columns)
{
    for (size_t i = 0; i < text->n; i++) {
        if ((text->s[i] & 0xc0) != 0x80 && columns-- <= 0) {
            text->s[i] = '\0';
            text->n = i;
        }
    }
}

/* "[bar] 45% 120/400 text, 12 s left", fitted to the width. */
static void draw(QnTermProgress *p, int64_t done, const char *text, int64_t now_ns)
{
    char number[QN_STR_NUMBER];
    double fraction = p->total > 0 ? (double)done / (double)p->total : 1;
    int64_t eta = qn_term_progress_eta_ns(p, done, now_ns);
    QnStr tail = { 0 }, line = { 0 }, time = { 0 };
    qn_str_printf(&tail, " %3d%%", (int)(fraction * 100));
    if (!p->hide_count)
        qn_str_printf(&tail, " %lld/%lld", (long long)done, (long long)p->total);
    if (text && text[0])
        qn_str_printf(&tail, "  %s", text);
    if (done >= p->total)
        qn_str_printf(&time, "  %s", qn_str_duration(number, now_ns - p->start_ns));
    else if (eta >= 0)
        qn_str_printf(&time, "  %s left", qn_str_duration(number, eta));
    if (p->tty) /* a line that wraps could not be redrawn; the time matters more than the text */
        cut(&tail, QN_MAX(p->width - 1 - qn_str_columns(qn_str_text(&time)), 5));
    qn_str_add(&tail, qn_str_text(&time));
    if (p->tty) {
        cut(&tail, p->width - 1);
        int64_t room = p->width - 1 - qn_str_columns(qn_str_text(&tail));
        qn_str_add(&line, "\r");
        if (room >= 6) {
            qn_str_add(&line, p->unicode ? "▕" : "[");
            qn_term_bar(&line, fraction, (int)QN_MIN(room - 2, 30), p->unicode);
            qn_str_add(&line, p->unicode ? "▏" : "]");
        }
        qn_str_add(&line, qn_str_text(&tail));
        qn_str_add(&line, "\033[K"); /* what a longer line left behind */
    } else {
        qn_str_printf(&line, "%s\n", qn_str_text(&tail) + 1);
    }
    if (line.st == QN_OK) /* no memory for a progress line is no reason to stop */
        fputs(qn_str_text(&line), p->out);
    fflush(p->out);
    qn_str_fini(&tail);
    qn_str_fini(&time);
    qn_str_fini(&line);
}

void qn_term_progress_step(QnTermProgress *p, int64_t done, const char *text, int64_t now_ns)
{
    if (p->warm_at < 0 && done >= p->warmup) {
        p->warm_at = done;
        p->warm_ns = now_ns;
    }
    if (p->tty) {
        bool due = p->drawn_ns == INT64_MIN || now_ns - p->drawn_ns >= REDRAW_NS;
        if (!due && done < p->total)
            return;
    } else {
        int64_t tenths = p->total > 0 ? done * 10 / p->total : 10;
        if (tenths <= p->tenths)
            return;
        p->tenths = tenths;
    }
    p->drawn_ns = now_ns;
    draw(p, done, text, now_ns);
}

void qn_term_progress_end(QnTermProgress *p)
{
    if (p->tty && p->drawn_ns != INT64_MIN)
        fputc('\n', p->out);
    fflush(p->out);
}

void qn_term_progress_hide(QnTermProgress *p)
{
    if (p->tty && p->drawn_ns != INT64_MIN)
        fputs("\r\033[K", p->out);
    fflush(p->out);
    p->drawn_ns = INT64_MIN;
}
