# labels: tools
# The generators on a small tree: what they find, that an unchanged file is left alone, and that a
# deleted operator drops out.
. "$1/test/tools/shell.sh"
ops=$tmp/src/ops gen=$tmp/gen
mkdir -p "$ops"
cp "$src/test/tools/ops_sample.txt" "$ops/tanh.c"
printf 'QN_API QnNode *qn_add(QnGraph *g, QnNode *a, QnNode *b)\n{\n    return 0;\n}\nconst QnOp qn_op_add = {\n};\n' >"$ops/add.c"

run() { passes "$src/tools/gen_ops" "$ops" "$gen"; }
run
list=$gen/ops/ops_list.h
tr -d '\\\n' <"$list" | grep -q 'QN_OP_LIST(X)  *X(add)  *X(tanh)' || fail "list: $(cat "$list")"
has "$list" 'extern const QnOp qn_op_tanh;'
has "$gen/ops/ops.h" 'QN_API QnNode *qn_add(QnGraph *g, QnNode *a, QnNode *b);'
has "$gen/ops/ops.h" \
    'QN_API QnNode *qn_tanh(QnGraph *g, QnNode *x, float (*f)(float), const char *name);'
has "$gen/include/quern/ops.h" 'QnNode *qn_add(QnGraph *g, QnNode *a, QnNode *b);'
has "$gen/ops/ops.h" 'extern const char qn_text_tanh[]; /* NUL-terminated */'
has "$gen/ops/tiles.c" '#include "ops/tanh.c"'
grep -q 'add' "$gen/ops/tiles.c" && fail "add.c has no map"

# The embedded text is the file's own, byte for byte, after a #line.
cat >"$tmp/show.c" <<'C'
#include <stdio.h>
extern const char qn_text_tanh[];
int main(void) { fputs(qn_text_tanh, stdout); return 0; }
C
passes "${CC:-cc}" -Wall -Werror -o "$tmp/show" "$tmp/show.c" "$gen/ops/ops_text.c"
"$tmp/show" >"$tmp/shown"
{ echo '#line 1 "ops/tanh.c"'; cat "$ops/tanh.c"; } >"$tmp/expected"
passes cmp "$tmp/shown" "$tmp/expected"

touch -d '2001-01-01' "$list" "$gen/ops/ops.h" "$gen/ops/ops_text.c"
run
[ -z "$(find "$gen" -name 'ops*' -type f -newermt '2002-01-01' -path '*/gen/ops/*')" ] ||
    fail "rewrote files that did not change"

rm "$ops/tanh.c"
run
grep -q tanh "$list" "$gen/ops/ops.h" "$gen/ops/ops_text.c" && fail "a deleted operator stayed"

cp "$ops/add.c" "$ops/again.c"
refuses 'defined twice: qn_op_add' "$src/tools/gen_ops" "$ops" "$gen"
rm "$ops"/*.c
run
has "$list" '#define QN_OP_LIST(X)'

kernels=$tmp/src/backend/cpu
mkdir -p "$kernels"
printf 'const QnKernel qn_kernel_b = {\n};\nconst QnKernel qn_kernel_a = {\n};\n' >"$kernels/k.c"
passes "$src/tools/gen_kernels" "$kernels" "$gen/backend/cpu"
tr -d '\\\n' <"$gen/backend/cpu/kernels_list.h" | grep -q 'QN_KERNEL_LIST(X)  *X(a)  *X(b)' ||
    fail "kernels: $(cat "$gen/backend/cpu/kernels_list.h")"

printf 'static void test_one(void **state)\n{\n}\nstatic int setup(void **state)\n{\n}\n' >"$tmp/t.c"
passes "$src/tools/gen_tests" "$tmp/t.c" area.t "$tmp/t_main.c"
has "$tmp/t_main.c" '        cmocka_unit_test_setup_teardown(test_one, setup, NULL),'

# The stand-in for cmocka counts what fails and nothing else.
cat >"$tmp/t.c" <<'C'
#include <cmocka.h>
static int torn_down;
static void test_passes(void **state)
{
    assert_int_equal(-1, -1);
    assert_true(*state == &torn_down);
}
static void test_number(void **state)
{
    assert_in_range(4, 1, 3);
}
static void test_text(void **state)
{
    assert_string_equal("a", "b");
}
static void test_skips(void **state)
{
    skip();
}
static void test_torn_down(void **state)
{
    assert_int_equal(torn_down, 4);
}
static int setup(void **state)
{
    *state = &torn_down;
    return 0;
}
static int teardown(void **state)
{
    torn_down++;
    return 0;
}
C
passes "$src/tools/gen_tests" "$tmp/t.c" area.t "$tmp/t_main.c"
passes "${CC:-cc}" -I "$src/test/fallback" -o "$tmp/t" "$tmp/t_main.c"
refuses 'area.t: 2 of 5 failed' "$tmp/t"
for line in '[ OK ] area.t.test_passes' '[ FAILED ] area.t.test_number' '[ FAILED ] area.t.test_text' \
    '[ SKIPPED ] area.t.test_skips' '[ OK ] area.t.test_torn_down'; do
    has "$tmp/out" "$line"
done

# What ends the process within a test does not pass, whatever status it gives.
printf '#include <cmocka.h>\n#include <stdlib.h>\nstatic void test_ends(void **state)\n{\n    exit(0);\n}\n' >"$tmp/t.c"
passes "$src/tools/gen_tests" "$tmp/t.c" area.t "$tmp/t_main.c"
passes "${CC:-cc}" -I "$src/test/fallback" -o "$tmp/t" "$tmp/t_main.c"
refuses 'area.t: exit within a test' "$tmp/t"

printf 'int x;\n' >"$tmp/t.c"
refuses "has no 'static void test_x" "$src/tools/gen_tests" "$tmp/t.c" area.t "$tmp/t_main.c"
finish
