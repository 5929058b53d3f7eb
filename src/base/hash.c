#include "base/hash.h"
#include "base/hash_cpu.h"

#include <string.h>

const uint32_t qn_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t big32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* One round; the caller rotates the names of the eight words instead of the words. */
static inline void sha_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e,
                             uint32_t f, uint32_t g, uint32_t *h, uint32_t kw)
{
    uint32_t t1 = *h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + (g ^ (e & (f ^ g))) + kw;
    *h = t1 + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) | (c & (a | b)));
    *d += t1;
}

static void sha_blocks(uint32_t state[8], const unsigned char *p, size_t n)
{
    for (; n; n--, p += 64) {
        uint32_t w[64];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 16; i++)
            w[i] = big32(p + 4 * i);
        for (int i = 16; i < 64; i++) {
            uint32_t x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) +
                   (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
        }
        for (int i = 0; i < 64; i += 8) {
            const uint32_t *k = qn_sha256_k + i, *v = w + i;
            sha_round(a, b, c, &d, e, f, g, &h, k[0] + v[0]);
            sha_round(h, a, b, &c, d, e, f, &g, k[1] + v[1]);
            sha_round(g, h, a, &b, c, d, e, &f, k[2] + v[2]);
            sha_round(f, g, h, &a, b, c, d, &e, k[3] + v[3]);
            sha_round(e, f, g, &h, a, b, c, &d, k[4] + v[4]);
            sha_round(d, e, f, &g, h, a, b, &c, k[5] + v[5]);
            sha_round(c, d, e, &f, g, h, a, &b, k[6] + v[6]);
            sha_round(b, c, d, &e, f, g, h, &a, k[7] + v[7]);
        }
        uint32_t sum[8] = { a, b, c, d, e, f, g, h };
        for (int i = 0; i < 8; i++)
            state[i] += sum[i];
    }
}

static void add_blocks(QnSha256 *sha, const unsigned char *p, size_t n)
{
    (sha->blocks ? sha->blocks : sha_blocks)(sha->h, p, n);
}

void qn_sha256_init(QnSha256 *sha)
{
    *sha = (QnSha256){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                              0x9b05688c, 0x1f83d9ab, 0x5be0cd19 },
                       .blocks = qn_sha256_blocks_of_cpu() };
}

void qn_sha256_update(QnSha256 *sha, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    size_t used = sha->bytes % 64;
    if (bytes == 0)
        return;
    sha->bytes += bytes;
    if (used) {
        size_t n = QN_MIN(bytes, 64 - used);
        memcpy(sha->block + used, p, n);
        if (used + n < 64)
            return;
        add_blocks(sha, sha->block, 1);
        p += n;
        bytes -= n;
    }
    add_blocks(sha, p, bytes / 64);
    if (bytes % 64)
        memcpy(sha->block, p + bytes / 64 * 64, bytes % 64);
}

void qn_sha256_final(QnSha256 *sha, unsigned char digest[QN_SHA256_BYTES])
{
    uint64_t bits = sha->bytes * 8;
    size_t used = sha->bytes % 64, pad = (used < 56 ? 56 : 120) - used;
    unsigned char tail[72] = { 0x80 };
    for (int i = 0; i < 8; i++)
        tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    qn_sha256_update(sha, tail, pad + 8);
    for (int i = 0; i < 32; i++)
        digest[i] = (unsigned char)(sha->h[i / 4] >> (24 - 8 * (i % 4)));
}

char *qn_sha256_hex(const unsigned char digest[QN_SHA256_BYTES], char hex[QN_SHA256_HEX])
{
    for (int i = 0; i < 2 * QN_SHA256_BYTES; i++)
        hex[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
    hex[2 * QN_SHA256_BYTES] = '\0';
    return hex;
}

/* Multiply, fold and multiply again: each input bit reaches every output bit. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 32) * 0xe9846af9b1a615dull;
    x = (x ^ x >> 32) * 0xe9846af9b1a615dull;
    return x ^ x >> 28;
}

uint64_t qn_hash_mix(uint64_t a, uint64_t b)
{
    return scramble(a * 0x9e3779b97f4a7c15ull + b + 0x165667b19e3779f9ull);
}

/* Little-endian on every machine. */
static uint64_t word_of(const unsigned char *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)p[i] << (8 * i);
    return w;
}

uint64_t qn_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = qn_hash_mix(seed, bytes);
    for (; bytes >= 8; p += 8, bytes -= 8)
        h = qn_hash_mix(h, word_of(p, 8));
    return bytes ? qn_hash_mix(h, word_of(p, bytes)) : h;
}

uint64_t qn_hash_str(const char *s)
{
    return qn_hash_bytes(s, strlen(s), 0);
}
