/* What devices and the machine around them draw. */
#ifndef QN_PLAN_POWER_H
#define QN_PLAN_POWER_H

#include "plan/fleet.h"

/* What is measured besides the devices. */
typedef enum QnPowerHost {
    QN_POWER_BOARD,   /* nothing: the board's own sensor */
    QN_POWER_MODULE,  /* a module on its carrier board, at the plug */
    QN_POWER_DESKTOP, /* a PC at the plug */
    QN_POWER_SMALL,   /* a server with little besides its devices: quiet, or an Arm one */
    QN_POWER_SERVER,
} QnPowerHost;

/* What the devices wait for or are busy with. */
typedef enum QnPowerUse {
    QN_POWER_PRODUCTS, /* dense products, as transformers have */
    QN_POWER_CONV,     /* convolutions: products, and maps that memory bounds */
    QN_POWER_MEMORY,   /* the memory's bandwidth */
    QN_POWER_LAUNCH,   /* launches, small steps one after the other */
    QN_POWER_USES
} QnPowerUse;

typedef struct QnPowerRequest {
    const QnCard *card;
    int n;
    QnPowerHost host;
    double share[QN_POWER_USES]; /* of the time; the rest is asleep */
    double waits; /* share of the time awake with nothing to do: the host or the links are late */
    double cap;   /* power limit over the data sheet's; 1: none */
    int nodes;    /* that work together, where it is not known how long they wait: else 1 */
    double fed;   /* share of the time that the host's processors work for each device: images
                   * decoded, queries served */
    bool direct;  /* measured behind the power supply */
} QnPowerRequest;

/* Watts of one machine with its n devices; 0: the data sheet has no power. */
double qn_power_w(const QnPowerRequest *r, const QnFleet *f);
/* Limit, as a share of the data sheet's, of a module in its frugal mode: larger modules of a
 * generation have the same silicon at higher clocks, so their frugal modes are alike in watts. */
double qn_power_frugal_module(const QnCard *card, const QnFleet *f);
/* Share of its clock that a device under this share of its power limit keeps, when the work would
 * fill the limit: power is the clock times voltage squared, and voltage follows the clock between
 * the least and the most that it has. */
double qn_power_clock(double cap);

#endif
