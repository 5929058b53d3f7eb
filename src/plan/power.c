#include "plan/power.h"

#include <math.h>
#include <string.h>

#define AWAKE 0.15 /* of what lies between idle and the limit: clocks are up, and nothing runs */

double qn_power_clock(double cap)
{
    return cap >= 1 ? 1 : pow(QN_MAX(cap, 0.1), 1 / 2.2);
}

double qn_power_frugal_module(const QnCard *card, const QnFleet *f)
{
    return QN_MIN(1, f->x[QN_FLEET_POWER_FRUGAL_MODULE] * pow(30 / QN_MAX(card->tdp_w, 1), 0.6));
}

/* One device: idle, and the rest by what it is busy with. */
static double device_w(const QnPowerRequest *r, const double *x)
{
    double limit = r->card->tdp_w * r->cap, idle = r->card->tdp_w * x[QN_FLEET_POWER_IDLE];
    double use = AWAKE * r->waits;
    for (int i = 0; i < QN_POWER_USES; i++)
        use += r->share[i] * x[QN_FLEET_POWER_PRODUCTS + i];
    if (r->nodes > 1)
        use *= 1 - QN_MIN(0.6, x[QN_FLEET_POWER_WAIT] * log2(r->nodes));
    return idle + QN_MAX(0, limit - idle) * use;
}

/* Processors, memory, disks, network cards and switches, and fans, which follow the heat. */
static double host_w(const QnPowerRequest *r, const double *x, double devices)
{
    bool switched = strstr(r->card->link, "Switch") || strstr(r->card->link, "NVL72");
    double of_each = x[switched ? QN_FLEET_POWER_EACH_SWITCHED : QN_FLEET_POWER_EACH];
    double server = x[QN_FLEET_POWER_SERVER] + r->n * of_each;
    switch (r->host) {
    case QN_POWER_BOARD: return 0;
    case QN_POWER_MODULE: return x[QN_FLEET_POWER_MODULE] * r->card->tdp_w;
    case QN_POWER_DESKTOP:
        return x[QN_FLEET_POWER_DESKTOP] + r->n * r->fed * x[QN_FLEET_POWER_FEED];
    case QN_POWER_SMALL: return x[QN_FLEET_POWER_SMALL] * server;
    case QN_POWER_SERVER: break;
    }
    return server + x[QN_FLEET_POWER_FANS] * devices;
}

double qn_power_w(const QnPowerRequest *r, const QnFleet *f)
{
    double devices = r->n * device_w(r, f->x);
    if (!(r->card->tdp_w > 0))
        return 0;
    double all = devices + host_w(r, f->x, devices);
    return r->direct ? all * (1 - f->x[QN_FLEET_POWER_SUPPLY]) : all;
}
