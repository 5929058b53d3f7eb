#include "plan/comm.h"

#include <math.h>
#include <string.h>

/* ---- what joins the devices ---- */

static double pcie_rate(const QnCard *card)
{
    double gen = card->pcie_gen > 0 ? card->pcie_gen : 3;
    double rate = 15.75e9 * exp2(gen - 3);
    return strstr(card->link, "x8") ? rate / 2 : rate;
}

/* One device's share of the network cards of a node: 100 Gb/s for the node until 2018, one card of
 * 200 then 400 Gb/s for each device of the machines that are made for training. */
static double network_rate(const QnCard *card)
{
    bool big = strstr(card->link, "NVSwitch") || strstr(card->link, "NVL72") ||
               strstr(card->link, "mesh") || strstr(card->link, "RoCE") ||
               strstr(card->link, "ICI");
    if (!big)
        return 12.5e9 / 8;
    return card->year >= 2022 ? 50e9 : card->year >= 2020 ? 25e9 : 12.5e9 / 2;
}

QnLinks qn_links_of(const QnCard *card, double network_gbs)
{
    const char *text = card->link ? card->link : "";
    QnLinks l = {
        .kind = QN_LINK_PCIE, .rate = 1e9 * card->link_gbs, .pcie = pcie_rate(card), .per_node = 8
    };
    l.network = network_gbs > 0 ? 1e9 * network_gbs : network_rate(card);
    if (strstr(text, "bridge")) {
        l.bridged = strstr(text, "4-way") ? 4 : 2;
    } else if (strstr(text, "Switch") || strstr(text, "NVL72")) {
        l.kind = QN_LINK_SWITCH;
        l.reduces = card->year >= 2022;
        l.per_node = strstr(text, "NVL72") ? 72 : strstr(text, "SXM3") ? 16 : 8;
    } else if (!strncmp(text, "NVLink", 6) && !strstr(text, "C2C")) {
        l.kind = QN_LINK_MESH;
        l.link_rate = strstr(text, "NVLink1") ? 20e9 : 25e9;
    } else if (strstr(text, "Infinity Fabric") || strstr(text, "RoCE") || strstr(text, "Xe Link")) {
        l.kind = QN_LINK_SWITCH;
    } else if (strstr(text, "ICI")) {
        l.kind = QN_LINK_SWITCH;
        l.per_node = 256;
    } else if (strstr(text, "C2C") || strstr(text, "unified")) {
        l.per_node = 1;
    } else if (strstr(text, "P2P disabled") ||
               (!strcmp(card->kind, "consumer") && card->year >= 2018)) {
        l.kind = QN_LINK_HOST; /* GeForce cards from Turing on have no peer to peer over PCIe */
    }
    if (!(l.rate > 0))
        l.rate = l.pcie;
    return l;
}

/* ---- one level ---- */

/* A ring, or what is as fast: `volume` bytes through each device, in `hops` steps. */
static double level_s(const double *k, double rate, int hops, double volume)
{
    double lat = 1e-6 * (k[QN_LINK_FLOOR_US] + k[QN_LINK_HOP_US] * (hops - 1));
    double wire = volume / rate;
    if (!(wire > 0))
        return lat;
    double ramp = pow(1e-6 * k[QN_LINK_RAMP_US] / wire, k[QN_LINK_RAMP_POWER]);
    double move = wire / k[QN_LINK_SHARE] * (1 + ramp);
    return pow(pow(lat, 1.4) + pow(move, 1.4), 1 / 1.4);
}

/* What one device sends in all, by bytes of the message. */
static double volume_of(QnCollective what, double n, double bytes)
{
    switch (what) {
    case QN_COMM_ALL_REDUCE: return 2 * (n - 1) / n * bytes;
    case QN_COMM_SEND: return bytes;
    default: return (n - 1) / n * bytes;
    }
}

static const double *link_of(const QnFleet *f, QnLinkKind kind)
{
    return f->x + QN_FLEET_LINK + (int)kind * QN_LINK_COEFS;
}

