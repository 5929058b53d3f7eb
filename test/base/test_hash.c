#include "test.h"

#include "base/hash.h"

static const char *sha_of(const void *data, size_t n, size_t piece, char hex[QN_SHA256_HEX])
{
    unsigned char digest[QN_SHA256_BYTES];
    QnSha256 sha;
    qn_sha256_init(&sha);
    for (size_t at = 0; at < n; at += piece)
        qn_sha256_update(&sha, (const char *)data + at, n - at < piece ? n - at : piece);
    qn_sha256_final(&sha, digest);
    return qn_sha256_hex(digest, hex);
}

/* The examples of FIPS 180-4 and the empty message. */
static void test_sha256_known_answers(void **state)
{
    char hex[QN_SHA256_HEX];
    assert_string_equal(sha_of("", 0, 1, hex),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(sha_of("abc", 3, 3, hex),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(
        sha_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56, hex),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    assert_string_equal(sha_of(million, 1000000, 4096, hex),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void test_sha256_pieces_do_not_matter(void **state)
{
    unsigned char data[300];
    char whole[QN_SHA256_HEX], parts[QN_SHA256_HEX];
    for (int i = 0; i < 300; i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n < 300; n += 7) {
        sha_of(data, n, 300, whole);
        for (size_t piece = 1; piece < 130; piece += 9)
            assert_string_equal(sha_of(data, n, piece, parts), whole);
    }
}

/* The portable code against the CPU's instructions, over many lengths. */
static void test_sha256_portable_equals_cpu(void **state)
{
    unsigned char data[1000], digest[QN_SHA256_BYTES];
    char one[QN_SHA256_HEX], two[QN_SHA256_HEX];
    QnSha256 sha;
    for (int i = 0; i < 1000; i++)
        data[i] = (unsigned char)(i * i * 31 >> 3);
    qn_sha256_init(&sha);
    if (!sha.blocks)
        skip_because("this CPU has no SHA instructions");
    for (size_t n = 0; n <= 1000; n += 13) {
        qn_sha256_init(&sha);
        sha.blocks = NULL;
        qn_sha256_update(&sha, data, n);
        qn_sha256_final(&sha, digest);
        qn_sha256_hex(digest, two);
        assert_string_equal(sha_of(data, n, 1000, one), two);
    }
}

/* Flipping any input bit flips about half of the output bits. */
static void test_hash_avalanche(void **state)
{
    unsigned char data[24] = "the quick brown fox jum";
    uint64_t before = qn_hash_bytes(data, 24, 0);
    double flips = 0;
    for (int bit = 0; bit < 24 * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int n = __builtin_popcountll(before ^ qn_hash_bytes(data, 24, 0));
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_in_range(n, 12, 52);
        flips += n;
    }
    flips /= 24 * 8;
    assert_true(flips > 30.5 && flips < 33.5);
}

static void test_hash_sees_length_seed_and_order(void **state)
{
    static const unsigned char zeros[64];
    uint64_t seen[200];
    int n = 0;
    for (size_t length = 0; length <= 64; length++)
        seen[n++] = qn_hash_bytes(zeros, length, 0);
    for (uint64_t seed = 1; seed < 65; seed++)
        seen[n++] = qn_hash_bytes(zeros, 8, seed);
    seen[n++] = qn_hash_mix(1, 2);
    seen[n++] = qn_hash_mix(2, 1);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
}

/* Written to disk (tuning results), so it must not change from release to release. */
static void test_hash_is_stable(void **state)
{
    assert_true(qn_hash_str("quern") == qn_hash_bytes("quern!", 5, 0));
    assert_int_equal(qn_hash_str("quern"), UINT64_C(0xb4208b99875ea21b));
}
