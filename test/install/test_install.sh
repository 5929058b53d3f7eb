# labels: install
# Installs the built tree into a temporary prefix and builds examples/ against it, as another
# program would: through the CMake package and through pkg-config. Then looks at what is exported.
. "$1/test/tools/shell.sh"
prefix=$tmp/prefix

passes cmake --install "$build" --prefix "$prefix"
passes cmake -S "$src/examples" -B "$tmp/examples" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
passes cmake --build "$tmp/examples"
version=$(sed -n 's/^#define QN_VERSION "\(.*\)"/\1/p' "$src/include/quern/quern.h")
for program in version version_static; do
    passes "$tmp/examples/$program"
    has "$tmp/out" "quern $version"
done

passes "$tmp/examples/graph"
has "$tmp/out" "f(2, 3) = 101   df/dx = 802   df/dy = -200"
passes "$tmp/examples/train" "$tmp/weights.safetensors"
passes "$tmp/examples/predict" "$tmp/weights.safetensors"
passes "$tmp/examples/train_static" "$tmp/again.safetensors"
passes cmp "$tmp/weights.safetensors" "$tmp/again.safetensors"
refuses "missing.safetensors" "$tmp/examples/predict" "$tmp/missing.safetensors"

# y = max(x, 0) for x of two floats, as ONNX writes it.
printf '\010\010\072\063\012\014\012\001\170\022\001\171\042\004\122\145\154\165\022\001\147\132\017\012' >"$tmp/relu.onnx"
printf '\001\170\022\012\012\010\010\001\022\004\012\002\010\002\142\017\012\001\171\022\012\012\010\010' >>"$tmp/relu.onnx"
printf '\001\022\004\012\002\010\002\102\004\012\000\020\021' >>"$tmp/relu.onnx"
if "$tmp/examples/onnx" "$tmp/relu.onnx" >"$tmp/out" 2>"$tmp/err"; then
    has "$tmp/out" "y: f32[2] 1 1"
else
    passes grep -q "built without protobuf-c" "$tmp/err"
fi

# The installed tree may be moved.
mv "$prefix" "$tmp/moved"
prefix=$tmp/moved
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name quern.pc)")
export PKG_CONFIG_PATH
if command -v pkg-config >/dev/null; then
    # shellcheck disable=SC2046
    for program in version train; do
        passes cc -std=c11 -Wall -Wextra -Werror -pedantic -o "$tmp/program" \
            "$src/examples/$program.c" $(pkg-config --cflags --libs quern)
        passes env LD_LIBRARY_PATH="$(pkg-config --variable=libdir quern)" "$tmp/program" \
            "$tmp/weights.safetensors"
        [ "$program" = train ] || cp "$tmp/out" "$tmp/version"
    done
    has "$tmp/version" "quern $version"
fi

# Each header stands alone, in C and in C++.
for header in "$prefix"/include/quern/*.h; do
    echo "#include <quern/${header##*/}>" >"$tmp/h.c"
    echo "int qn_unused;" >>"$tmp/h.c"
    passes cc -std=c11 -Wall -Wextra -Werror -pedantic -I "$prefix/include" -c -o "$tmp/h.o" "$tmp/h.c"
    if command -v c++ >/dev/null; then
        passes c++ -x c++ -Wall -Wextra -Werror -pedantic -I "$prefix/include" -c -o "$tmp/h.o" "$tmp/h.c"
    fi
done

# A program in C++.
if command -v c++ >/dev/null; then
    cat >"$tmp/use.cc" <<'CC'
#include <quern/quern.h>
#include <cstdio>
int main()
{
    const QnDim dims[] = { 2, 3 };
    const QnShape shape = qn_shape_make(2, dims);
    QnGraph *g = qn_graph_new();
    QnValue *x = qn_input(g, "x", QN_DTYPE_F32, &shape), *d;
    QnValue *y = qn_exp(g, x);
    char text[QN_TYPE_TEXT_BYTES];
    if (qn_grad(g, y, &x, 1, &d) != QN_OK)
        std::puts(qn_error_last()->text);
    std::puts(qn_type_text(qn_value_type(d), text));
    qn_matmul(g, x, x, nullptr, false, false);
    std::puts(qn_status_name(qn_graph_check(g)));
    qn_graph_free(g);
}
CC
    passes c++ -Wall -Wextra -Werror -pedantic -I "$prefix/include" -o "$tmp/use" "$tmp/use.cc" \
        -L "$build" -lquern
    passes env LD_LIBRARY_PATH="$build" "$tmp/use"
    has "$tmp/out" "f32[2,3]"
    has "$tmp/out" "ESHAPE"
fi

# What the library exports is what the headers declare, no more and no less.
nm -D --defined-only "$build/libquern.so" | awk '{ print $3 }' | LC_ALL=C sort >"$tmp/symbols"
for header in "$prefix"/include/quern/*.h; do
    echo "#include <quern/${header##*/}>"
done >"$tmp/all.c"
# A prototype is what stands at depth 0 between a name and its parentheses.
cc -E -P -I "$prefix/include" "$tmp/all.c" | tr '\n' ' ' | sed 's/__attribute__ *(([^;]*"[a-z]*")))//g' |
    tr ';' '\n' | grep -v '^ *typedef' | sed -n 's/^[^({]*[ *]\(qn_[a-z0-9_]*\) *(.*/\1/p' |
    LC_ALL=C sort -u >"$tmp/declared"
[ "$(wc -l <"$tmp/declared")" -gt 200 ] || fail "few functions found in the public headers"
LC_ALL=C comm -23 "$tmp/declared" "$tmp/symbols" >"$tmp/missing"
[ -s "$tmp/missing" ] && { cat "$tmp/missing"; fail "declared but not exported"; }
LC_ALL=C comm -13 "$tmp/declared" "$tmp/symbols" >"$tmp/extra"
[ -s "$tmp/extra" ] && { cat "$tmp/extra"; fail "exported but not declared"; }

# The plugin exports its descriptor alone, needs no library of NVIDIA's, holds no copy of ours, and is
# found by the installed program.
if [ -f "$build/libquern_cuda.so" ]; then
    plugin=$(find "$prefix" -name libquern_cuda.so)
    case $plugin in
        "$prefix"/lib*/quern/libquern_cuda.so) ;;
        *) fail "the plugin is at '$plugin', not in lib/quern" ;;
    esac
    nm -D --defined-only "$plugin" | awk '{ print $3 }' >"$tmp/exported"
    [ "$(cat "$tmp/exported")" = qn_plugin ] || { cat "$tmp/exported"; fail "the plugin's exports"; }
    passes objdump -p "$plugin"
    grep NEEDED "$tmp/out" | grep -i 'cuda\|nv\|cublas\|quern' && fail "the plugin needs libraries"
    nm "$plugin" | grep ' qn_op_\| last_error\| qn_text_' && fail "the plugin holds copies"
    passes env QUERN_LIBCUDA=/nowhere/libcuda.so.1 "$prefix/bin/quern" doctor
    mv "$tmp/out" "$tmp/doctor"
    passes grep -qF "$prefix/bin/../${plugin#"$prefix/"}" "$tmp/doctor"
    passes grep -qF "looked for /nowhere/libcuda.so.1" "$tmp/doctor"
fi

for file in share/bash-completion/completions/quern share/man/man1/quern.1 \
    share/doc/quern/docs/recipes.md share/doc/quern/examples/train.c; do
    passes find "$prefix/$file"
done
finish
