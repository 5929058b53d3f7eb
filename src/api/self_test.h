/* A handful of representative nodes, each by the kernel that plans choose on a device, against
 * float64. */
#ifndef QN_API_SELF_TEST_H
#define QN_API_SELF_TEST_H

#include "base/str.h"
#include "rt/device.h"

typedef struct QnSelfTest {
    int n_cases, n_bad;
    double worst; /* |got - want| / (1 + |want|), over all that ran */
    const char *worst_case;
    QnStr bad;     /* "softmax: 0.25 off by opencl.text; conv: node …" */
    QnStr on_host; /* "conv, gather": what the reference runs, not the device */
} QnSelfTest;

/* What cannot run is a bad case, with its error. *out is to be finished whatever comes back. */
QnStatus qn_self_test(QnDevice *d, QnSelfTest *out);
void qn_self_test_fini(QnSelfTest *t);

#endif
