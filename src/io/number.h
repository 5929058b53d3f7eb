/* Decimal numbers in files, the same in every locale. */
#ifndef QN_IO_NUMBER_H
#define QN_IO_NUMBER_H

#include "base/compiler.h"

/* The whole of text[0 … n-1] as sign, digits, fraction, exponent; rounded as strtod does. False:
 * not that, longer than 127 bytes, or too large for a double. */
bool qn_number_parse(const char *text, size_t n, double *out);

#endif
