#include "quern/quern.h"

#include "base/compiler.h"

QN_API const char *qn_version(void)
{
    return QN_VERSION;
}
