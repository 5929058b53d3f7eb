#include "cli/spinning.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void qn_cli_bound_spinning(char **argv)
{
#ifdef _OPENMP
    char path[4096];
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
        return;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || setenv("GOMP_SPINCOUNT", "2000", 1) < 0)
        return;
    path[n] = '\0';
    execv(path, argv); /* if it fails, all goes on, only slower */
#else
    (void)argv;
#endif
}

const char *qn_cli_spinning(char out[64])
{
    const char *count = getenv("GOMP_SPINCOUNT"), *policy = getenv("OMP_WAIT_POLICY");
    if (count)
        snprintf(out, 64, "GOMP_SPINCOUNT=%s", count);
    else if (policy)
        snprintf(out, 64, "OMP_WAIT_POLICY=%s", policy);
    else
        snprintf(out, 64, "nothing set");
    return out;
}
