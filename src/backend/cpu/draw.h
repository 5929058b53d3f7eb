/* Words of the counter-based generator in numbers, for each instruction set. */
#ifndef QN_BACKEND_CPU_DRAW_H
#define QN_BACKEND_CPU_DRAW_H

#include "base/isa_list.h"
#include "base/compiler.h"

enum { QN_DRAW_BLOCKS = 64 }; /* blocks of four words at once */

/* word[0 .. 4 * QN_DRAW_BLOCKS): blocks first, first + 1, … of base/rng.h. */
typedef void QnDrawFn(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *word);
#define QN_X(name) QnDrawFn qn_draw_words_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
QnDrawFn *qn_draw_words_find(const char *isa);

#endif
