/* How long OpenMP's threads spin while they wait; shared with the programs of bench/, which are to
 * time what `quern` runs. */
#ifndef QN_CLI_SPINNING_H
#define QN_CLI_SPINNING_H

/* While they wait, GNU's OpenMP threads spin for some 10 ms before they sleep. Where other programs
 * want the processor too, that keeps it from the very thread that is waited for: steps then take
 * ten times as long. The library reads its setting before main, hence the program starts itself
 * once more with a tenth of a millisecond, unless the environment says what to do. First in main.
 */
void qn_cli_bound_spinning(char **argv);

/* "GOMP_SPINCOUNT=2000": what is set for this process. */
const char *qn_cli_spinning(char out[64]);

#endif
