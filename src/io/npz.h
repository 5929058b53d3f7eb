/* .npz archives: quern/npy.h, and here what reads into the caller's memory. */
#ifndef QN_IO_NPZ_H
#define QN_IO_NPZ_H

#include "io/npy.h"

/* `data` is borrowed until close. */
QnStatus qn_npz_parse(const char *name, const void *data, size_t size, QnNpz **out);
/* Array i into dst, which takes its items. */
QnStatus qn_npz_read_into(const QnNpz *z, int64_t i, void *dst);
bool qn_npz_is_compressed(const QnNpz *z); /* at least one array is */

#endif
