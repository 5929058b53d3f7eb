#include "backend/cpu/product.h"
#include "backend/cpu/cpu.h"

#include <string.h>

/* b is packed past the caches where it would not stay in the second-level one. */
enum { CHUNK_FLOATS = 4 << 20, CACHED_FLOATS = 1 << 18 };

/* Blocks as large as possible that still give every thread several. Multiples of 24 rows and 96
 * columns are whole tiles at any instruction set. */
static void choose_blocks(QnProduct *m, int n_threads)
{
    int64_t rows = QN_MAX(m->product.gemm.m, 1);
    int64_t columns = QN_MAX(m->product.gemm.n, 1), batch = m->product.n_batch;
    m->block_m = QN_GEMM_M;
    m->block_n = QN_GEMM_N;
    for (;;) {
        m->n_m = (rows + m->block_m - 1) / m->block_m;
        m->n_n = (columns + m->block_n - 1) / m->block_n;
        bool enough = m->n_m * m->n_n * batch >= (int64_t)n_threads * (n_threads > 1 ? 3 : 1);
        if (enough || (m->block_m <= 24 && m->block_n <= 96))
            return;
        if (m->block_m > 24 && (m->n_m > 1 || rows > 24 || m->block_n <= 96))
            m->block_m = m->block_m == QN_GEMM_M ? 72 : 24;
        else
            m->block_n = m->block_n == QN_GEMM_N ? 192 : 96;
    }
}

