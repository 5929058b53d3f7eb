/* How states start. */
#include "base/hash.h"
#include "base/rng.h"
#include "quern/attrs.h"
#include "rt/store.h"

#include <math.h>
#include <string.h>

static void fill_state(const QnStateAttr *a, QnRng *rng, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        switch ((QnInit)a->init) {
        case QN_INIT_ZEROS: x[i] = 0; break;
        case QN_INIT_CONSTANT: x[i] = (float)a->a; break;
        case QN_INIT_UNIFORM: x[i] = (float)(a->a + (a->b - a->a) * qn_rng_uniform(rng)); break;
        case QN_INIT_NORMAL: x[i] = (float)(a->a + a->b * qn_rng_normal(rng)); break;
        case QN_INIT_TRUNC_NORMAL: {
            float z = qn_rng_normal(rng);
            while (fabsf(z) > 2)
                z = qn_rng_normal(rng);
            x[i] = (float)(a->a + a->b * z);
            break;
        }
        }
    }
}

QnStatus qn_store_fill(QnStore *store, uint64_t seed)
{
    for (int64_t i = 0; i < store->n; i++) {
        const QnSlot *slot = &store->slots[i];
        const char *name = slot->name;
        if (!strncmp(name, "ema.", 4))
            name += 4; /* an average starts as what it averages */
        QnRng rng;
        int64_t n = qn_shape_count(&slot->type.shape);
        qn_rng_init(&rng, seed, qn_hash_str(name));
        float *x = qn_alloc_array((size_t)n + 1, sizeof *x);
        void *narrow = qn_alloc((size_t)slot->bytes + 1);
        QnStatus st = x && narrow ? QN_OK : QN_ENOMEM;
        if (st == QN_OK) {
            fill_state(slot->attr, &rng, x, n);
            qn_dtype_from_f32(slot->type.dtype, x, narrow, n);
            st = qn_store_write(store, slot, narrow);
        }
        qn_free(x);
        qn_free(narrow);
        QN_TRY(st);
    }
    return QN_OK;
}
