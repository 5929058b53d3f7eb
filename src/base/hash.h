/* SHA-256 (FIPS 180-4) for files and weights, and a fast 64-bit hash for tables. Both give the same
 * result on every machine. */
#ifndef QN_BASE_HASH_H
#define QN_BASE_HASH_H

#include "base/compiler.h"

enum { QN_SHA256_BYTES = 32, QN_SHA256_HEX = 65 };

typedef void QnSha256Blocks(uint32_t h[8], const unsigned char *p, size_t n_blocks);

typedef struct QnSha256 {
    uint32_t h[8];
    QnSha256Blocks *blocks; /* the CPU's own, or NULL */
    uint64_t bytes;         /* hashed so far */
    unsigned char block[64];
} QnSha256;

void qn_sha256_init(QnSha256 *sha);
void qn_sha256_update(QnSha256 *sha, const void *data, size_t bytes);
void qn_sha256_final(QnSha256 *sha, unsigned char digest[QN_SHA256_BYTES]);
/* Writes the digest in lower-case hexadecimal with a NUL; returns `hex`. */
char *qn_sha256_hex(const unsigned char digest[QN_SHA256_BYTES], char hex[QN_SHA256_HEX]);

/* Not for adversaries: whoever chooses the keys can choose collisions. */
uint64_t qn_hash_bytes(const void *data, size_t bytes, uint64_t seed);
uint64_t qn_hash_str(const char *s);
uint64_t qn_hash_mix(uint64_t a, uint64_t b); /* folds b into a */

#endif
