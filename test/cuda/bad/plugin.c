/* Plugins that must be refused before any code of theirs runs: compiled with one BAD_… each. */
#include "rt/plugin.h"

#include <stdlib.h>

static const QnPluginSize bad_sizes[] = {
#ifdef BAD_STRUCT
#define QN_X(name) { #name, sizeof(name) + 8 * (sizeof #name == sizeof "QnNode") },
#else
#define QN_X(name) { #name, sizeof(name) },
#endif
    QN_PLUGIN_STRUCTS(QN_X)
#undef QN_X
};

static const QnBackend *bad_start(const QnPluginHost *host)
{
    (void)host;
    abort();
}

QN_API extern const QnPlugin qn_plugin;
const QnPlugin qn_plugin = {
#ifdef BAD_BYTES
    .bytes = sizeof qn_plugin + 8,
#else
    .bytes = sizeof qn_plugin,
#endif
#ifdef BAD_ABI
    .abi = QN_PLUGIN_ABI + 1,
#else
    .abi = QN_PLUGIN_ABI,
#endif
#ifdef BAD_NAME
    .name = "vulkan",
#else
    .name = "cuda",
#endif
    .version = "0.0.1",
    .sizes = bad_sizes,
    .n_sizes = QN_COUNT(bad_sizes),
    .start = bad_start,
};
