/* What libquern_cuda.so exports. */
#include "backend/cuda/cuda.h"

#include "backend/cuda/host.h"
#include "quern/quern.h"

/* The plugin's only state: written once, by start. */
const QnPluginHost *qn_cuda_host;

static const QnPluginSize plugin_sizes[] = {
#define QN_X(name) { #name, sizeof(name) },
    QN_PLUGIN_STRUCTS(QN_X)
#undef QN_X
};

static const QnBackend *plugin_start(const QnPluginHost *host)
{
    qn_cuda_host = host;
    return &qn_backend_cuda;
}

QN_API extern const QnPlugin qn_plugin;
const QnPlugin qn_plugin = {
    .bytes = sizeof qn_plugin,
    .abi = QN_PLUGIN_ABI,
    .name = "cuda",
    .version = QN_VERSION,
    .sizes = plugin_sizes,
    .n_sizes = QN_COUNT(plugin_sizes),
    .start = plugin_start,
    .report = qn_cuda_report,
};
