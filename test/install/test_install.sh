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

# The installed tree may be moved.
mv "$prefix" "$tmp/moved"
prefix=$tmp/moved
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name quern.pc)")
export PKG_CONFIG_PATH
if command -v pkg-config >/dev/null; then
    # shellcheck disable=SC2046
    passes cc -std=c11 -Wall -Wextra -Werror -pedantic -o "$tmp/version" "$src/examples/version.c" \
        $(pkg-config --cflags --libs quern)
    passes env LD_LIBRARY_PATH="$(pkg-config --variable=libdir quern)" "$tmp/version"
    has "$tmp/out" "quern $version"
fi

for header in "$prefix"/include/quern/*.h; do
    [ "${header##*/}" = ops.h ] && continue # waits for the types of the public header
    echo "#include <quern/${header##*/}>" >"$tmp/h.c"
    echo "int qn_unused;" >>"$tmp/h.c"
    passes cc -std=c11 -Wall -Wextra -Werror -pedantic -I "$prefix/include" -c -o "$tmp/h.o" "$tmp/h.c"
    if command -v c++ >/dev/null; then
        passes c++ -x c++ -Wall -Wextra -Werror -pedantic -I "$prefix/include" -c -o "$tmp/h.o" "$tmp/h.c"
    fi
done

# Every exported symbol is ours, and every function of the public header is exported.
nm -D --defined-only "$build/libquern.so" | awk '{ print $3 }' >"$tmp/symbols"
grep -v '^qn_' "$tmp/symbols" && fail "libquern.so exports what is not ours"
sed -n 's/^[a-z].*[ *]\(qn_[a-z0-9_]*\)(.*/\1/p' "$src/include/quern/quern.h" >"$tmp/declared"
[ -s "$tmp/declared" ] || fail "no function found in the public header"
while read -r f; do
    has "$tmp/symbols" "$f"
done <"$tmp/declared"

passes find "$prefix/share/bash-completion/completions/quern"
finish
