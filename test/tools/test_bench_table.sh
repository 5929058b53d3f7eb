# labels: tools
# The speed table's goals, reasons, own kernels, and what is kept of a row, from made-up measurements.
. "$1/test/tools/shell.sh"
python3 -c '' 2>/dev/null || { echo "skipped: no python3"; exit 77; }

# shows LINE: the last command printed exactly this line.
shows()
{
    has "$tmp/out" "$1"
}

cat >"$tmp/page.py" <<'END'
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/bench")
import goals, own_kernels, table

if sys.argv[2] == "reasons":
    print(goals.read_reasons(Path(sys.argv[3])))
    sys.exit()
data = json.loads(Path(sys.argv[2]).read_text())
page = table.document(data["settings"], data["rows"], data["kernels"])
if len(sys.argv) > 3:
    page = own_kernels.replaced(page, json.loads(Path(sys.argv[3]).read_text()))
print(page)
print("\n".join(table.totals(data["rows"])))
END

cat >"$tmp/rows.py" <<'END'
import json
import sys


def row(name, quern, peer, limit=None, up=True):
    ratio = peer and (quern / peer if up else peer / quern)
    images = name.startswith("conv")
    return {"name": name, "unit": "x", "quern": quern, "torch_eager": peer, "torch_compile": None,
            "limit": limit, "higher_is_better": up, "ratio": ratio,
            "threads": {"quern": 2, "torch_eager": peer and 1, "torch_compile": None},
            "layout": {"quern": "contiguous" if images else None,
                       "torch_eager": "channels_last" if images else None, "torch_compile": None}}


def kernel(name, case, share, own=True):
    return {"kernel": name, "case": case, "own": own, "threads": 2, "us": 1234.5, "gflops": 1,
            "gbs": 1, "limit_us": 1234.5 * share, "share": share}


rows = [row("sgemm-1024", 95, 50, 100), row("sgemm-1024x16x1024", 40, 50, 100),
        row("sgemm-unheard-of", 90, 45, 100), row("conv-64x56-64-k3s1", 84, 42, 100),
        row("bf16gemm-1024", 190, 190, 200), row("bf16gemm-2048", 78, 39, 100),
        row("conv-dw-64x56-64-k1s1", 60, 40, 100), row("mlp-step-64", 100, 150, None, False),
        row("first-step-resnet50", 1.5, 3, None, False), row("gelu-16384x1024", 10, None, 20),
        row("memory-resnet50-train-16", 100, 154, None, False)]
kernels = [kernel("cpu.b.rows", "b f32[2]", 0.5), kernel("cpu.b.rows", "b f32[4]", 0.3),
           kernel("cpu.a.rows", "a f32[2]", 0.9), kernel("cpu.a.rows", "a f32[3]", 0.8),
           kernel("cpu.a.rows", "a f32[4]", 0.2), kernel("lib.a", "a f32[2]", 0.7, own=False)]
settings = {"peaks": {"2": {"flops_per_s": 1e11, "bf16_flops_per_s": 2e11,
                            "bytes_per_s": 1e10, "isa": "v3",
                            "spinning": "GOMP_SPINCOUNT=7"}}, "machine": "m",
            "date": "d", "commit": "c", "torch": "2", "rounds": 1, "seconds": 1, "threads": [1, 2],
            "allocator": "a", "cpu_time": False, "command": "./do bench"}
json.dump({"settings": settings, "rows": rows, "kernels": kernels}, open(sys.argv[1], "w"))
json.dump([kernel("cpu.c.rows", "c f32[2]", 0.25)], open(sys.argv[2], "w"))
END
passes python3 "$tmp/rows.py" "$tmp/bench.json" "$tmp/new.json"

passes python3 "$tmp/page.py" "$src" "$tmp/bench.json"
shows "rows at 1.00 or above: 9 of 10: missed"
shows "geometric mean of 10 ratios (goal 1.3): 1.56: reached"
shows "small nets, geometric mean (goal 2): 1.50: missed"
shows "GEMM in f32: 1 of 3 rows at 93 % of the limit or above, geometric mean 70 %, lowest sgemm-1024x16x1024 40 %: missed"
shows "GEMM in bf16: 1 of 2 rows at 93 % of the limit or above, geometric mean 86 %, lowest bf16gemm-2048 78 %: missed"
shows "convolutions: 0 of 2 rows at 85 % of the limit or above, geometric mean 71 %, lowest conv-dw-64x56-64-k1s1 60 %: missed"
shows "first step (goal 1 s): at most 1.50 s, first-step-resnet50: missed"
shows "memory-resnet50-train-16, PyTorch's peak memory over Quern's (goal 2): 1.54: missed"
shows "sgemm-unheard-of (90 % of the limit, not 93 %): no reason recorded"
grep -q '^- sgemm-1024x16x1024 (ratio 0.80, not 1.00; 40 % of the limit, not 93 %): 16 columns' \
    "$tmp/out" || fail "no reason for sgemm-1024x16x1024"
