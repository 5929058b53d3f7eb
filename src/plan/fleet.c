#include "plan/fleet.h"

#include "plan/table.h"
#include "plan/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Row {
    const char *name;
    double start, min, max;
} Row;

static const char *const kinds[QN_LINK_KINDS] = { "switch", "mesh", "pcie", "host", "network" };

static const Row of_link[QN_LINK_COEFS] = {
    { "share", 0.8, 0.1, 1 },    { "floor_us", 30, 1, 200 },    { "hop_us", 6, 0.1, 100 },
    { "ramp_us", 12, 0.1, 200 }, { "ramp_power", 0.7, 0.2, 2 },
};

/* In the order of the enum, from QN_FLEET_REDUCE on. */
static const Row others[QN_FLEET_COUNT - QN_FLEET_REDUCE] = {
    { "switch.reduce", 0.6, 0.2, 1 },
    { "comm.spread", 0.15, 0.02, 2 },
    { "parallel.gemm", 0.8, 0.2, 0.9 },
    { "parallel.half_depth", 64, 1, 1024 },
    { "parallel.attention", 0.4, 0.05, 1 },
    { "parallel.move", 0.7, 0.1, 1 },
    { "parallel.scores", 12, 1, 60 },
    { "parallel.tail_us", 4, 0.1, 12 },
    { "parallel.launch_us", 30, 1, 200 },
    { "parallel.tensor_us", 60, 1, 1000 },
    { "parallel.tensor_power", 1, 0.1, 3 },
    { "parallel.batch_us", 1000, 1, 50000 },
    { "parallel.step_us", 10000, 1, 200000 },
    { "parallel.tensor", 1, 0.3, 4 },
    { "parallel.network", 0.6, 0.05, 1 },
    { "parallel.exposed", 0.8, 0.05, 1 },
    { "parallel.spread", 0.15, 0.02, 2 },
    { "power.idle", 0.12, 0.03, 0.3 },
    { "power.products", 0.95, 0.2, 1.1 },
    { "power.conv", 0.8, 0.2, 1.1 },
    { "power.memory", 0.85, 0.2, 1.1 },
    { "power.launch", 0.6, 0.1, 1.1 },
    { "power.frugal", 0.75, 0.3, 1 },
    { "power.frugal_module", 0.5, 0.1, 1 },
    { "power.open_module", 1.2, 0.8, 2 },
    { "power.wait", 0.05, 0.001, 0.2 },
    { "power.supply", 0.03, 0.005, 0.1 },
    { "power.fans", 0.1, 0.005, 0.3 },
    { "power.module", 0.2, 0.01, 1 },
    { "power.desktop_w", 75, 30, 200 },
    { "power.feed_w", 50, 5, 200 },
    { "power.small", 0.5, 0.1, 1 },
    { "power.server_w", 200, 50, 800 },
    { "power.each_w", 60, 5, 200 },
    { "power.each_switched_w", 120, 20, 300 },
    { "power.spread", 0.15, 0.02, 2 },
    { "memory.images", 1.1, 0.5, 2 },
    { "memory.tokens", 2, 0.5, 4 },
    { "memory.scores", 2, 0.5, 8 },
    { "memory.detection_gb", 0.4, 0.05, 2 },
    { "memory.context_gb", 0.8, 0.2, 2 },
    { "memory.workspace_gb", 0.5, 0.05, 4 },
    { "memory.slack", 0.05, 0.005, 0.2 },
    { "memory.kept", 0.5, 0.01, 1 },
    { "memory.spread", 0.15, 0.02, 2 },
};

QnFleetInfo qn_fleet_info(int i)
{
    QnFleetInfo info = { .name = "" };
    const Row *row;
    if (i < QN_FLEET_REDUCE) {
        row = &of_link[i % QN_LINK_COEFS];
        snprintf(info.name, sizeof info.name, "%s.%s", kinds[i / QN_LINK_COEFS], row->name);
    } else {
        row = &others[i - QN_FLEET_REDUCE];
        snprintf(info.name, sizeof info.name, "%s", row->name);
    }
    info.start = row->start;
    info.min = row->min;
    info.max = row->max;
    if (i < QN_FLEET_REDUCE && i % QN_LINK_COEFS == QN_LINK_SHARE)
        info.start = i / QN_LINK_COEFS == QN_LINK_HOST ? 0.35 : info.start;
    return info;
}

void qn_fleet_start(QnFleet *f)
{
    for (int i = 0; i < QN_FLEET_COUNT; i++)
        f->x[i] = qn_fleet_info(i).start;
}

static QnTableRange range_of(int i)
{
    QnFleetInfo info = qn_fleet_info(i);
    QnTableRange r = { .start = info.start, .min = info.min, .max = info.max };
    snprintf(r.name, sizeof r.name, "%s", info.name);
    return r;
}

QnStatus qn_fleet_parse(QnFleet *f, const char *path, const char *text, size_t bytes)
{
    qn_fleet_start(f);
    return qn_table_values(path, text, bytes, QN_FLEET_COUNT, range_of, f->x);
}

QnStatus qn_fleet_open(QnFleet *f)
{
    return qn_fleet_parse(f, "plan/fleet.csv", qn_plan_text_fleet, strlen(qn_plan_text_fleet));
}

/* ---- the fit ---- */

/* A factor of e away from the start weighs as much as half a row that is altogether wrong. */
static double pull(const QnFleetInfo *info, double x)
{
    double off = log(x / info->start);
    return 0.5 * off * off;
}

void qn_fleet_descend(QnFleet *f, int first, int last, int sweeps,
                      double (*loss)(void *ctx, const QnFleet *f), void *ctx)
{
    double step[QN_FLEET_COUNT], best = loss(ctx, f);
    for (int i = first; i < last; i++)
        step[i] = 1.3;
    for (int sweep = 0; sweep < sweeps; sweep++) {
        for (int i = first; i < last; i++) {
            QnFleetInfo info = qn_fleet_info(i);
            double before = f->x[i];
            bool better = false;
            for (int up = 1; up >= 0 && !better; up--) {
                double x =
                    QN_MIN(QN_MAX(up ? before * step[i] : before / step[i], info.min), info.max);
                f->x[i] = x;
                double now = x == before ? best : loss(ctx, f);
                double gain = best - now + pull(&info, before) - pull(&info, x);
                better = x != before && gain > 1e-9;
                if (better)
                    best = now;
            }
            if (!better)
                f->x[i] = before;
            step[i] = better ? QN_MIN(step[i] * step[i], 2) : sqrt(step[i]);
        }
    }
}
