/* quern_bench_gpu [DEVICE] [options]: builds, checks and times everything on a device in one call
 * and prints a short table: limits, nets, operators. It runs to its end whatever fails; the exit
 * code then is 1. On "null" nothing is computed, and times mean nothing. */
#include "gpu/gpu.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: quern_bench_gpu [DEVICE] [--quick] [--json FILE] [--only WORD] [--precision "
    "bf16|fp32]\n"
    "                       [--seconds S] [--limit S] [--peak TFLOPS]\n"
    "  DEVICE       as in --device (opencl:0)\n"
    "  --quick      small sizes: a few minutes on a CPU\n"
    "  --json FILE  the rows as JSON\n"
    "  --only WORD  nets and operators whose name has the word\n"
    "  --precision  of the nets (bf16, with f32 master weights)\n"
    "  --seconds S  that a row is timed for (0.3; quick: 0.05)\n"
    "  --limit S    rows that would begin later are left out (540; 0: none)\n"
    "  --peak T     the data sheet's TFLOP/s, which MFU is then of; else of the measured product\n";

static int parse(int argc, char **argv, Options *o)
{
    *o = (Options){ .device = "opencl:0", .limit_s = 540 };
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(a, "--quick")) {
            o->quick = true;
            continue;
        }
        if (a[0] != '-') {
            o->device = a;
            continue;
        }
        bool fits = v != NULL;
        if (fits && !strcmp(a, "--json"))
            o->json = v;
        else if (fits && !strcmp(a, "--only"))
            o->only = v;
        else if (fits && !strcmp(a, "--seconds"))
            o->seconds = atof(v);
        else if (fits && !strcmp(a, "--limit"))
            o->limit_s = atof(v);
        else if (fits && !strcmp(a, "--peak"))
            o->peak = atof(v) * 1e12;
        else if (fits && !strcmp(a, "--precision") && (!strcmp(v, "fp32") || !strcmp(v, "bf16")))
            o->fp32 = !strcmp(v, "fp32");
        else
            return fputs(usage, stderr), 2;
        i++;
    }
    o->seconds = o->seconds > 0 ? o->seconds : o->quick ? 0.05 : 0.3;
    return 0;
}

int main(int argc, char **argv)
{
    Bench b = { .begin_ns = qn_clock_ns() };
    int rc = parse(argc, argv, &b.o);
    if (rc)
        return rc;
    QnStatus st = qn_device_open_named(b.o.device, NULL, &b.device);
    if (st == QN_OK) {
        printf("%s\n", b.o.device);
        st = bench_limits(&b);
    }
    if (st == QN_OK)
        st = bench_nets(&b);
    if (st == QN_OK)
        st = bench_operators(&b);
    if (st == QN_OK && b.o.json)
        st = bench_write_json(&b, b.o.json);
    if (st != QN_OK)
        fprintf(stderr, "quern_bench_gpu: %s\n", qn_error_last()->text);
    else
        printf("\n%lld rows, %d failed\n", (long long)b.n, b.n_failed);
    qn_free(b.results);
    qn_device_close(b.device);
    return st != QN_OK || b.n_failed ? 1 : 0;
}
