/* Collectives: what must hold of any model of them, and the topologies. */
#include "test.h"

#include "plan/comm.h"
#include "plan/figures.h"

#include <math.h>

static QnLinks links_of(const char *name, double network)
{
    QnCatalogue c;
    const QnCard *card;
    assert_ok(qn_catalogue_open(&c));
    assert_ok(qn_catalogue_find(&c, name, &card));
    QnLinks l = qn_links_of(card, network);
    qn_catalogue_fini(&c);
    return l;
}

/* The rings that NCCL builds on a DGX-1: measured rates are multiples of one link's by them. */
static void test_mesh(void **state)
{
    static const int rings[] = { 1, 2, 4, 2, 2, 4, 6 };
    QnFleet f;
    qn_fleet_start(&f);
    QnLinks l = links_of("V100 SXM2 16GB", 0);
    assert_int_equal(l.kind, QN_LINK_MESH);
    double one = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 2, 2, 1e9);
    for (int n = 2; n <= 8; n++) {
        assert_int_equal(qn_mesh_rings(n), rings[n - 2]);
        double s = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, n, n, 1e9);
        double expected = one * (2.0 * (n - 1) / n) / rings[n - 2];
        assert_true(fabs(s / expected - 1) < 0.05);
    }
}

static void test_kinds(void **state)
{
    assert_int_equal(links_of("A100 SXM4 80GB", 0).kind, QN_LINK_SWITCH);
    assert_false(links_of("A100 SXM4 80GB", 0).reduces);
    assert_true(links_of("H100 SXM5 80GB", 0).reduces);
    assert_int_equal(links_of("RTX 4090", 0).kind, QN_LINK_HOST);
    assert_int_equal(links_of("GTX 1080 Ti", 0).kind, QN_LINK_PCIE);
    assert_int_equal(links_of("RTX A6000", 0).bridged, 2);
    assert_int_equal(links_of("GB200", 0).per_node, 72);
    assert_int_equal(links_of("GH200 96GB", 0).per_node, 1);
    assert_true(links_of("L40S", 0).pcie == 31.5e9 && links_of("A2", 0).pcie == 15.75e9);
    assert_true(links_of("H100 SXM5 80GB", 12.5).network == 12.5e9);
}

static void test_limits(void **state)
{
    QnFleet f;
    qn_fleet_start(&f);
    QnLinks l = links_of("A100 SXM4 80GB", 25);
    double small = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 8, 8, 8);
    double large = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 8, 8, 8e9);
    assert_true(qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 1, 8, 1e9) == 0);
    assert_true(small > 20e-6 && small < 200e-6); /* latency alone */
    assert_true(large > 1.75 * 8e9 / 300e9 && large < 1.75 * 8e9 / 150e9);
    /* scatter and gather are an all-reduce */
    double parts = qn_comm_s(&l, &f, QN_COMM_REDUCE_SCATTER, 8, 8, 8e9) +
                   qn_comm_s(&l, &f, QN_COMM_ALL_GATHER, 8, 8, 8e9);
    assert_true(fabs(parts / large - 1) < 0.02);
    for (int op = 0; op < QN_COLLECTIVES; op++) {
        double before = 0;
        for (double bytes = 1e3; bytes < 1e10; bytes *= 4) {
            double s = qn_comm_s(&l, &f, (QnCollective)op, 64, 8, bytes);
            assert_true(s > before);
            before = s;
        }
    }
}

/* Two levels: eight cards' network cards carry an eighth each; one card a node has one. */
static void test_nodes(void **state)
{
    QnFleet f;
    qn_fleet_start(&f);
    QnLinks l = links_of("A100 SXM4 80GB", 25);
    double full = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 64, 8, 8e9);
    double thin = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 8, 1, 8e9);
    assert_true(thin > 3 * full);
    /* many nodes: trees keep latency at the logarithm */
    double few = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 64, 8, 1e4);
    double many = qn_comm_s(&l, &f, QN_COMM_ALL_REDUCE, 8192, 8, 1e4);
    assert_true(many < 10 * few);
    double packed = qn_comm_compressed_s(&l, &f, 64, 8, 8e9, 4, 1.6e12);
    assert_true(packed < 0.45 * full && packed > full / 5);
    assert_true(qn_comm_compressed_s(&l, &f, 64, 8, 8e9, 1, 1.6e12) == full);
}

static void test_table(void **state)
{
    QnFleet f;
    assert_ok(qn_fleet_open(&f));
    assert_fails(qn_fleet_parse(&f, "f.csv", "coefficient,value\nswitch.share,7\n", 33), QN_EFORMAT,
                 "f.csv:2: switch.share is 7");
    assert_fails(qn_fleet_parse(&f, "f.csv", "coefficient,value\nno,7\n", 23), QN_EFORMAT,
                 "no coefficient 'no'");
}

/* Rows made by one set of coefficients: the fit finds them again, and the score says so. */
static void test_fit(void **state)
{
    QnCatalogue c;
    QnFigures s;
    QnFleet truth, f;
    QnFigureSum sum;
    char text[8192] = "gpu,num_gpus,bytes,time_ns,busbw_gbs,source\n";
    size_t used = strlen(text);
    QnLinks l = links_of("A100 SXM4 40GB", 0);
    qn_fleet_start(&truth);
    truth.x[QN_FLEET_LINK + QN_LINK_SHARE] = 0.5;
    truth.x[QN_FLEET_LINK + QN_LINK_FLOOR_US] = 70;
    for (int n = 2; n <= 8; n += 2)
        for (double bytes = 1 << 16; bytes < 1e9; bytes *= 8)
            used += (size_t)snprintf(text + used, sizeof text - used, "A100 SXM4,%d,%.0f,%.9g,,s\n",
                                     n, bytes,
                                     1e9 * qn_comm_s(&l, &truth, QN_COMM_ALL_REDUCE, n, n, bytes));
    assert_ptr_equal(qn_figures_kind(text, used), &qn_figures_comm);
    assert_null(qn_figures_kind("gpu,b\n", 6));
    assert_ok(qn_catalogue_open(&c));
    assert_ok(qn_figures_parse(&s, &qn_figures_comm, &c, NULL, "a.csv", text, used));
    qn_fleet_start(&f);
    assert_ok(qn_figures_score(&s, &f, NULL));
    assert_ok(qn_figures_sum(&s, &f, 0, NULL, &sum));
    assert_true(sum.mean > 0.2 && sum.expressed == s.n);
    assert_ok(qn_figures_fit(&s, NULL, &f));
    assert_ok(qn_figures_score(&s, &f, NULL));
    assert_ok(qn_figures_sum(&s, &f, 0, NULL, &sum));
    assert_true(sum.mean < 0.03);
    assert_fails(qn_figures_score(&s, &f, "moon"), QN_EUSAGE, "expected gpu, model or group");
    qn_figures_fini(&s);
    assert_fails(qn_figures_parse(&s, &qn_figures_comm, &c, NULL, "a.csv",
                                  "gpu,num_gpus,bytes,time_ns,busbw_gbs\nT4,1,5,5,\n", 47),
                 QN_EFORMAT, "a.csv:2: num_gpus");
    qn_catalogue_fini(&c);
}
