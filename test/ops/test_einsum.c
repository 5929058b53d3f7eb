/* Einstein sums against values worked out by hand, and the lowered graph against the reference. */
#include "values.h"

#include "pass/grad.h"

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

/* The same node, lowered, must give the same numbers. */
static void lowered_agrees(const char *equation, const QnShape *s, int n)
{
    Case c = case_new();
    QnValue *x[4];
    for (int k = 0; k < n; k++) {
        double data[256];
        int64_t count = qn_shape_count(&s[k]);
        for (int64_t i = 0; i < count; i++)
            data[i] = (double)((i * 37 + k * 11) % 23) - 11;
        x[k] = case_give(&c, F32, &s[k], data, (int)count);
    }
    QnValue *y = qn_einsum(c.g, equation, x, n), *low = NULL;
    assert_ok(qn_graph_check(c.g));
    qn_op_einsum.lower(c.g, y->node, &low);
    const double *want;
    assert_ok(qn_eval_get(c.e, y, &want));
    case_want(&c, low, &y->type.shape, want, (int)qn_shape_count(&y->type.shape));
    case_free(&c);
}

static void test_lowering(void **state)
{
    const QnShape m[] = { QN_SHAPE(3, 4), QN_SHAPE(4, 5), QN_SHAPE(5, 3) };
    lowered_agrees("ab,bc,ca->", m, 3);
    lowered_agrees("ab,bc,cd->da", m, 3);
    lowered_agrees("ba,bc->ac", (const QnShape[]){ QN_SHAPE(3, 4), QN_SHAPE(3, 2) }, 2);
    lowered_agrees("ab,cb->ca", (const QnShape[]){ QN_SHAPE(3, 4), QN_SHAPE(2, 4) }, 2);
    lowered_agrees("xaby,xbcz->xca",
                   (const QnShape[]){ QN_SHAPE(2, 3, 4, 2), QN_SHAPE(2, 4, 5, 3) }, 2);
    lowered_agrees("...ij,kj->...ik", (const QnShape[]){ QN_SHAPE(2, 1, 3, 4), QN_SHAPE(5, 4) }, 2);
    lowered_agrees("...i,...i->...", (const QnShape[]){ QN_SHAPE(2, 1, 3), QN_SHAPE(4, 3) }, 2);
    lowered_agrees("iji,jj->j", (const QnShape[]){ QN_SHAPE(3, 4, 3), QN_SHAPE(4, 4) }, 2);
    lowered_agrees("ab,ab,ab->b", (const QnShape[]){ m[0], m[0], m[0] }, 3);
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
