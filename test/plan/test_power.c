/* Power of devices and of the machines around them. */
#include "test.h"

#include "plan/figures.h"
#include "plan/power.h"

#include <math.h>

static const QnCard *card_of(const QnCatalogue *c, const char *name)
{
    const QnCard *card;
    assert_ok(qn_catalogue_find(c, name, &card));
    return card;
}

static void test_parts(void **state)
{
    QnCatalogue c;
    QnFleet f;
    assert_ok(qn_catalogue_open(&c));
    assert_ok(qn_fleet_open(&f));
    QnPowerRequest r = { .card = card_of(&c, "H100 SXM5 80GB"), .n = 8, .cap = 1, .nodes = 1 };
    double idle = qn_power_w(&r, &f);
    r.share[QN_POWER_LAUNCH] = 1;
    double launch = qn_power_w(&r, &f);
    r.share[QN_POWER_LAUNCH] = 0;
    r.share[QN_POWER_PRODUCTS] = 1;
    double busy = qn_power_w(&r, &f);
    assert_true(idle > 8 * 700 * 0.05 && idle < 8 * 700 * 0.2);
    assert_true(launch > idle && launch < busy && busy > 8 * 700 * 0.85 && busy < 8 * 700 * 1.1);
    r.share[QN_POWER_PRODUCTS] = 0;
    r.waits = 1; /* awake, nothing runs */
    assert_true(qn_power_w(&r, &f) > idle && qn_power_w(&r, &f) < 0.5 * launch);
    r.waits = 0;
    r.share[QN_POWER_PRODUCTS] = 1;
    r.cap = 0.5;
    assert_true(qn_power_w(&r, &f) < 0.62 * busy);
    r.cap = 1;
    r.host = QN_POWER_SERVER;
    double node = qn_power_w(&r, &f); /* published: 1.02 to 1.26 of the devices' limits */
    assert_true(node > 1.1 * 5600 && node < 1.4 * 5600);
    r.direct = true;
    assert_true(qn_power_w(&r, &f) < node && qn_power_w(&r, &f) > 0.9 * node);
    r.direct = false;
    r.nodes = 64;
    assert_true(qn_power_w(&r, &f) < 0.9 * node);
    qn_catalogue_fini(&c);
}

static void test_clock(void **state)
{
    assert_true(qn_power_clock(1) == 1 && qn_power_clock(1.2) == 1);
    double half = qn_power_clock(0.5);
    assert_true(half > 0.65 && half < 0.8); /* half of the power leaves most of the clock */
}

static void test_table(void **state)
{
    static const char text[] =
        "kind,gpu,num_gpus,workload,value,unit,notes,source\n"
        "gpu-peak,RTX 3090,1,resnet50 train bs256,370,W,board power; 400 W limit,s\n"
        "system-avg,Jetson Orin NX 16GB,1,bert-99 offline inference,17,W,Orin_NX_TRT_MaxQ,s\n"
        "system-wall-peak,RTX 4090,1,deepseek 14b q4_k_m decode,464,W,whole PC (x),s\n"
        "system-avg,T4,1,bert,17,J,x,s\n"
        "system-avg,Abacus,1,bert,17,W,x,s\n";
    QnCatalogue c;
    QnFleet f;
    QnFigures s;
    assert_ok(qn_catalogue_open(&c));
    assert_ok(qn_fleet_open(&f));
    assert_ptr_equal(qn_figures_kind(text, strlen(text)), &qn_figures_power);
    assert_ok(qn_figures_parse(&s, &qn_figures_power, &c, NULL, "p.csv", text, strlen(text)));
    assert_ok(qn_figures_score(&s, &f, NULL));
    for (int i = 0; i < 3; i++)
        assert_true(s.rows[i].error >= 0 && s.rows[i].error < 0.3);
    assert_true(strstr(s.rows[3].reason, "unit") && strstr(s.rows[4].reason, "catalogue"));
    qn_figures_fini(&s);
    assert_fails(qn_figures_parse(&s, &qn_figures_power, &c, NULL, "p.csv",
                                  "kind,gpu,num_gpus,workload,value,unit,notes\na,T4,0,x,1,W,\n",
                                  58),
                 QN_EFORMAT, "p.csv:2: num_gpus");
    qn_catalogue_fini(&c);
}
