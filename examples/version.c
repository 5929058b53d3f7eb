/* The smallest program that links Quern: prints the library's version. */
#include <quern/quern.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("quern %s\n", qn_version());
    return strcmp(qn_version(), QN_VERSION) != 0; /* not the library this was compiled for */
}
