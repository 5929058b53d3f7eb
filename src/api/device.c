/* Devices by name, for programs that know no backend. */
#include "api/best.h"
#include "api/plugin.h"
#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "backend/opencl/opencl.h"
#include "rt/device.h"

#include <stdlib.h>
#include <string.h>

static const QnBackend *const backends[] = {
    &qn_backend_cpu,
#ifdef QN_HAVE_OPENCL
    &qn_backend_opencl,
#endif
    &qn_backend_null,
};

static const char *const plugins[] = { "cuda" };

/* "opencl:1" is device 1 of the backend; the number may be left out. */
static bool is_of(const char *backend, const char *name, int *index)
{
    size_t n = strlen(backend);
    char *end;
    if (strncmp(name, backend, n))
        return false;
    if (name[n] == '\0')
        return true;
    if (name[n] != ':' || name[n + 1] < '0' || name[n + 1] > '9')
        return false;
    *index = (int)QN_MIN(strtol(name + n + 1, &end, 10), 1000L);
    return *end == '\0';
}

QnStatus qn_device_open_named(const char *name, const QnDeviceOptions *options, QnDevice **out)
{
    QnDeviceOptions o = options ? *options : (QnDeviceOptions){ 0 };
    if (name && !strcmp(name, "auto"))
        return qn_device_open_best(options, out, NULL);
    if (!name)
        name = "cpu";
    for (int i = 0; i < QN_COUNT(backends); i++) {
        if (is_of(backends[i]->name, name, &o.index))
            return qn_device_open(backends[i], &o, out);
    }
    for (int i = 0; i < QN_COUNT(plugins); i++) {
        const QnPlugin *plugin;
        const QnBackend *backend;
        if (!is_of(plugins[i], name, &o.index))
            continue;
        QN_TRY(qn_plugin_find(plugins[i], &plugin, &backend, NULL));
        return qn_device_open(backend, &o, out);
    }
#ifdef QN_HAVE_OPENCL
    return qn_fail(QN_EUSAGE, "no device '%s'; there are cpu, opencl:0 …, cuda:0 …, auto and null",
                   name);
#else
    return qn_fail(QN_EUSAGE,
                   "no device '%s'; there are cpu, cuda:0 …, auto and null (built without OpenCL)",
                   name);
#endif
}
