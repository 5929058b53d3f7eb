/* safetensors files: quern/safetensors.h. */
#ifndef QN_IO_SAFETENSORS_H
#define QN_IO_SAFETENSORS_H

#include "base/file.h"
#include "base/status.h"
#include "ir/dtype.h"
#include "quern/safetensors.h"

#endif
