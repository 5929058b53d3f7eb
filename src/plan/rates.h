/* How fast a device that is here copies and multiplies, measured in some tenths of a second. */
#ifndef QN_PLAN_RATES_H
#define QN_PLAN_RATES_H

#include "rt/device.h"

typedef struct QnDeviceRates { /* a second; 0: not measured */
    double copy;               /* bytes read and written, within the device */
    double to, from;           /* bytes from the host and back; from pinned memory where there is */
    double multiply;           /* operations of a product of f32, by the kernel that plans choose */
    const char *multiplies;    /* its name */
} QnDeviceRates;

QnStatus qn_device_measure(QnDevice *d, QnDeviceRates *out);

#endif
