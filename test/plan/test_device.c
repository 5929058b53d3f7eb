/* The catalogue: the embedded one, and what is refused. */
#include "test.h"

#include "plan/coef.h"

#define HEAD                                                                                       \
    "name,vendor,arch,year,class,shader_cores,sm_or_cu,boost_mhz,mem_gb,mem_type,mem_bw_gbs,"      \
    "l2_mb,fp32_tflops,tf32_tflops,fp16_tc_tflops_dense,bf16_tc_tflops_dense,fp8_tflops_dense,"    \
    "int8_tops_dense,fp64_tflops,tdp_w,interconnect,interconnect_gbs,pcie_gen,launch_price_usd,"   \
    "cloud_usd_per_hour,notes,source\n"
#define ROW(name, gb) name ",V,A,2020,c,,8,," gb ",H,100,,1,,2,,,,,50,,,,,,n,s\n"

static QnStatus parse(QnCatalogue *c, const char *text)
{
    return qn_catalogue_parse(c, "d.csv", text, strlen(text));
}

static void test_embedded(void **state)
{
    QnCatalogue c;
    const QnCard *card;
    assert_ok(qn_catalogue_open(&c));
    assert_true(c.n_cards >= 139);
    assert_ok(qn_catalogue_find(&c, "a100 sxm4 80gb", &card));
    assert_string_equal(card->name, "A100 SXM4 80GB");
    assert_true(card->bf16 == 312 && card->tf32 == 156 && card->bandwidth_gbs == 2039);
    assert_fails(qn_catalogue_find(&c, "A100 SXM5 80GB", &card), QN_ENOTFOUND, "A100 SXM4 80GB");
    assert_fails(qn_catalogue_find(&c, "A100", &card), QN_ENOTFOUND, "say which");
    assert_fails(qn_catalogue_find(&c, "", &card), QN_ENOTFOUND, "no device");
    qn_catalogue_fini(&c);
}

static void test_rows(void **state)
{
    QnCatalogue c;
    assert_ok(parse(&c, HEAD ROW("X", "8") ROW("Y", "16")));
    assert_int_equal(c.n_cards, 2);
    assert_true(c.cards[1].memory_gb == 16 && c.cards[1].fp16 == 2 && c.cards[1].fp8 == 0);
    qn_catalogue_fini(&c);
    assert_fails(parse(&c, ""), QN_EFORMAT, "d.csv");
    assert_fails(parse(&c, HEAD), QN_EFORMAT, "no devices");
    assert_fails(parse(&c, "name\nX\n"), QN_EFORMAT, "d.csv:1: no column 'vendor'");
    assert_fails(parse(&c, HEAD "X,V\n"), QN_EFORMAT, "d.csv:2: 2 cells");
    assert_fails(parse(&c, HEAD ROW("X", "8") ROW("Y", "-1")), QN_EFORMAT, "d.csv:3: column 'mem_");
    assert_fails(parse(&c, HEAD ROW("X", "nan")), QN_EFORMAT, "'mem_gb'");
    assert_fails(parse(&c, HEAD ROW("X", "1e9")), QN_EFORMAT, "out of range");
    assert_fails(parse(&c, HEAD ROW("X", "")), QN_EFORMAT, "every device needs it");
    assert_fails(parse(&c, HEAD ROW("X:2", "8")), QN_EFORMAT, "d.csv:2: 'X:2': a ':' in a name");
    assert_fails(parse(&c, HEAD ROW("X=2", "8")), QN_EFORMAT, "'='");
    assert_fails(parse(&c, HEAD ROW("X\xff", "8")), QN_EFORMAT, "byte 2 of the name");
    assert_ok(parse(&c, "name,vendor,arch,year,class,mem_gb,mem_bw_gbs,fp32_tflops,source\n"
                        "X\xc3\xa9,V,A,2020,edge,8,100,2,s\n"));
    assert_true(c.cards[0].fp32 == 2 && c.cards[0].fp16 == 0 && !c.cards[0].notes[0]);
    qn_catalogue_fini(&c);
    assert_fails(parse(&c, HEAD ROW("X", "8") ROW("x", "8")), QN_EFORMAT, "line 2 already");
}

/* Rows of one's own come behind the embedded ones, or not at all. */
static void test_more_rows(void **state)
{
    QnCatalogue c;
    static const char more[] = HEAD ROW("X", "8") ROW("Y", "16");
    static const char again[] = HEAD ROW("Z", "8") ROW("rtx 4090", "16");
    static const char twice[] = HEAD ROW("Z", "8") ROW("z", "16");
    const QnCard *card;
    assert_ok(qn_catalogue_open(&c));
    int n = c.n_cards;
    assert_ok(qn_catalogue_add(&c, "m.csv", more, strlen(more)));
    assert_int_equal(c.n_cards, n + 2);
    assert_ok(qn_catalogue_find(&c, "Y", &card));
    assert_true(card->memory_gb == 16);
    assert_ok(qn_catalogue_find(&c, "RTX 4090", &card));
    assert_fails(qn_catalogue_add(&c, "m.csv", again, strlen(again)), QN_EFORMAT,
                 "m.csv:3: 'rtx 4090' is in the catalogue already");
    assert_fails(qn_catalogue_add(&c, "m.csv", twice, strlen(twice)), QN_EFORMAT,
                 "m.csv:3: 'z' stands in line 2 already");
    assert_int_equal(c.n_cards, n + 2);
    qn_catalogue_fini(&c);
}

static void test_coefficients(void **state)
{
    QnCoefs c;
    static const char good[] = "coefficient,value\npytorch.conv,0.5\nvolta.memory,1.25\n";
    static const char wrong[] = "coefficient,value\npytorch.cnov,0.5\n";
    static const char wide[] = "coefficient,value\npytorch.conv,50\n";
    assert_ok(qn_coefs_open(&c));
    assert_ok(qn_coefs_parse(&c, "c.csv", good, strlen(good)));
    assert_true(c.tier[QN_TIER_EAGER][QN_COEF_CONV] == 0.5);
    assert_true(c.tier[QN_TIER_QUERN][QN_COEF_CONV] != 0.5);
    assert_fails(qn_coefs_parse(&c, "c.csv", wrong, strlen(wrong)), QN_EFORMAT, "c.csv:2");
    assert_fails(qn_coefs_parse(&c, "c.csv", wide, strlen(wide)), QN_EFORMAT, "out of its range");
    for (int i = 0; i < QN_COEF_COUNT; i++) {
        QnCoefInfo info = qn_coef_info(i);
        assert_true(info.name[0] && info.min <= info.start && info.start <= info.max);
    }
}
