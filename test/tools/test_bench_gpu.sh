# labels: tools
# timeout: 900
# The GPU benchmark runs to its end where there is no GPU, with every row done, and its script
# prints PyTorch beside it, whatever that does.
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

# A Python whose PyTorch gives one row that is not Quern's net, fails in one, and has no time for
# the others; one that finds no device.
python3 -c '' 2>/dev/null || { finish; exit 0; }
cat >"$tmp/python" <<'END'
#!/bin/sh
mode=$2
while [ "$1" != bf16 ]; do shift; done
shift 5 # and --seconds and --warm-up with their numbers
common="\"mode\": \"$mode\""
echo "{\"name\": \"$1\", $common, \"rate\": 100.0, \"ns\": 1e9, \"first_s\": 7.5, \"params\": 12}"
echo "{\"name\": \"$2\", $common, \"failed\": \"out of memory\"}"
exec sleep 60
END
cat >"$tmp/no-device" <<'END'
#!/bin/sh
echo "{\"unavailable\": \"PyTorch finds no CUDA device\"}"
END
chmod +x "$tmp/python" "$tmp/no-device"
QUERN_BENCH_PYTHON=$tmp/python
export QUERN_BENCH_PYTHON
passes python3 "$src/bench/gpu.py" null --quick --only training --minutes 0.05 --build "$build"
says "7.5"
says "compile: out of memory"
says "has 12 parameters, Quern 124,439,808"
says "no time"
QUERN_BENCH_PYTHON=$tmp/no-device
passes python3 "$src/bench/gpu.py" null --quick --only training --build "$build"
says "PyTorch: not measured; PyTorch finds no CUDA device"
QUERN_BENCH_PYTHON=$tmp/nowhere
passes python3 "$src/bench/gpu.py" null --quick --only training --build "$build"
says "PyTorch: not measured; QUERN_BENCH_PYTHON: "

# A Python without PyTorch, by the script itself.
passes python3 -S "$src/bench/peers/torch_gpu.py" eager "GPT-2 124M training 1x16"
says "has no PyTorch"
finish
