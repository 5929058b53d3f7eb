/* How long collectives take: alpha-beta models of rings, trees and two levels of them. */
#ifndef QN_PLAN_COMM_H
#define QN_PLAN_COMM_H

#include "plan/fleet.h"

typedef enum QnCollective {
    QN_COMM_ALL_REDUCE,
    QN_COMM_REDUCE_SCATTER,
    QN_COMM_ALL_GATHER, /* bytes: of the whole, as of the reduce-scatter */
    QN_COMM_ALL_TO_ALL, /* bytes: what one device holds, and sends but for its own part */
    QN_COMM_SEND,       /* to one neighbour */
    QN_COLLECTIVES
} QnCollective;

typedef struct QnLinks {
    QnLinkKind kind;
    double rate;      /* bytes a second and direction of a device inside a node */
    double link_rate; /* of one link of a mesh */
    double pcie;      /* bytes a second, what a bridge of few does not reach */
    double network;   /* bytes a second of a device to other nodes */
    int per_node;     /* devices that share the fast links */
    int bridged;      /* devices that a bridge joins, 0: none */
    bool reduces;     /* the switch adds up on the way */
} QnLinks;

/* By the catalogue's text. network_gbs: GB/s of one device's share of the node's network cards; 0:
 * what nodes of its time have. */
QnLinks qn_links_of(const QnCard *card, double network_gbs);

/* n devices, `local` of them in each node; at most what per_node says. */
double qn_comm_s(const QnLinks *l, const QnFleet *f, QnCollective what, int n, int local,
                 double bytes);
/* All-reduce of `bytes` after compression to 1/factor, which costs two passes at memory_rate. */
double qn_comm_compressed_s(const QnLinks *l, const QnFleet *f, int n, int local, double bytes,
                            double factor, double memory_rate);

/* Rings that n devices of the hybrid cube-mesh carry at once, 0 to 6: disjoint directed cycles. */
int qn_mesh_rings(int n);

#endif
