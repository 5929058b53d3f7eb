# labels: onnx timeout: 600
# The cases of ONNX's suite that do not pass are those that refused.txt lists.
. "$1/test/tools/shell.sh"
quern=$build/quern data=/usr/share/libonnx-testdata/data
[ -x "$quern" ] || { echo "skipped: no program in this build"; exit 77; }
[ -d "$data" ] || { echo "skipped: no libonnx-testdata"; exit 77; }
"$quern" test-onnx "$data" >"$tmp/all" 2>"$tmp/errors"
grep -q 'built without' "$tmp/all" && { echo "skipped: built without ONNX"; exit 77; }
grep -q ' cases: ' "$tmp/all" || { cat "$tmp/all" "$tmp/errors"; exit 1; }
sed -n "s|^$data/\([^:]*: [a-z]*\):.*|\1|p" "$tmp/all" | sort >"$tmp/found"
grep -v '^#' "$src/test/onnx/refused.txt" | sort >"$tmp/listed"
passes diff "$tmp/listed" "$tmp/found"
finish
