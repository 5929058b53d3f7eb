/* Element types: quern/types.h. */
#ifndef QN_IR_DTYPE_H
#define QN_IR_DTYPE_H

#include "base/status.h"
#include "quern/types.h"

#endif
