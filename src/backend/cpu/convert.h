/* Between f32 and the storage types of maps, vectorised. */
#ifndef QN_BACKEND_CPU_CONVERT_H
#define QN_BACKEND_CPU_CONVERT_H

#include "base/isa_list.h"
#include "ir/dtype.h"

/* As qn_dtype_to_f32 and qn_dtype_from_f32. */
typedef struct QnConvertFns {
    void (*to_f32)(QnDtype dtype, const void *src, float *dst, int64_t n);
    void (*from_f32)(QnDtype dtype, const float *src, void *dst, int64_t n);
} QnConvertFns;

#define QN_X(name) extern const QnConvertFns qn_convert_fns_##name;
QN_ISA_LIST(QN_X)
#undef QN_X
const QnConvertFns *qn_convert_find(const char *isa);

#endif
