# labels: tools
# timeout: 900
# The GPU benchmark runs to its end where there is no GPU, with every row done, and its script prints
# PyTorch beside it, whatever that does.
. "$1/test/tools/shell.sh"
bench=$build/bench/quern_bench_gpu
[ -x "$bench" ] || { echo "skipped: no benchmarks in this build"; exit 77; }
export XDG_CACHE_HOME="$tmp/cache"

# says WORDS: the last command's output has them.
says()
{
    checks=$((checks + 1))
    grep -qF -- "$1" "$tmp/out" || { cat "$tmp/out"; fail "it did not say: $1"; }
}

passes "$bench" null --quick --json "$tmp/null.json"
says "GPT-2 124M training 32x1024"
says "ResNet-50 training 256x224"
says "softmax"
says " 0 failed"
grep -qF "\"failed\": false" "$tmp/null.json" || fail "no rows in null.json"
refuses "usage" "$bench" null --nonsense
refuses "vulkan" "$bench" vulkan
if "$build/quern" doctor 2>/dev/null | grep -q opencl:0; then
    passes "$bench" opencl:0 --quick --limit 60
    says "host work"
    says "product bf16"
    says " 0 failed"
fi

# A Python whose PyTorch gives one row, fails in one, and has no time for the others.
python3 -c '' 2>/dev/null || { finish; exit 0; }
cat >"$tmp/python" <<'END'
#!/bin/sh
echo "{\"name\": \"$5\", \"mode\": \"$2\", \"rate\": 100.0, \"first_s\": 7.5}"
echo "{\"name\": \"$6\", \"mode\": \"$2\", \"failed\": \"out of memory\"}"
exec sleep 60
END
chmod +x "$tmp/python"
QUERN_BENCH_PYTHON=$tmp/python
export QUERN_BENCH_PYTHON
passes python3 "$src/bench/gpu.py" null --quick --only training --minutes 0.05 --build "$build"
says "7.5"
says "compile: out of memory"
says "no time"
finish
