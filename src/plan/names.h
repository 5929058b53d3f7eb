/* Names as people write them: what they may have meant. */
#ifndef QN_PLAN_NAMES_H
#define QN_PLAN_NAMES_H

#include "base/status.h"

/* Letters and digits alone, in lower case, are the same: "Llama-2 7B" is "llama2_7b". */
bool qn_name_is(const char *a, const char *b);
/* The part stands somewhere in the name, in the same sense. */
bool qn_name_has(const char *name, const char *part);

enum { QN_NAMES_NEAR = 3 };
/* The known names that are nearest to the word, best first; gives their number. */
int qn_names_near(const char *word, const char *const *known, int n,
                  const char *near[QN_NAMES_NEAR]);
/* ENOTFOUND: "no WHAT 'WORD'; did you mean 'A', 'B' or 'C'?", or where nothing is near, `list`:
 * what shows them all. */
QnStatus qn_names_unknown(const char *what, const char *word, const char *const *known, int n,
                          const char *list);

#endif
