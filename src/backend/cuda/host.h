/* The library's functions, as the program hands them to its plugins: every file of this folder
 * includes this last, and calls them by their names. */
#ifndef QN_BACKEND_CUDA_HOST_H
#define QN_BACKEND_CUDA_HOST_H

#include "base/mem.h"
#include "rt/plugin.h"

/* Set when the plugin starts, before anything else of it is called. */
extern const QnPluginHost *qn_cuda_host;

#define qn_fail_at         qn_cuda_host->qn_fail_at
#define qn_fail_prefix     qn_cuda_host->qn_fail_prefix
#define qn_error_last      qn_cuda_host->qn_error_last
#define qn_alloc           qn_cuda_host->qn_alloc
#define qn_alloc_array     qn_cuda_host->qn_alloc_array
#define qn_free            qn_cuda_host->qn_free
#define qn_grow            qn_cuda_host->qn_grow
#define qn_str_add         qn_cuda_host->qn_str_add
#define qn_str_printf      qn_cuda_host->qn_str_printf
#define qn_str_text        qn_cuda_host->qn_str_text
#define qn_str_fini        qn_cuda_host->qn_str_fini
#define qn_hash_str        qn_cuda_host->qn_hash_str
#define qn_hash_mix        qn_cuda_host->qn_hash_mix
#define qn_cache_path      qn_cuda_host->qn_cache_path
#define qn_cache_key       qn_cuda_host->qn_cache_key
#define qn_cache_read      qn_cuda_host->qn_cache_read
#define qn_cache_write     qn_cuda_host->qn_cache_write
#define qn_devtext_refuses qn_cuda_host->qn_devtext_refuses
#define qn_devtext_node    qn_cuda_host->qn_devtext_node
#define qn_hostref_refuses qn_cuda_host->qn_hostref_refuses
#define qn_hostref_run     qn_cuda_host->qn_hostref_run

#endif