static int64_t blocks_of(int64_t n, int64_t block)
{
    return (n + block - 1) / block;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Blocks of rows are even, and as many for each thread as for the others; blocks of columns are as
 * wide as they may be, since each packs its rows of a. */
static void choose_shares(QnProduct *m, int n_threads)
{
    const QnGemm *g = &m->product.gemm;
    m->n_m = round_up(blocks_of(g->m, QN_GEMM_TALL), n_threads);
    m->n_n = blocks_of(g->n, QN_GEMM_WIDE);
    m->block_n = round_up(blocks_of(g->n, m->n_n), QN_GEMM_GRAIN);
    m->chunk_n = QN_MAX(1, CHUNK_FLOATS / QN_MAX(m->steps, 1) / m->block_n) * m->block_n;
    m->chunk_n = QN_MIN(m->chunk_n, round_up(g->n, m->block_n));
    m->scratch = round_up(qn_gemm_panels_scratch(m->steps, m->block_n), 16);
}

/* Worth another pass over b: each packed element serves several blocks. */
static bool is_shared(const QnGemm *g)
{
    enum { LEAST_PRODUCTS = 1 << 22 };
    return g->m >= QN_GEMM_GRAIN && g->n >= QN_GEMM_GRAIN &&
           g->m * g->n >= LEAST_PRODUCTS / QN_MAX(g->k, 1);
}

void qn_product_init(QnProduct *m, const QnMatmul *of, const QnGemmFns *fns, int n_threads)
{
    *m = (QnProduct){ .product = *of,
                      .n_threads = n_threads,
                      .fns = fns,
                      .steps = blocks_of(of->gemm.k, fns->step),
                      .shared = is_shared(&of->gemm) };
    if (m->shared)
        choose_shares(m, n_threads);
    else
        choose_blocks(m, n_threads);
}

size_t qn_product_workspace(const QnProduct *m)
{
    int64_t each = m->shared ? m->scratch : QN_GEMM_SCRATCH;
    int64_t panels = m->shared ? m->chunk_n * m->steps : 0;
    return (size_t)(m->n_threads * each + panels) * sizeof(float);
}

typedef struct ProductRun {
    const QnProduct *m;
    const char *operand[4];
    float *scratch;
    QnGemm gemm;         /* of a shared product */
    QnGemmPanels panels; /* likewise */
} ProductRun;

static void run_unit(void *ctx, int worker, int64_t unit)
{
    const ProductRun *r = ctx;
    const QnProduct *m = r->m;
    QnGemm g = qn_matmul_at(&m->product, unit / m->n_n / m->n_m, r->operand);
    int64_t i = unit / m->n_n % m->n_m * m->block_m, j = unit % m->n_n * m->block_n;
    m->fns->block(&g, i, QN_MIN(i + m->block_m, g.m), j, QN_MIN(j + m->block_n, g.n),
                  r->scratch + (int64_t)worker * QN_GEMM_SCRATCH);
}

/* ---- shared products ---- */

static void pack_unit(void *ctx, int worker, int64_t unit)
{
    const ProductRun *r = ctx;
    int64_t j = r->panels.n0 + unit * QN_GEMM_GRAIN;
    (void)worker;
    r->m->fns->pack(&r->gemm, &r->panels, j, QN_MIN(j + QN_GEMM_GRAIN, r->panels.n1));
}

static void block_unit(void *ctx, int worker, int64_t unit)
{
    const ProductRun *r = ctx;
    const QnProduct *m = r->m;
    int64_t i = unit % m->n_m, j = r->panels.n0 + unit / m->n_m * m->block_n;
    int64_t tiles = blocks_of(r->gemm.m, m->fns->tile_rows);
    int64_t m0 = qn_cpu_part_begin(tiles, m->n_m, i) * m->fns->tile_rows;
    int64_t m1 = qn_cpu_part_begin(tiles, m->n_m, i + 1) * m->fns->tile_rows;
    m->fns->panels(&r->gemm, &r->panels, m0, QN_MIN(m1, r->gemm.m), j,
                   QN_MIN(j + m->block_n, r->panels.n1), r->scratch + worker * m->scratch);
}

static void run_shared(ProductRun *r, int threads)
{
    const QnProduct *m = r->m;
    int64_t n = m->product.gemm.n;
    for (int64_t batch = 0; batch < m->product.n_batch; batch++) {
        r->gemm = qn_matmul_at(&m->product, batch, r->operand);
        for (int64_t n0 = 0; n0 < n; n0 += m->chunk_n) {
            int64_t n1 = QN_MIN(n0 + m->chunk_n, n);
            r->panels.n0 = n0;
            r->panels.n1 = n1;
            qn_cpu_units(threads, blocks_of(n1 - n0, QN_GEMM_GRAIN), pack_unit, r);
            qn_cpu_units(threads, m->n_m * blocks_of(n1 - n0, m->block_n), block_unit, r);
        }
    }
}

void qn_product_run(const QnProduct *m, int n_threads, const char *const operand[4],
                    void *workspace)
{
    ProductRun r = { .m = m, .scratch = workspace };
    memcpy(r.operand, operand, sizeof r.operand);
    if (m->shared) {
        r.panels.n = m->chunk_n;
        r.panels.b = r.scratch + m->n_threads * m->scratch;
        r.panels.past_caches = m->chunk_n * m->steps > CACHED_FLOATS;
        run_shared(&r, n_threads);
    } else if (m->product.gemm.m && m->product.gemm.n) {
        qn_cpu_units(n_threads, m->product.n_batch * m->n_m * m->n_n, run_unit, &r);
    }
}

/* ---- kernels ---- */

QnStatus qn_product_prepare(QnPrepared *p, const QnMatmul *of, const QnGemmFns *fns)
{
    QnProduct *m = p->state = qn_alloc(sizeof *m);
    if (!m)
        return QN_ENOMEM;
    qn_product_init(m, of, fns, p->env->n_threads);
    p->workspace_bytes = qn_product_workspace(m);
    return QN_OK;
}

QnStatus qn_product_run_node(const QnPrepared *p, const void *const *in, void *const *out,
                             void *workspace)
{
    const char *const operand[] = { in[0], in[1], p->node->n_in > 2 ? in[2] : NULL, out[0] };
    qn_product_run(p->state, qn_cpu_threads(p), operand, workspace);
    return QN_OK;
}

void qn_product_fini(QnPrepared *p)
{
    qn_free(p->state);
}
