/* Measured collectives: gpu,num_gpus,bytes,time_ns,busbw_gbs. */
#include "plan/comm.h"
#include "plan/figures.h"

#include <stdio.h>
#include <string.h>

typedef struct Job {
    QnLinks links;
    int n;
    double bytes;
} Job;

/* "A100 SXM4", "H200 SXM (8; single node; peak)": what the catalogue's first such name begins
 * with, without what stands in brackets. */
static const QnCard *find_card(const QnCatalogue *c, const char *name)
{
    size_t n = strcspn(name, "(");
    while (n && name[n - 1] == ' ')
        n--;
    for (int i = 0; n && i < c->n_cards; i++)
        if (!strncmp(c->cards[i].name, name, n))
            return &c->cards[i];
    return NULL;
}

static QnStatus read_figure(QnFigures *s, int64_t row, QnFigure *out)
{
    double n, bytes, ns, rate;
    QN_TRY(qn_figures_number(s, row, "num_gpus", 0, &n));
    QN_TRY(qn_figures_number(s, row, "bytes", 0, &bytes));
    QN_TRY(qn_figures_number(s, row, "time_ns", 0, &ns));
    QN_TRY(qn_figures_number(s, row, "busbw_gbs", 0, &rate));
    out->gpu = qn_figures_cell(s, row, "gpu");
    out->model = bytes > 1048576 ? "above 1 MiB" : bytes > 0 ? "to 1 MiB" : "peak rate";
    out->group = n <= 2 ? "2 devices" : n <= 4 ? "3 and 4 devices" : "5 and more devices";
    out->unit = "us";
    snprintf(out->name, sizeof out->name, "%.40s x%g %.4g MiB", out->gpu, n, bytes / 1048576);
    if (!(n >= 2 && n <= 1e6))
        return qn_fail(QN_EFORMAT, "%s:%lld: num_gpus must be 2 to a million", s->table.path,
                       (long long)out->line);
    const QnCard *card = find_card(s->catalogue, out->gpu);
    if (bytes == 0) { /* the best that was seen: with 8 GB it is reached */
        bytes = 8e9;
        ns = rate > 0 ? 2 * (n - 1) / n * bytes / rate : 0;
    }
    out->measured = 1e-3 * ns;
    if (!card) {
        out->reason = "the device is not in the catalogue";
        return QN_OK;
    }
    Job job = { qn_links_of(card, 0), (int)n, bytes };
    out->job = qn_arena_copy(s->arena, &job, sizeof job);
    return out->job ? QN_OK : QN_ENOMEM;
}

static double predict(const QnFigures *s, const void *at, const QnFleet *f)
{
    const Job *j = at;
    (void)s;
    return 1e6 * qn_comm_s(&j->links, f, QN_COMM_ALL_REDUCE, j->n, j->n, j->bytes);
}

const QnFigureKind qn_figures_comm = { .name = "all-reduce",
                                       .columns = "gpu,num_gpus,bytes,time_ns,busbw_gbs",
                                       .first = QN_FLEET_LINK,
                                       .last = QN_FLEET_COMM_SPREAD,
                                       .spread = QN_FLEET_COMM_SPREAD,
                                       .goal = 0.15,
                                       .read = read_figure,
                                       .predict = predict };
