/* The terminal: what it can do, and a progress line. Charts are in base/chart.h. */
#ifndef QN_BASE_TERM_H
#define QN_BASE_TERM_H

#include "base/str.h"

#include <stdio.h>

bool qn_term_is_tty(FILE *out);
bool qn_term_color(FILE *out); /* a terminal, not TERM=dumb, and NO_COLOR unset or empty */
int qn_term_width(FILE *out);  /* columns; COLUMNS or 80 where it is not a terminal */
bool qn_term_unicode(void);    /* the locale's variables ask for UTF-8 */

/* Progress over `total` steps. The first steps (loading, tuning, page faults) are slow and left out
 * of the estimate. On a terminal one line is redrawn, at most ten times a second; elsewhere a plain
 * line is written for each tenth of the way. */
typedef struct QnTermProgress {
    FILE *out;
    bool tty, unicode;
    int width;
    int64_t total, warmup;    /* steps; the first `warmup` do not count */
    int64_t start_ns;         /* when the first step began */
    int64_t warm_ns, warm_at; /* when warm-up ended, and after how many steps */
    int64_t drawn_ns, tenths;
    bool hide_count; /* leave out "done/total": the steps are of several kinds */
} QnTermProgress;

/* Times are of qn_clock_ns; passing them in keeps this testable. */
void qn_term_progress_init(QnTermProgress *p, FILE *out, int64_t total, int64_t warmup,
                           int64_t now_ns);
/* `done` steps are done; `text` (loss, samples/s) follows the bar. */
void qn_term_progress_step(QnTermProgress *p, int64_t done, const char *text, int64_t now_ns);
void qn_term_progress_end(QnTermProgress *p);  /* leaves the line standing */
void qn_term_progress_hide(QnTermProgress *p); /* wipes it, before other output */
/* Nanoseconds to go, or -1 while there is nothing to judge by. */
int64_t qn_term_progress_eta_ns(const QnTermProgress *p, int64_t done, int64_t now_ns);

/* `fraction` of `columns`, to an eighth of a column in Unicode: "██████▌   " or "######    ". */
void qn_term_bar(QnStr *out, double fraction, int columns, bool unicode);

#endif
