#include "test.h"

#include "base/utf8.h"

/* Every code point encodes to what reads back with the same length, and to nothing shorter. */
static void test_every_code_point(void **state)
{
    for (uint32_t code = 0; code < 0x110000; code++) {
        char bytes[4];
        int n = qn_utf8_encode(code, bytes);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(n, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
        assert_int_equal(qn_utf8_length(bytes, 4), surrogate ? 0 : n);
        assert_int_equal(qn_utf8_length(bytes, (size_t)n - 1), 0);
    }
}

/* Of all pairs of bytes that start with a lead byte, only the 1,920 two-byte code points are whole.
 */
static void test_pairs(void **state)
{
    int valid = 0;
    for (int a = 0x80; a < 256; a++)
        for (int b = 0; b < 256; b++)
            valid += qn_utf8_length((char[]){ (char)a, (char)b }, 2) == 2;
    assert_int_equal(valid, 0x800 - 0x80);
}