why=$(sed -n 's/^conv-dw-\*-k1s\*: //p' "$src/bench/reasons.txt")
[ -n "$why" ] && grep -qF "conv-dw-64x56-64-k1s1 (60 % of the limit, not 85 %): $why" "$tmp/out" ||
    fail "no reason by a pattern"
why=$(sed -n 's/^mlp-step-64: //p' "$src/bench/reasons.txt")
[ -n "$why" ] && grep -qxF "mlp-step-64 (ratio 1.50, not 2.00): $why" "$tmp/out" ||
    fail "no reason for a small net"
grep -q '^sgemm-1024 (' "$tmp/out" && fail "a row that reaches its goals is said to fall short"

grep -q '^bf16gemm-2048 (78 % of the limit, not 93 %): ' "$tmp/out" || fail "bf16 has no goal"

grep -q '^- OpenMP.*(GOMP_SPINCOUNT=7)' "$tmp/out" || fail "nothing of OpenMP's spinning"

# What each side's best ran with.
shows "| sgemm-1024 | x | 95 | 50 | - | 100 | 95 % | 1.90 | 2/1/- |  |"
shows "| conv-64x56-64-k3s1 | x | 84 | 42 | - | 100 | 84 % | 2.00 | 2/1/- | contig/last/- |"
shows "| gelu-16384x1024 | x | 10 | - | - | 20 | 50 % | - | 2/-/- |  |"

shows '| cpu.a.rows | `a f32[2]` | 1,234 | 90 % |'
shows '| cpu.a.rows | `a f32[4]` | 1,234 | 20 % |'
shows '| cpu.b.rows | `b f32[2]` | 1,234 | 50 % |'
[ "$(grep -c '^| cpu\.' "$tmp/out")" = 3 ] || fail "not the three lines of own kernels"
grep -q '^| lib' "$tmp/out" && fail "a library's kernel stands among Quern's own"

# The section alone made anew: what stands around it stays.
passes python3 "$tmp/page.py" "$src" "$tmp/bench.json" "$tmp/new.json"
shows '| cpu.c.rows | `c f32[2]` | 1,234 | 25 % |'
shows "## Reading it"
shows "## Goals"
grep -q '^| cpu\.[ab]' "$tmp/out" && fail "old kernels are left"
sed 's/"kernels": .*/"kernels": []}/' "$tmp/bench.json" >"$tmp/none.json"
passes python3 "$tmp/page.py" "$src" "$tmp/none.json"
grep -q "^## Quern" "$tmp/out" && fail "a section of no kernels"
passes python3 "$tmp/page.py" "$src" "$tmp/none.json" "$tmp/new.json"
shows '| cpu.c.rows | `c f32[2]` | 1,234 | 25 % |'
shows "## Reading it"

# Which numbers of threads a row tries, and what is kept of it: a side whose run takes over 4 ms with
# all threads is not tried with one, whatever the others do.
cat >"$tmp/keeps.py" <<'END'
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/bench")
import run
import table


class MadeUp(run.Bench):
    """Measures by a table of (side, threads): values of its turns, seconds of a run."""

    def __init__(self, made_up, **options):
        self.o = run.argparse.Namespace(thread_counts=[1, 2], rounds=3, seconds=0.06, no_peer=False,
                                        no_compile=False, **options)
        self.made_up, self.turns, self.tuned = made_up, [], []

    def tune(self, name, threads):
        self.tuned.append(threads)

    def close_peers(self, every):
        pass

    def measure(self, row, side, threads, quern):
        self.turns.append((side, threads))
        values, run_s, *layouts = self.made_up[side, threads]
        turn = self.turns.count((side, threads)) - 1
        if values is None:
            return None
        return {"value": values[turn], "runs": round(self.o.seconds / run_s), "limit": 50,
                "layout": layouts[turn] if layouts else None}


def equal(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found}, not {wanted}")


def measured(made_up, row):
    bench = MadeUp(made_up)
    return bench, bench.row(row)


RATE = {"name": "conv-x", "unit": "GFLOP/s", "higher_is_better": True, "once": False}
LAST, CONTIGUOUS = "channels_last", "contiguous"
conv = {("quern", 2): ([10, 30, 20], 0.005, LAST, CONTIGUOUS, LAST),
        ("eager", 2): ([9, 9, 9], 0.003, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS),
        ("eager", 1): ([8], 0.006, CONTIGUOUS),
        ("channels_last", 2): ([7], 0.003, LAST), ("channels_last", 1): ([15, 17, 16], 0.006, LAST,
                                                                           LAST, LAST),
        ("compile", 2): ([6, 8, 1], 0.02, CONTIGUOUS, CONTIGUOUS, CONTIGUOUS)}
