/* Einstein sums against values worked out by hand and against the definition. */
#include "values.h"

static QnValue *sum1(Case *c, const char *equation, QnValue *x)
{
    return qn_einsum(c->g, equation, &x, 1);
}

static QnValue *sum2(Case *c, const char *equation, QnValue *x, QnValue *y)
{
    return qn_einsum(c->g, equation, (QnValue *[]){ x, y }, 2);
}

static void test_values(void **state)
{
    Case c = case_new();
    QnValue *a = GIVE(&c, F32, QN_SHAPE(2, 2), 1, 2, 3, 4), *v = GIVE(&c, F32, QN_SHAPE(2), 5, 6);
    WANT(&c, sum2(&c, "ij,j->i", a, v), QN_SHAPE(2), 17, 39);
    WANT(&c, sum2(&c, "ij,i", a, v), QN_SHAPE(2), 23, 34);
    WANT(&c, sum2(&c, "i,j->ij", v, v), QN_SHAPE(2, 2), 25, 30, 30, 36);
    WANT(&c, sum1(&c, "ii->i", a), QN_SHAPE(2), 1, 4);
    WANT(&c, sum1(&c, "ii", a), ((QnShape){ 0 }), 5);
    WANT(&c, sum1(&c, "...j->j...", a), QN_SHAPE(2, 2), 1, 3, 2, 4);
    WANT(&c, sum2(&c, "ij,kl->", a, a), ((QnShape){ 0 }), 100);
    case_free(&c);
}

/* One operand of a plain equation: its letters, its shape, its elements. */
typedef struct Operand {
    const char *names;
    const QnShape *s;
    const double *x;
} Operand;

static int64_t offset(const Operand *o, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < o->s->rank; i++) /* an axis of length 1 broadcasts */
        at = at * o->s->dim[i] + (o->s->dim[i] == 1 ? 0 : index[(unsigned char)o->names[i]]);
    return at;
}

/* Every combination of the letters' indices, as the definition has it. */
static void sum_up(const Operand *in, int n, const Operand *out, double *y)
{
    int64_t size[128] = { 0 }, index[128] = { 0 };
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < in[k].s->rank; i++) {
            int64_t *have = &size[(unsigned char)in[k].names[i]];
            *have = QN_MAX(*have, in[k].s->dim[i]);
        }
    }
    for (int c = 0; c < 128;) {
        double product = 1;
        for (int k = 0; k < n; k++)
            product *= in[k].x[offset(&in[k], index)];
        y[offset(out, index)] += product;
        for (c = 0; c < 128 && ++index[c] >= size[c]; c++)
            index[c] = 0;
    }
}

/* The equation gives what its plain form means: names of each operand, then of the result. */
static void agrees(const char *equation, const char *const *plain, const QnShape *s, int n)
{
    Case c = case_new();
    QnValue *x[4];
    Operand in[4];
    static double data[4][256];
    double want[256] = { 0 };
    for (int k = 0; k < n; k++) {
        int64_t count = qn_shape_count(&s[k]);
        for (int64_t i = 0; i < count; i++)
            data[k][i] = (double)((i * 37 + k * 11) % 23) - 11;
        x[k] = case_give(&c, F32, &s[k], data[k], (int)count);
        in[k] = (Operand){ plain[k], &s[k], data[k] };
    }
    QnValue *y = qn_einsum(c.g, equation, x, n);
    assert_ok(qn_graph_check(c.g));
    sum_up(in, n, &(Operand){ plain[n], &y->type.shape, NULL }, want);
    case_want(&c, y, &y->type.shape, want, (int)qn_shape_count(&y->type.shape));
    case_free(&c);
}

#define PLAIN(...)  ((const char *const[]){ __VA_ARGS__ })
#define SHAPES(...) ((const QnShape[]){ __VA_ARGS__ })

static void test_definition(void **state)
{
    const QnShape m = QN_SHAPE(3, 4), p = QN_SHAPE(4, 5);
    agrees("ab,bc,ca->", PLAIN("ab", "bc", "ca", ""), SHAPES(m, p, QN_SHAPE(5, 3)), 3);
    agrees("ab,bc,cd->da", PLAIN("ab", "bc", "cd", "da"), SHAPES(m, p, QN_SHAPE(5, 3)), 3);
    agrees("ba,bc->ac", PLAIN("ba", "bc", "ac"), SHAPES(m, QN_SHAPE(3, 2)), 2);
    agrees("ab,cb->ca", PLAIN("ab", "cb", "ca"), SHAPES(m, QN_SHAPE(2, 4)), 2);
    agrees("xaby,xbcz->xca", PLAIN("xaby", "xbcz", "xca"),
           SHAPES(QN_SHAPE(2, 3, 4, 2), QN_SHAPE(2, 4, 5, 3)), 2);
    agrees("bhqd,bhkd->bhqk", PLAIN("bhqd", "bhkd", "bhqk"),
           SHAPES(QN_SHAPE(2, 3, 4, 2), QN_SHAPE(2, 3, 5, 2)), 2);
    agrees("...ij,kj->...ik", PLAIN("xyij", "kj", "xyik"), SHAPES(QN_SHAPE(2, 1, 3, 5), p), 2);
    agrees("...i,...i->...", PLAIN("xyi", "yi", "xy"), SHAPES(QN_SHAPE(2, 1, 4), m), 2);
    agrees("iji,jj->j", PLAIN("iji", "jj", "j"), SHAPES(QN_SHAPE(3, 4, 3), QN_SHAPE(4, 4)), 2);
    agrees("ab,ab,ab->b", PLAIN("ab", "ab", "ab", "b"), SHAPES(m, m, m), 3);
    agrees("iiii->i", PLAIN("iiii", "i"), SHAPES(QN_SHAPE(3, 3, 3, 3)), 1);
}

static void test_wrong_equations_are_refused(void **state)
{
    static const struct {
        const char *equation, *words;
        QnStatus status;
    } bad[] = {
        { "ij", "fewer terms", QN_EARG },          { "ij,jk,k", "more terms", QN_EARG },
        { "ij,jk->iz", "no operand", QN_EARG },    { "ij,jk->ii", "twice", QN_EARG },
        { "ij,j1k->i", "letters", QN_EARG },       { "ijk,jk->i", "names 3 axes", QN_ESHAPE },
        { "ij,ik->j", "elsewhere", QN_ESHAPE },    { "ij,jk->ik->k", "goes on", QN_EARG },
        { "i,jk->ik", "names 1 axes", QN_ESHAPE }, { "ij,jk-ik", "more terms", QN_EARG },
    };
    for (int i = 0; i < QN_COUNT(bad); i++) {
        Case c = case_new();
        QnValue *a = qn_input(c.g, "a", F32, &QN_SHAPE(2, 3));
        QnValue *b = qn_input(c.g, "b", F32, &QN_SHAPE(3, 4));
        case_want_refused(&c, sum2(&c, bad[i].equation, a, b), bad[i].status, bad[i].words);
        case_free(&c);
    }
}
