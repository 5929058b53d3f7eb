# labels: tools
# timeout: 900
# The documents: made pages are up to date, the manual knows every command and option, and every key
# that a recipe may have is described.
. "$1/test/tools/shell.sh"
quern=$build/quern
[ -x "$quern" ] || { echo "skipped: no program in this build"; exit 77; }

passes "$src/tools/gen_docs" "$quern" "$src/docs" --check

# Once more without the test of parity, which takes minutes: a copy of the program has none beside it.
mkdir "$tmp/docs" "$tmp/bin"
cp "$src"/docs/* "$tmp/docs"
cp "$quern" "$tmp/bin"
echo "| an old row |" >>"$tmp/docs/operators.md"
refuses "operators.md is out of date" "$src/tools/gen_docs" "$tmp/bin/quern" "$tmp/docs" --check
passes "$src/tools/gen_docs" "$tmp/bin/quern" "$tmp/docs"
passes cmp "$src/docs/operators.md" "$tmp/docs/operators.md"

# Hyphens are escaped in the manual.
sed 's/\\-/-/g' "$src/docs/quern.1" >"$tmp/manual"
"$quern" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' >"$tmp/commands"
[ "$(wc -l <"$tmp/commands")" -ge 8 ] || fail "found too few commands"
while read -r command; do
    has "$tmp/manual" ".SS $command"
    sed -n "/^\.SS $command\$/,/^\.S[SH]/p" "$tmp/manual" >"$tmp/section"
    "$quern" "$command" --help | grep -oE '^ +(-[a-z], )?--[a-z][a-z-]*' | sed 's/.*--/--/' >"$tmp/options"
    while read -r option; do
        grep -qE "^\.B .*$option( |\$)" "$tmp/section" || fail "the manual of $command lacks $option"
        checks=$((checks + 1))
    done <"$tmp/options"
done <"$tmp/commands"
if command -v groff >/dev/null; then
    groff -man -Tutf8 -Kutf8 -ww "$src/docs/quern.1" >"$tmp/page" 2>"$tmp/out" ||
        fail "groff: $(cat "$tmp/out")"
    [ -s "$tmp/out" ] && fail "groff: $(cat "$tmp/out")"
fi

# Keys stand in the sources as lists of words: KNOWN(map, "a", "b").
cat "$src"/src/train/*.c | tr '\n' ' ' | grep -oE 'KNOWN\([a-z_>.-]+,[^;]*\)' | grep -oE '"[a-z0-9_]+"' |
    tr -d '"' | sort -u >"$tmp/keys"
[ "$(wc -l <"$tmp/keys")" -ge 40 ] || fail "found too few keys of recipes"
while read -r key; do
    grep -qE "\`$key\`" "$src/docs/recipes.md" || fail "docs/recipes.md does not describe \`$key\`"
    checks=$((checks + 1))
done <"$tmp/keys"
finish