bench, row = measured(conv, RATE)
equal("tuned", bench.tuned, [2])
equal("tried", bench.turns[:6], [("quern", 2), ("eager", 2), ("channels_last", 2), ("compile", 2),
                                 ("eager", 1), ("channels_last", 1)])
equal("turns", bench.turns[6:], [("quern", 2), ("channels_last", 1), ("compile", 2)] * 2)
equal("medians", [row[s] for s in table.SIDES], [20, 16, 6])
equal("threads", table.threads(row), "2/1/2")
equal("layout", table.layout(row), "last/last/contig")
equal("ratio", row["ratio"], 20 / 16)
equal("limit", row["limit"], 50)

# Times are better low; a side that has died is missing, and with it what it ran with.
TIME = {"name": "mlp-x", "unit": "us", "higher_is_better": False, "once": False}
mlp = {("quern", 2): ([10], 0.001), ("quern", 1): ([4, 6, 5], 0.001),
       ("eager", 2): ([8, 8, 9], 0.005),
       ("compile", 2): (None, 1), ("compile", 1): (None, 1)}
bench, row = measured(mlp, TIME)
equal("tuned", bench.tuned, [2, 1])
equal("medians", [row[s] for s in table.SIDES], [5, 8, None])
equal("threads", table.threads(row), "1/2/-")
equal("layout", table.layout(row), "")
equal("ratio", row["ratio"], 8 / 5)

# Without a peer there is no ratio; what can be measured once is tried with all threads alone.
bench = MadeUp({("quern", 2): ([3, 2, 4], 0.001)})
bench.o.no_peer = True
row = bench.row(dict(TIME, once=True))
equal("once", bench.turns, [("quern", 2)] * 3)
equal("alone", (row["quern"], row["ratio"], table.threads(row)), (3, None, "2/-/-"))
END
passes python3 "$tmp/keeps.py" "$src"

printf '# words\nname: why: so\n' >"$tmp/reasons.txt"
passes python3 "$tmp/page.py" "$src" reasons "$tmp/reasons.txt"
shows "[('name', 'why: so')]"
printf 'name why\n' >"$tmp/reasons.txt"
refuses 'reasons.txt:1: not `ROW: why it falls short`' \
    python3 "$tmp/page.py" "$src" reasons "$tmp/reasons.txt"

# Every pattern of the reasons fits a row that there is.
if [ -x "$build/bench/quern_bench_rows" ]; then
    cat >"$tmp/patterns.py" <<'END'
import fnmatch
import json
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/bench")
import goals

rows = [json.loads(line)["name"] for line in sys.stdin]
for pattern, _ in goals.read_reasons():
    if not fnmatch.filter(rows, pattern):
        sys.exit(f"bench/reasons.txt: {pattern} is the name of no row")
END
    "$build/bench/quern_bench_rows" --list >"$tmp/list" || fail "no list of rows"
    passes sh -c 'python3 "$1" "$2" <"$3"' sh "$tmp/patterns.py" "$src" "$tmp/list"
    grep -v sgemm-1024x16x1024 "$tmp/list" >"$tmp/fewer"
    refuses "sgemm-1024x16x1024 is the name of no row" \
        sh -c 'python3 "$1" "$2" <"$3"' sh "$tmp/patterns.py" "$src" "$tmp/fewer"
fi

# Measured once, by what stands for the program, and then known.
bench=$build/bench/quern_bench_kernels
if [ -x "$bench" ]; then
    mkdir -p "$tmp/build/bench"
    cat >"$tmp/build/bench/quern_bench_kernels" <<END
#!/bin/sh
echo run >>"$tmp/runs"
exec "$bench" "\$@" "argmin f32"
END
    chmod +x "$tmp/build/bench/quern_bench_kernels"
    for turn in 1 2; do
        passes python3 "$src/bench/run.py" --kernels --threads 1 --seconds 0 --build "$tmp/build"
        grep -q '^cpu.argmin.rows .* us .* %  argmin f32' "$tmp/out" || fail "no line of argmin"
    done
    [ "$(wc -l <"$tmp/runs")" = 1 ] || fail "measured again what is known"
    passes python3 "$src/bench/run.py" --kernels --threads 1 --fresh --seconds 0 --build "$tmp/build"
    [ "$(wc -l <"$tmp/runs")" = 2 ] || fail "--fresh did not measure"
fi
# Options that make no sense end before anything is measured.
for bad in "--rounds 0" "--seconds -1" "--threads 0" "--threads 1,x"; do
    # shellcheck disable=SC2086
    refuses "argument ${bad% *}" python3 "$src/bench/run.py" --no-peer $bad
done

finish
