/* The coefficients of the models of many devices: collectives, parallel training, memory by
 * software stack, power. plan/fleet.csv holds them, as `quern plan --fit` prints them. */
#ifndef QN_PLAN_FLEET_H
#define QN_PLAN_FLEET_H

#include "plan/device.h"

/* How data goes from device to device. */
typedef enum QnLinkKind {
    QN_LINK_SWITCH,  /* every device at full rate with every other: NVSwitch, full meshes, tori */
    QN_LINK_MESH,    /* NVLink without a switch: the hybrid cube-mesh of eight */
    QN_LINK_PCIE,    /* peer to peer over PCIe, or a bridge of two */
    QN_LINK_HOST,    /* PCIe through the memory of the host */
    QN_LINK_NETWORK, /* between nodes */
    QN_LINK_KINDS
} QnLinkKind;

enum {                     /* of a kind of link */
       QN_LINK_SHARE,      /* of the rate, by large messages */
       QN_LINK_FLOOR_US,   /* the least that a collective takes */
       QN_LINK_HOP_US,     /* and for each further device */
       QN_LINK_RAMP_US,    /* messages of this length reach half the rate */
       QN_LINK_RAMP_POWER, /* how sharply */
       QN_LINK_COEFS
};

enum {
    QN_FLEET_LINK,
    QN_FLEET_REDUCE = QN_FLEET_LINK + QN_LINK_KINDS * QN_LINK_COEFS, /* all-reduce in the switch */
    QN_FLEET_COMM_SPREAD,
    /* parallel training */
    QN_FLEET_GEMM,         /* share of the rate by deep products, of what an A100's best reach */
    QN_FLEET_HALF_DEPTH,   /* products this deep run at half of it */
    QN_FLEET_ATTENTION,    /* share of the rate */
    QN_FLEET_MOVE,         /* of the memory bandwidth */
    QN_FLEET_SCORES,       /* bytes moved for each score of unfused attention, forward */
    QN_FLEET_TAIL_US,      /* of each kernel: filling and emptying the device */
    QN_FLEET_LAUNCH_US,    /* of each kernel, on the host */
    QN_FLEET_TENSOR_US,    /* of each collective of a tensor group, on the host */
    QN_FLEET_TENSOR_POWER, /* of the other devices in the group, by which that grows */
    QN_FLEET_BATCH_US,     /* of each micro-batch, on the host */
    QN_FLEET_STEP_US,      /* of each step */
    QN_FLEET_TENSOR,       /* factor on the time of a tensor group's collectives */
    QN_FLEET_NETWORK,      /* share of the network's rate, beside other traffic */
    QN_FLEET_EXPOSED,      /* share of the gradients' all-reduce that nothing hides */
    QN_FLEET_PARALLEL_SPREAD,
    /* power, in the order of QnPowerUse: shares of what lies between idle and the limit */
    QN_FLEET_POWER_IDLE, /* share of the data sheet's power */
    QN_FLEET_POWER_PRODUCTS,
    QN_FLEET_POWER_CONV,
    QN_FLEET_POWER_MEMORY,
    QN_FLEET_POWER_LAUNCH,
    QN_FLEET_POWER_FRUGAL,        /* limit at which most is done by energy */
    QN_FLEET_POWER_FRUGAL_MODULE, /* the same of a module */
    QN_FLEET_POWER_OPEN_MODULE,   /* of a module in its fastest mode, over the data sheet's */
    QN_FLEET_POWER_WAIT,          /* less of it with each doubling of the nodes */
    QN_FLEET_POWER_SUPPLY,        /* share that the power supply loses */
    QN_FLEET_POWER_FANS,          /* share of the devices' power */
    QN_FLEET_POWER_MODULE,        /* share of a module's power for its carrier board */
    QN_FLEET_POWER_DESKTOP,
    QN_FLEET_POWER_FEED,  /* and more where its processors prepare the data */
    QN_FLEET_POWER_SMALL, /* share of a server's watts */
    QN_FLEET_POWER_SERVER,
    QN_FLEET_POWER_EACH, /* watts of the host for each device */
    QN_FLEET_POWER_EACH_SWITCHED,
    QN_FLEET_POWER_SPREAD,
    /* memory of eager stacks */
    QN_FLEET_MEMORY_IMAGES,    /* what convolutional nets keep, over what the graph does */
    QN_FLEET_MEMORY_TOKENS,    /* the same of nets of tokens */
    QN_FLEET_MEMORY_SCORES,    /* copies of attention's scores */
    QN_FLEET_MEMORY_DETECTION, /* GB an image, of anchors, proposals and their matching */
    QN_FLEET_MEMORY_CONTEXT,   /* GB */
    QN_FLEET_MEMORY_WORKSPACE, /* GB */
    QN_FLEET_MEMORY_SLACK,     /* share lost between blocks */
    QN_FLEET_MEMORY_KEPT,      /* share of what is free that the allocator keeps, near the limit */
    QN_FLEET_MEMORY_SPREAD,
    QN_FLEET_COUNT
};

typedef struct QnFleet {
    double x[QN_FLEET_COUNT];
} QnFleet;

typedef struct QnFleetInfo {
    char name[40];
    double start, min, max; /* of the fit */
} QnFleetInfo;
QnFleetInfo qn_fleet_info(int i);

void qn_fleet_start(QnFleet *f);
/* The embedded table over the start values. */
QnStatus qn_fleet_open(QnFleet *f);
QnStatus qn_fleet_parse(QnFleet *f, const char *path, const char *text, size_t bytes);

/* Moves the coefficients first..last-1 of f to where loss is least, by coordinate descent on their
 * logarithms, with a weak pull to the start values: deterministic. loss: summed over rows. */
void qn_fleet_descend(QnFleet *f, int first, int last, int sweeps,
                      double (*loss)(void *ctx, const QnFleet *f), void *ctx);

#endif
