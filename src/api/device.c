/* Devices by name, for programs that know no backend. */
#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "rt/device.h"

#include <string.h>

QnStatus qn_device_open_named(const char *name, const QnDeviceOptions *options, QnDevice **out)
{
    static const QnBackend *const backends[] = { &qn_backend_cpu, &qn_backend_null };
    for (int i = 0; i < QN_COUNT(backends); i++) {
        if (!name || !strcmp(name, backends[i]->name) || !strcmp(name, "auto"))
            return qn_device_open(backends[i], options, out);
    }
    return qn_fail(QN_EUSAGE, "no device '%s'; there are cpu and null", name);
}
