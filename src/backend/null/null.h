/* The backend that computes nothing: it counts memory. Plans of any size can be made on it. */
#ifndef QN_BACKEND_NULL_NULL_H
#define QN_BACKEND_NULL_NULL_H

#include "rt/device.h"

extern const QnBackend qn_backend_null;

#endif
