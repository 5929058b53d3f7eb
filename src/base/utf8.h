/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef QN_BASE_UTF8_H
#define QN_BASE_UTF8_H

#include "base/compiler.h"

/* Bytes of the valid sequence that starts at p (1 to 4), or 0; reads no more than n bytes. */
int qn_utf8_length(const char *p, size_t n);
/* Writes a code point below 0x110000; returns its bytes. */
int qn_utf8_encode(uint32_t code, char out[4]);

#endif
