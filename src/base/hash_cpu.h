/* SHA-256 by the CPU's instructions; for base/hash.c alone. */
#ifndef QN_BASE_HASH_CPU_H
#define QN_BASE_HASH_CPU_H

#include "base/hash.h"

extern const uint32_t qn_sha256_k[64];

/* NULL where this CPU has none. */
QnSha256Blocks *qn_sha256_blocks_of_cpu(void);

#endif
