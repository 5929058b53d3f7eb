/* The device that "auto" means. */
#ifndef QN_API_BEST_H
#define QN_API_BEST_H

#include "base/str.h"
#include "rt/device.h"

/* A CUDA device before an OpenCL device before the CPU; among several of a kind the one with the
 * most units times clock, as they declare. An OpenCL device that is a CPU is never chosen: it is
 * the same machine, by slower code. What cannot be opened is passed over. why (may be NULL) gets
 * one line: which, and before what. */
QnStatus qn_device_open_best(const QnDeviceOptions *options, QnDevice **out, QnStr *why);

#endif
