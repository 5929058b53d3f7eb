/* Finding and starting the plugins of rt/plugin.h. */
#ifndef QN_API_PLUGIN_H
#define QN_API_PLUGIN_H

#include "rt/plugin.h"

/* libquern_<name>.so from, in this order: the folders of $QUERN_PLUGINS (a:b), the folder of the
 * program or library that this code is in, and lib/quern beside it. QN_ENOTFOUND names every place;
 * a plugin of another version is QN_EUNSUPPORTED. It stays loaded. path (may be NULL): where it
 * was, to be freed by qn_str_fini. */
QnStatus qn_plugin_find(const char *name, const QnPlugin **plugin, const QnBackend **backend,
                        QnStr *path);

#endif
