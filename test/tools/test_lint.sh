# labels: tools
# Plants one violation after another in a small tree: each check must find it, and pass without it.
. "$1/test/tools/shell.sh"
tree=$tmp/tree

fresh()
{
    rm -rf "$tree"
    mkdir -p "$tree/src/base" "$tree/src/ir" "$tree/src/ops" "$tree/src/backend/cpu" \
        "$tree/src/backend/null" "$tree/src/cli"
    cp "$src/layers.txt" "$tree/"
    printf 'int qn_a(void)\n{\n    return 1;\n}\n' >"$tree/src/base/a.c"
    printf '#include "base/a.h"\n\nstatic int b(void)\n{\n    return 1;\n}\n' >"$tree/src/ir/b.c"
    printf 'const QnOp qn_op_add = {\n    .name = "add",\n};\n' >"$tree/src/ops/add.c"
}

# plant FILE TEXT (printf escapes)
plant()
{
    fresh
    printf "$2" >>"$tree/$1"
}

fresh
for check in layers names size text; do
    passes "$src/tools/check_$check" "$tree"
done

layers=$src/tools/check_layers
plant src/base/a.c '#include "ir/b.h"\n'
refuses 'src/base/a.c:5: base must not include ir' "$layers" "$tree"
plant src/ops/add.c '#  include "rt/device.h"\n'
refuses 'ops must not include rt' "$layers" "$tree"
plant src/backend/cpu/k.c '#include "backend/null/x.h"\n'
refuses 'backend cpu must not see backend null' "$layers" "$tree"
plant src/backend/cpu/k.c '#include "backend/cpu/x.h"\n#include "rt/device.h"\n#include "quern/quern.h"\n'
passes "$layers" "$tree"
plant src/backend/cpu/k.c '#include "x.h"\n'
refuses 'as "area/file.h"' "$layers" "$tree"
plant src/ir/b.c '#include "nowhere/x.h"\n'
refuses 'does not know the area nowhere' "$layers" "$tree"

names=$src/tools/check_names
plant src/base/a.c 'int plain(int a,\n          int b)\n{\n    return a + b;\n}\n'
refuses 'src/base/a.c:5: the exported plain must start with qn_' "$names" "$tree"
plant src/base/a.c 'static int qn_hidden(void)\n{\n    return 1;\n}\n'
refuses 'the static qn_hidden must not start with qn_' "$names" "$tree"
plant src/base/a.c 'typedef struct A {\n    int x;\n} a_t;\n'
refuses 'must not end in _t' "$names" "$tree"
plant src/base/a.c 'typedef int (*cb_t)(void);\n'
refuses 'must not end in _t' "$names" "$tree"
plant src/ops/add.c 'static const QnOp qn_op_sub = {\n};\n'
refuses 'write the descriptor as: const QnOp' "$names" "$tree"
plant src/ops/add.c 'const QnOp qn_op_sub = { .name = "sub" };\n'
refuses 'write the descriptor as: const QnOp' "$names" "$tree"
plant src/backend/cpu/k.c 'const QnKernel  qn_kernel_x = {\n};\n'
refuses 'write the descriptor as: const QnKernel' "$names" "$tree"
plant src/cli/main.c 'int main(void)\n{\n    return 0;\n}\n'
passes "$names" "$tree"
plant src/ops/add.c 'QN_KERNEL add(QN_GLOBAL float *y)\n{\n    y[0] = 1;\n}\n'
passes "$names" "$tree"

size=$src/tools/check_size
lines() { awk -v n="$1" -v t="$2" 'BEGIN { for (i = 0; i < n; i++) print t }'; }
fresh
lines 810 '/* x */' >>"$tree/src/base/a.c"
refuses 'src/base/a.c: 814 lines, over 800' "$size" "$tree"
fresh
lines 500 '/* x */' >>"$tree/src/base/a.c"
passes "$size" "$tree"
grep -q '504 lines, over 400 (a warning)' "$tmp/out" || fail "no warning at 504 lines"
fresh
{ printf 'static int big(int a,\n               int b)\n{\n'; lines 100 '    a++;'; echo '}'; } >>"$tree/src/ir/b.c"
refuses 'src/ir/b.c:7: big has 104 lines, over 100' "$size" "$tree"
fresh
{ printf 'static const int table[] = {\n'; lines 150 '    1,'; echo '};'; } >>"$tree/src/ir/b.c"
passes "$size" "$tree"

text=$src/tools/check_text
plant src/base/a.c 'int x; \n'
refuses 'src/base/a.c:5:' "$text" "$tree"
plant src/base/a.c '/* see /ho''me/me/quern */\n'
refuses 'a path of one machine' "$text" "$tree"
plant README.md 'TO''DO: write this\n'
refuses 'README.md:1:' "$text" "$tree"
plant README.md 'TO''DO(#12): write this\n'
passes "$text" "$tree"

if tool=$("$src/tools/find_clang_format"); then
    mkdir -p "$tree/tools"
    cp "$src"/tools/* "$tree/tools/"
    cp "$src/.clang-format" "$tree/"
    plant src/base/a.c 'int  qn_c( void );\n'
    cp -r "$src/tools" "$src/.clang-format" "$tree/"
    refuses 'clang-format-violations' "$tree/tools/lint"
    fresh
    cp -r "$src/tools" "$src/.clang-format" "$tree/"
    passes "$tree/tools/lint"
fi
finish
