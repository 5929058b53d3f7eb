/* Backends that are shared objects of their own, found at run time: the program depends on no
 * vendor's libraries. A plugin holds no copy of the library: what it calls, the program gives it as
 * a table. Both are compiled from the same headers, which numbers and sizes make sure of before any
 * code of the plugin runs. */
#ifndef QN_RT_PLUGIN_H
#define QN_RT_PLUGIN_H

#include "base/cache.h"
#include "rt/batch.h"
#include "rt/device.h"
#include "rt/devtext.h"
#include "rt/hostref.h"

/* Raised whenever the meaning of anything here, or of a struct that crosses, changes. */
enum { QN_PLUGIN_ABI = 3 };

#define QN_PLUGIN_CALLS(X)                                                                         \
    X(qn_fail_at)                                                                                  \
    X(qn_fail_prefix)                                                                              \
    X(qn_error_last)                                                                               \
    X(qn_alloc)                                                                                    \
    X(qn_alloc_array)                                                                              \
    X(qn_free)                                                                                     \
    X(qn_grow)                                                                                     \
    X(qn_str_add)                                                                                  \
    X(qn_str_printf)                                                                               \
    X(qn_str_text)                                                                                 \
    X(qn_str_fini)                                                                                 \
    X(qn_hash_str)                                                                                 \
    X(qn_hash_mix)                                                                                 \
    X(qn_cache_path)                                                                               \
    X(qn_cache_key)                                                                                \
    X(qn_cache_read)                                                                               \
    X(qn_cache_write)                                                                              \
    X(qn_devtext_refuses)                                                                          \
    X(qn_devtext_node)                                                                             \
    X(qn_hostref_refuses)                                                                          \
    X(qn_hostref_run)

typedef struct QnPluginHost {
    uint32_t bytes;      /* of this struct */
    const char *dialect; /* the text before every device text */
#define QN_X(name) QN_TYPEOF(&name) name;
    QN_PLUGIN_CALLS(QN_X)
#undef QN_X
} QnPluginHost;

/* Every struct that both sides look into. */
#define QN_PLUGIN_STRUCTS(X)                                                                       \
    X(QnPluginHost)                                                                                \
    X(QnBackend)                                                                                   \
    X(QnDevice)                                                                                    \
    X(QnDeviceOptions)                                                                             \
    X(QnKernel)                                                                                    \
    X(QnKernelEnv)                                                                                 \
    X(QnPrepared)                                                                                  \
    X(QnNode)                                                                                      \
    X(QnValue)                                                                                     \
    X(QnType)                                                                                      \
    X(QnOp)                                                                                        \
    X(QnBatchLaunch)                                                                               \
    X(QnDeviceCall)                                                                                \
    X(QnHostrefIo)                                                                                 \
    X(QnStr)                                                                                       \
    X(QnCacheKey)

typedef struct QnPluginSize {
    const char *name;
    uint64_t bytes;
} QnPluginSize;

/* One line of what the plugin found on this machine, or did not. */
typedef enum QnPluginVerdict {
    QN_PLUGIN_FOUND,
    QN_PLUGIN_MISSING,
    QN_PLUGIN_BROKEN
} QnPluginVerdict;
typedef void QnPluginSay(void *ctx, QnPluginVerdict verdict, const char *what, const char *text);

/* What a plugin exports, as `const QnPlugin qn_plugin`, and nothing else. */
typedef struct QnPlugin {
    uint32_t bytes, abi;       /* first in every version */
    const char *name;          /* "cuda" */
    const char *version;       /* of the Quern that it was built with */
    const QnPluginSize *sizes; /* QN_PLUGIN_STRUCTS in their order */
    int n_sizes;
    const QnBackend *(*start)(const QnPluginHost *host); /* before anything else of it */
    void (*report)(QnPluginSay *say, void *ctx);         /* for doctor: libraries, devices */
} QnPlugin;

#endif
