# labels: tools
# Every own kernel of the CPU is timed by a case; what is printed of one can be read.
. "$1/test/tools/shell.sh"
bench=$build/bench/quern_bench_kernels
[ -x "$bench" ] || { echo "skipped: no benchmarks in this build"; exit 77; }

passes "$bench" --check
grep -qE '^[0-9]+ own kernels, 0 without a case$' "$tmp/out" || { cat "$tmp/out"; fail "no count"; }
refuses "cpu.softmax.rows has no case" "$bench" --check layer_norm
refuses "usage" "$bench" --nonsense
refuses "usage" "$bench" -t 0

passes "$bench" --json -s 0 -t 1 "layer_norm bf16"
for words in '"case": "layer_norm bf16[8192,512] bf16[512] bf16[512] {axis=1}"' \
    '"kernel": "cpu.layer_norm.rows"' '"own": true' '"limit_us": ' '"share": '; do
    checks=$((checks + 1))
    grep -qF -- "$words" "$tmp/out" || { cat "$tmp/out"; fail "it did not say: $words"; }
done
passes "$bench" -s 0 -t 1 "relayout *f32[16"
grep -qF "of limit" "$tmp/out" || { cat "$tmp/out"; fail "no share of the limit"; }
finish
