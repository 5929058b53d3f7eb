/* How states start. Numbers are drawn by their position in the state's own sequence, so that any
 * thread can draw any part of it. */
#include "base/hash.h"
#include "base/rng.h"
#include "quern/attrs.h"
#include "rt/store.h"

#include <math.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { PART = 4096 }; /* elements that one thread draws at a time */

typedef struct Fill {
    const QnStateAttr *attr;
    uint64_t seed, stream;
    char *out; /* n elements of the slot's dtype */
    QnDtype dtype;
    int64_t n;
} Fill;

static float truncated(QnRng *rng)
{
    float z = qn_rng_normal(rng);
    while (fabsf(z) > 2)
        z = qn_rng_normal(rng);
    return z;
}

/* Words of the sequence that each element takes; 0: it depends on the words. */
static int words_each(const QnStateAttr *a)
{
    return a->init == QN_INIT_NORMAL ? 2 : a->init == QN_INIT_TRUNC_NORMAL ? 0 : 1;
}

/* Of each pair the first: an element takes the words of two. */
static void draw_normals(const QnStateAttr *a, QnRng *rng, float *x, int64_t n)
{
    enum { N = 256 };
    for (int64_t done = 0; done < n; done += N) {
        uint32_t word[2 * N];
        float z[2 * N];
        int64_t m = QN_MIN(n - done, (int64_t)N);
        qn_rng_words(rng, word, 2 * m);
        qn_rng_to_normals(word, 2 * m, z);
        for (int64_t i = 0; i < m; i++)
            x[done + i] = (float)(a->a + a->b * z[2 * i]);
    }
}

static void draw(const QnStateAttr *a, QnRng *rng, float *x, int64_t n)
{
    switch ((QnInit)a->init) {
    case QN_INIT_ZEROS: memset(x, 0, (size_t)n * sizeof *x); break;
    case QN_INIT_CONSTANT:
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)a->a;
        break;
    case QN_INIT_UNIFORM:
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(a->a + (a->b - a->a) * qn_rng_uniform(rng));
        break;
    case QN_INIT_NORMAL: draw_normals(a, rng, x, n); break;
    case QN_INIT_TRUNC_NORMAL:
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)(a->a + a->b * truncated(rng));
        break;
    }
}

static void fill_part(const Fill *f, QnRng *rng, int64_t part)
{
    float x[PART];
    int64_t begin = part * PART, n = QN_MIN(f->n - begin, (int64_t)PART);
    draw(f->attr, rng, x, n);
    qn_dtype_from_f32(f->dtype, x, f->out + (size_t)begin * qn_dtype_bytes(f->dtype), n);
}

static void fill(const Fill *f, int n_threads)
{
    int64_t n_parts = (f->n + PART - 1) / PART;
    int words = words_each(f->attr);
    if (f->attr->init == QN_INIT_ZEROS) { /* in every dtype */
        memset(f->out, 0, (size_t)f->n * qn_dtype_bytes(f->dtype));
        return;
    }
    if (!words) {
        QnRng rng;
        qn_rng_init(&rng, f->seed, f->stream);
        for (int64_t i = 0; i < n_parts; i++)
            fill_part(f, &rng, i);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for num_threads(n_threads) schedule(static) if (n_threads > 1 && n_parts > 1)
#endif
    for (int64_t i = 0; i < n_parts; i++) {
        QnRng rng;
        qn_rng_init(&rng, f->seed, f->stream);
        qn_rng_seek(&rng, (uint64_t)(i * PART * words));
        fill_part(f, &rng, i);
    }
    (void)n_threads;
}

/* A device other than the host leaves all of its cores to this. */
static int host_threads(const QnDevice *d)
{
#ifdef _OPENMP
    return d->backend->is_host ? d->env.n_threads : omp_get_num_procs();
#else
    return d->env.n_threads;
#endif
}

static QnStatus fill_slot(QnStore *store, const QnSlot *slot, uint64_t seed)
{
    const QnDevice *d = store->device;
    const char *name = slot->name;
    if (!strncmp(name, "ema.", 4))
        name += 4; /* an average starts as what it averages */
    Fill f = { .attr = slot->attr,
               .seed = seed,
               .stream = qn_hash_str(name),
               .dtype = slot->type.dtype,
               .n = qn_shape_count(&slot->type.shape) };
    if (d->backend->is_host && slot->type.layout == QN_LAYOUT_PLAIN) {
        f.out = qn_store_ptr(store, slot);
        fill(&f, host_threads(d));
        return QN_OK;
    }
    if (!(f.out = qn_alloc((size_t)slot->bytes + 1)))
        return QN_ENOMEM;
    fill(&f, host_threads(d));
    QnStatus st = qn_store_write(store, slot, f.out);
    qn_free(f.out);
    return st;
}

QnStatus qn_store_fill(QnStore *store, uint64_t seed)
{
    if (store->n && !store->base)
        return qn_fail(QN_EARG,
                       "the store is not allocated: call qn_store_alloc before it is filled");
    for (int64_t i = 0; i < store->n; i++)
        QN_TRY(fill_slot(store, &store->slots[i], seed));
    return QN_OK;
}
