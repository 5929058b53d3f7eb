/* The libraries that this program was built with: their versions, and where they lie. */
#ifndef QN_API_LIBRARIES_H
#define QN_API_LIBRARIES_H

#include "base/str.h"

typedef struct QnLibrary {
    const char *name, *use; /* "oneDNN", "convolutions and products on the CPU" */
    bool is_there;          /* built with it */
    char version[64];       /* as it says; "" where it does not */
    char path[1024];        /* of the file that it was loaded from; "" where that cannot be said */
} QnLibrary;

enum { QN_LIBRARIES = 10 };

void qn_libraries(QnLibrary out[QN_LIBRARIES]);

#endif
