/* NumPy's .npy files: quern/npy.h. */
#ifndef QN_IO_NPY_H
#define QN_IO_NPY_H

#include "base/status.h"
#include "ir/dtype.h"
#include "quern/npy.h"

#endif
