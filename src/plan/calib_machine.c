/* What the machine is, and what of it is measured without kernels. */
#include "plan/calib_impl.h"

#include "base/clock.h"
#include "io/image.h"
#include "io/image_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void read_cpu_name(char *out, size_t bytes)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, bytes, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!strncmp(line, "model name", 10) && colon) {
            colon[strcspn(colon, "\n")] = 0;
            snprintf(out, bytes, "%s", colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

void qn_calib_describe(const QnDevice *d, QnCalib *c)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_PHYS_PAGES);
    if (cache <= 0)
        cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    read_cpu_name(c->cpu, sizeof c->cpu);
    snprintf(c->isa, sizeof c->isa, "%s", d->env.isa);
    c->n_threads = d->env.n_threads;
    c->cache_bytes = cache > 0 ? (double)cache : 8e6;
    c->memory_bytes = pages > 0 ? (double)pages * (double)sysconf(_SC_PAGESIZE) : 1e9;
}

double qn_calib_joules(void)
{
    double uj = NAN;
    FILE *f = fopen("/sys/class/powercap/intel-rapl:0/energy_uj", "r");
    if (f && fscanf(f, "%lf", &uj) != 1)
        uj = NAN;
    if (f)
        fclose(f);
    return 1e-6 * uj;
}

QnStatus qn_calib_jpeg(QnCalib *c)
{
    void *file = NULL;
    size_t bytes;
    QnImage image = { 0 };
    double best = INFINITY;
    if (qn_image_test_jpeg(500, 375, &file, &bytes) != QN_OK)
        return QN_OK; /* no library */
    QnStatus st = QN_OK;
    for (int i = 0; st == QN_OK && i < 12; i++) {
        int64_t start = qn_clock_ns();
        st = qn_image_decode("sample", file, bytes, 3, &image);
        best = fmin(best, 1e-9 * (double)(qn_clock_ns() - start));
    }
    c->jpeg_s = st == QN_OK ? best : 0;
    qn_image_fini(&image);
    qn_free(file);
    return st;
}
