/* Quern: deep learning in C. This header is the whole public interface; quern/ops.h adds one
 * function for each operator. */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#define QN_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, which may be newer than the QN_VERSION compiled against.
 * Static storage. */
const char *qn_version(void);

#ifdef __cplusplus
}
#endif

#endif