/* qn_mesh_rings searches for them; a test compares. */
static const int mesh_rings[9] = { 1, 1, 1, 2, 4, 2, 2, 4, 6 };

static double local_s(const QnLinks *l, const QnFleet *f, QnCollective what, int n, double bytes)
{
    QnLinkKind kind = l->kind;
    double rate = l->rate, volume = volume_of(what, n, bytes);
    int hops = what == QN_COMM_SEND ? 1 : n - 1;
    if (l->bridged && n > l->bridged)
        rate = l->pcie;
    if (kind == QN_LINK_MESH)
        rate = l->link_rate * (what == QN_COMM_SEND ? 1 : mesh_rings[QN_MIN(n, 8)]);
    double s = level_s(link_of(f, kind), rate, hops, volume);
    if (l->reduces && what == QN_COMM_ALL_REDUCE) {
        const double *k = link_of(f, kind);
        double in_switch = 1e-6 * k[QN_LINK_FLOOR_US] + bytes / (rate * f->x[QN_FLEET_REDUCE]);
        s = QN_MIN(s, in_switch);
    }
    return s;
}

/* Between nodes, each with one device of the group or a ring for each of its devices. */
static double network_s(const QnLinks *l, const QnFleet *f, QnCollective what, int nodes,
                        double bytes)
{
    const double *k = link_of(f, QN_LINK_NETWORK);
    double ring =
        level_s(k, l->network, what == QN_COMM_SEND ? 1 : nodes - 1, volume_of(what, nodes, bytes));
    if (what != QN_COMM_ALL_REDUCE || nodes < 4)
        return ring;
    /* two trees, each for half of the message: every device sends it up and down once */
    int depth = 2 * (int)ceil(log2(nodes));
    return QN_MIN(ring, level_s(k, l->network, depth, 2 * bytes));
}

/* ---- collectives ---- */

/* Chunks of a message are in one level while others are in the next: the slower level decides, and
 * filling the chain costs some of the other. */
static double pipelined(double a, double b)
{
    return QN_MAX(a, b) + 0.15 * QN_MIN(a, b);
}

double qn_comm_s(const QnLinks *l, const QnFleet *f, QnCollective what, int n, int local,
                 double bytes)
{
    if (n <= 1 || !(bytes > 0))
        return 0;
    local = QN_MAX(1, QN_MIN(QN_MIN(local, l->per_node), n));
    int nodes = (n + local - 1) / local;
    if (nodes <= 1)
        return local_s(l, f, what, n, bytes);
    if (local == 1 || what == QN_COMM_SEND)
        return network_s(l, f, what, nodes, bytes);
    switch (what) {
    case QN_COMM_ALL_REDUCE: /* scatter inside, reduce across with a part each, gather inside */
        return pipelined(local_s(l, f, QN_COMM_REDUCE_SCATTER, local, bytes) +
                             local_s(l, f, QN_COMM_ALL_GATHER, local, bytes),
                         network_s(l, f, what, nodes, bytes / local));
    case QN_COMM_ALL_TO_ALL: {
        /* what goes to other nodes leaves through each device's own part of the network */
        double out = bytes * (nodes - 1) / nodes, in = bytes / nodes;
        return QN_MAX(level_s(link_of(f, QN_LINK_NETWORK), l->network, nodes - 1, out),
                      local_s(l, f, what, local, in));
    }
    default: return local_s(l, f, what, local, bytes) + network_s(l, f, what, nodes, bytes / local);
    }
}

double qn_comm_compressed_s(const QnLinks *l, const QnFleet *f, int n, int local, double bytes,
                            double factor, double memory_rate)
{
    double pack = factor > 1 ? 2 * (bytes + bytes / factor) / memory_rate : 0;
    return pack + qn_comm_s(l, f, QN_COMM_ALL_REDUCE, n, local, bytes / QN_MAX(factor, 1));
}
