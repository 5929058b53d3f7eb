#include "backend/cpu/move.h"

#include "backend/cpu/cpu.h"

#include <string.h>

enum { UNIT = 16384, PIECE = 65536, TURN_COLUMNS = 64 };

/* Leaves out axes of length 1 and joins neighbours that lie in memory as one. */
static int collapse(const QnShape *s, const int64_t *from, const int64_t *to, QnMove *m)
{
    int rank = 0;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] == 1)
            continue;
        int p = rank - 1;
        if (p >= 0 && m->from[p] == from[i] * s->dim[i] && m->to[p] == to[i] * s->dim[i]) {
            m->dim[p] *= s->dim[i];
            m->from[p] = from[i];
            m->to[p] = to[i];
            continue;
        }
        m->dim[rank] = s->dim[i];
        m->from[rank] = from[i];
        m->to[rank++] = to[i];
    }
    return rank;
}

static void drop_axis(QnMove *m, int axis)
{
    for (int i = axis; i + 1 < m->rank; i++) {
        m->dim[i] = m->dim[i + 1];
        m->from[i] = m->from[i + 1];
        m->to[i] = m->to[i + 1];
    }
    m->rank--;
}

void qn_move_init(QnMove *m, const QnShape *s, const int64_t *from, int64_t from_at,
                  const int64_t *to, int64_t to_at, size_t size, const char *isa)
{
    *m = (QnMove){ .size = size, .from_at = from_at, .to_at = to_at, .blocks = 1, .n = 1 };
    m->n_from = m->n_to = m->m = m->m_to = m->pieces = 1;
    if (qn_shape_count(s) == 0) {
        m->blocks = 0;
        return;
    }
    m->rank = collapse(s, from, to, m);
    if (m->rank) {
        int last = m->rank - 1;
        m->n = m->dim[last];
        m->n_from = m->from[last];
        m->n_to = m->to[last];
        m->rank--;
    }
    m->how = m->n_from == 1 && m->n_to == 1 ? QN_MOVE_RUNS : QN_MOVE_STRIDED;
    for (int i = 0; i < m->rank && m->how == QN_MOVE_STRIDED; i++) {
        if (size == sizeof(float) && m->n_to == 1 && m->n_from > 0 && m->from[i] == 1) {
            m->how = QN_MOVE_TURN;
            m->m = m->dim[i];
            m->m_to = m->to[i];
            m->turn = qn_relayout_find(isa);
            drop_axis(m, i);
        }
    }
    for (int i = 0; i < m->rank; i++)
        m->blocks *= m->dim[i];
    bool turns = m->how == QN_MOVE_TURN;
    m->piece = turns ? QN_MAX(TURN_COLUMNS, UNIT / m->n) : PIECE;
    m->pieces = ((turns ? m->m : m->n) + m->piece - 1) / m->piece;
    m->unit_blocks = m->pieces > 1 ? 1 : QN_MAX(1, UNIT / (m->n * m->m));
}

typedef struct MoveRun {
    const QnMove *m;
    const char *from;
    char *to;
} MoveRun;

static void copy_strided(const QnMove *m, const char *from, char *to, int64_t n)
{
    int64_t a = m->n_from, b = m->n_to;
    switch (m->size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            to[i * b] = from[i * a];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 2 * i * b, from + 2 * i * a, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 4 * i * b, from + 4 * i * a, 4);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 8 * i * b, from + 8 * i * a, 8);
        break;
    }
}

static void copy_block(const MoveRun *r, int64_t from_at, int64_t to_at, int64_t piece)
{
    const QnMove *m = r->m;
    int64_t begin = piece * m->piece, size = (int64_t)m->size;
    if (m->how == QN_MOVE_TURN) {
        int64_t columns = QN_MIN(m->piece, m->m - begin);
        const void *from = r->from + (from_at + begin) * size;
        void *to = r->to + (to_at + begin * m->m_to) * size;
        m->turn(from, m->n_from, m->n, columns, to, m->m_to);
        return;
    }
    int64_t n = QN_MIN(m->piece, m->n - begin);
    const char *from = r->from + (from_at + begin * m->n_from) * size;
    char *to = r->to + (to_at + begin * m->n_to) * size;
    if (m->how == QN_MOVE_RUNS)
        memcpy(to, from, (size_t)n * m->size);
    else
        copy_strided(m, from, to, n);
}

static void move_unit(void *ctx, int64_t unit)
{
    const MoveRun *r = ctx;
    const QnMove *m = r->m;
    int64_t first = unit / m->pieces * m->unit_blocks;
    int64_t end = QN_MIN(first + m->unit_blocks, m->blocks), rest = first;
    int64_t index[QN_MAX_RANK], from = m->from_at, to = m->to_at;
    for (int i = m->rank - 1; i >= 0; i--) {
        index[i] = rest % m->dim[i];
        rest /= m->dim[i];
        from += index[i] * m->from[i];
        to += index[i] * m->to[i];
    }
    for (int64_t b = first; b < end; b++) {
        copy_block(r, from, to, unit % m->pieces);
        for (int i = m->rank - 1; i >= 0; i--) {
            from += m->from[i];
            to += m->to[i];
            if (++index[i] < m->dim[i])
                break;
            from -= m->dim[i] * m->from[i];
            to -= m->dim[i] * m->to[i];
            index[i] = 0;
        }
    }
}

void qn_move_run(const QnMove *m, int n_threads, const void *from, void *to)
{
    MoveRun r = { m, from, to };
    if (m->blocks)
        qn_cpu_parallel(n_threads, (m->blocks + m->unit_blocks - 1) / m->unit_blocks * m->pieces,
                        move_unit, &r);
}

typedef struct RowsRun {
    int64_t rows, unit_rows;
    size_t bytes, from_step, to_step;
    const char *from;
    char *to;
} RowsRun;

static void rows_unit(void *ctx, int64_t unit)
{
    const RowsRun *r = ctx;
    int64_t end = QN_MIN((unit + 1) * r->unit_rows, r->rows);
    for (int64_t i = unit * r->unit_rows; i < end; i++)
        memcpy(r->to + (size_t)i * r->to_step, r->from + (size_t)i * r->from_step, r->bytes);
}

void qn_move_rows(int n_threads, int64_t rows, size_t bytes, const void *from, size_t from_step,
                  void *to, size_t to_step)
{
    RowsRun r = { rows, 1, bytes, from_step, to_step, from, to };
    if (!rows || !bytes)
        return;
    r.unit_rows = QN_MAX(1, (int64_t)(PIECE / bytes));
    qn_cpu_parallel(n_threads, (rows + r.unit_rows - 1) / r.unit_rows, rows_unit, &r);
}

void qn_move_all(int n_threads, size_t bytes, const void *from, void *to)
{
    size_t whole = bytes / PIECE * PIECE;
    qn_move_rows(n_threads, (int64_t)(bytes / PIECE), PIECE, from, PIECE, to, PIECE);
    memcpy((char *)to + whole, (const char *)from + whole, bytes - whole);
}
