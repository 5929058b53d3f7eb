/* Measured power: kind,gpu,num_gpus,workload,value,unit,notes,source. */
#include "plan/figures.h"
#include "plan/power.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a workload is busy with; the first text that its name has decides. */
static const struct {
    const char *text;
    double share[QN_POWER_USES];
} workloads[] = {
    { "3b ", { 0, 0, 0.4, 0.3 } }, /* small models wait for launches */
    { "decode", { 0, 0, 1, 0 } },    { "gptj", { 0.3, 0, 0.3, 0.4 } },
    { "dlrm", { 0, 0, 1, 0 } },      { "rnnt", { 0, 0, 0, 1 } },
    { "gnmt", { 0, 0, 0, 1 } },      { "bert", { 1, 0, 0, 0 } },
    { "llama", { 1, 0, 0, 0 } },     { "gpt", { 1, 0, 0, 0 } },
    { "diffusion", { 1, 0, 0, 0 } }, { "mobilenet", { 0, 0.5, 0.5, 0 } },
    { "", { 0, 1, 0, 0 } }, /* images */
};

static QnPowerHost host_of(const char *kind, const char *notes, const QnCard *card)
{
    if (strstr(kind, "gpu"))
        return QN_POWER_BOARD;
    if (!strcmp(card->kind, "edge"))
        return QN_POWER_MODULE;
    if (strstr(notes, "PC (") || strstr(notes, "workstation") || strstr(notes, "_PC_"))
        return QN_POWER_DESKTOP;
    if (strstr(notes, "aarch64") || strstr(notes, "Station"))
        return QN_POWER_SMALL;
    return QN_POWER_SERVER;
}

/* "8 node(s)" in the workload; "400 W limit" in the notes. */
static void read_notes(const char *workload, const char *notes, QnPowerRequest *r)
{
    const char *nodes = strstr(workload, "; "), *limit = strstr(notes, " W limit");
    r->nodes = nodes ? QN_MAX(1, atoi(nodes + 2)) : 1;
    r->cap = strstr(notes, "MaxQ") ? 0 : 1;
    while (limit && limit > notes && limit[-1] >= '0' && limit[-1] <= '9')
        limit--;
    if (limit && atof(limit) > 0 && r->card->tdp_w > 0)
        r->cap = atof(limit) / r->card->tdp_w;
}

static QnStatus read_figure(QnFigures *s, int64_t row, QnFigure *out)
{
    const char *kind = qn_figures_cell(s, row, "kind"), *notes = qn_figures_cell(s, row, "notes");
    const char *workload = qn_figures_cell(s, row, "workload");
    QnPowerRequest r = { .direct = strstr(kind, "DC") != NULL };
    double n;
    QN_TRY(qn_figures_number(s, row, "num_gpus", 1, &n));
    QN_TRY(qn_figures_number(s, row, "value", 0, &out->measured));
    if (n < 1 || n > 1e6)
        return qn_fail(QN_EFORMAT, "%s:%lld: num_gpus must be 1 to a million", s->table.path,
                       (long long)out->line);
    out->gpu = qn_figures_cell(s, row, "gpu");
    out->unit = "W";
    out->group = kind;
    snprintf(out->name, sizeof out->name, "%.32s x%g %.60s", out->gpu, n, workload);
    if (strcmp(qn_figures_cell(s, row, "unit"), "W") != 0)
        out->reason = "no model of this unit";
    else if (qn_catalogue_find(s->catalogue, out->gpu, &r.card) != QN_OK)
        out->reason = "the device is not in the catalogue";
    else if (!(r.card->tdp_w > 0))
        out->reason = "the data sheet has no power";
    if (out->reason)
        return QN_OK;
    r.n = (int)n;
    r.host = host_of(kind, notes, r.card);
    read_notes(workload, notes, &r);
    r.fed = !strstr(workload, "decode");
    int at = 0;
    while (!strstr(workload, workloads[at].text))
        at++;
    memcpy(r.share, workloads[at].share, sizeof r.share);
    if (strstr(workload, "train")) { /* in 16 bits and back: maps fill the gaps between products */
        r.share[QN_POWER_PRODUCTS] += r.share[QN_POWER_CONV];
        r.share[QN_POWER_CONV] = 0;
    }
    out->model = workloads[at].text[0] ? workloads[at].text : "images";
    out->job = qn_arena_copy(s->arena, &r, sizeof r);
    return out->job ? QN_OK : QN_ENOMEM;
}

static double predict(const QnFigures *s, const void *at, const QnFleet *f)
{
    QnPowerRequest r = *(const QnPowerRequest *)at;
    (void)s;
    if (!(r.cap > 0)) /* tuned for the most work by energy */
        r.cap = r.host == QN_POWER_MODULE ? qn_power_frugal_module(r.card, f)
                                          : f->x[QN_FLEET_POWER_FRUGAL];
    else if (r.host == QN_POWER_MODULE)
        r.cap *= f->x[QN_FLEET_POWER_OPEN_MODULE];
    return qn_power_w(&r, f);
}

const QnFigureKind qn_figures_power = { .name = "power",
                                        .columns = "kind,gpu,num_gpus,workload,value,unit,notes",
                                        .first = QN_FLEET_POWER_IDLE,
                                        .last = QN_FLEET_POWER_SPREAD,
                                        .spread = QN_FLEET_POWER_SPREAD,
                                        .goal = 0.12,
                                        .read = read_figure,
                                        .predict = predict };
